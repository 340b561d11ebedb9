"""The items of a COPY statement's SELECT over rows of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from tidemark.changes.driver.data_files import relative_name
from tidemark.errors import CopyRefused, NotYetSupported
from tidemark.pipes.driver.blocks import FILE, MODIFIED, ROW_NUMBER, blocks_of, numbered
from tidemark.pipes.driver.projection import CARRIED, CHECKED, CHECKED_SCHEMA, source
from tidemark.pipes.driver.target import Target
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.formats import FileType
from tidemark.pipes.planning.formats import option
from tidemark.pipes.planning.transforms import Check, Item, highest_position, over_of, select_items

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Selection", "selection_of"]

_FILENAME, _NUMBER = "METADATA$FILENAME", "METADATA$FILE_ROW_NUMBER"
_MODIFIED, _STARTED = "METADATA$FILE_LAST_MODIFIED", "METADATA$START_SCAN_TIME"
_LONGEST_SHOWN = 200  # characters of a value in a message
_OF_MEMBERS = {"TRIM_SPACE": "Use `TRIM` in the SELECT.", "NULL_IF": "Use `NULLIF` in the SELECT."}


@dataclass(frozen=True)
class Selection:
    """The items, in the order of the columns that they fill."""

    items: tuple[Item, ...]
    names: tuple[str, ...]

    @property
    def width(self) -> int:
        """The greatest n of `$n`."""
        return highest_position(self.items)

    def position(self, number: int) -> int | None:
        """The field of the file that an item reads, if it reads one."""
        found = self.items[number].positions
        return next(iter(found)) if len(found) == 1 else None

    def applied(self, rows: DataFrame, load: Load, at: datetime) -> DataFrame:
        """The rows with `source(n)` for each item, and CHECKED for the first conversion that failed."""
        known = self._with_metadata(rows, load, at)
        checks = [
            F.when(F.expr(check.sql), F.struct(_said(check).alias("message"), F.lit(name).alias("column")))
            for item, name in zip(self.items, self.names, strict=True)
            for check in item.checks
        ]
        checked = F.coalesce(*checks, F.lit(None).cast(CHECKED_SCHEMA))
        values = [F.expr(item.sql).alias(source(n)) for n, item in enumerate(self.items)]
        return known.select(*CARRIED, checked.alias(CHECKED), *values)

    def _with_metadata(self, rows: DataFrame, load: Load, at: datetime) -> DataFrame:
        used = " ".join([*(item.sql for item in self.items), *(c.sql for item in self.items for c in item.checks)])
        if _NUMBER in used:
            rows = numbered(rows, blocks_of(rows)).withColumnRenamed(ROW_NUMBER, _NUMBER)
        columns: dict[str, Column] = {
            _FILENAME: relative_name(F.col(FILE), load.location),
            _MODIFIED: F.col(MODIFIED),
            _STARTED: F.lit(at),
        }
        return rows.withColumns({name: value for name, value in columns.items() if name in used})


def _said(check: Check) -> Column:
    shown = F.substring(F.expr(check.value).cast("string"), 1, _LONGEST_SHOWN)
    value = F.coalesce(F.concat(F.lit("The value '"), shown, F.lit("'")), F.lit("A value"))
    return F.concat(value, F.lit(f" of {check.column} does not fit: {check.message}"))


def selection_of(load: Load, fields: Sequence[StructField], target: Target) -> Selection:
    """The selection of a load with a SELECT. Raises CopyRefused if it has more or fewer items than columns, and what
    `select_items` raises. Raises NotYetSupported for options of the format that it would not apply.
    """
    if load.format.type is FileType.JSON:
        for name in _OF_MEMBERS:
            if option(load.format, name):
                raise NotYetSupported(feature=f"{name} of JSON files with a SELECT", instead=_OF_MEMBERS[name])
    items = select_items(load.select or "", load.alias, over_of(load.format.type))
    if len(items) > len(fields) or (load.columns and len(items) != len(fields)):
        problem = f"the SELECT has {len(items)} items, the table {len(fields)} columns."
        raise CopyRefused(table=target.name, problem=problem)
    return Selection(items, tuple(field.name for field in fields[: len(items)]))
