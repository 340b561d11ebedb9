"""The base tables of a view in a window: their changes, and all their rows at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.changes.driver.files import require_files_of
from tidemark.changes.driver.past_versions import read_version
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.changes.planning.source_support import require_readable
from tidemark.errors import (
    IncompatibleSchemaChange,
)
from tidemark.jobs.schemas import CHAR_VARCHAR, struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, ROW_ID, BaseWindow
from tidemark.model.table_log import Metadata
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["ROW", "SIGNED", "Base", "BaseRows"]

ROW = "tidemark_row"  # the row id of a base row (bigint)
SIGNED = "tidemark_signed"  # −1 or +1 (int)


@dataclass(frozen=True)
class BaseRows:
    """All rows of one base table, at the ends of its window. Both ends show the columns of `metadata`, which is that of
    the end (R100). Without `row_ids` ROW is NULL, so row tracking may be off, and the table may have been replaced.
    """

    window: BaseWindow
    log: DeltaLog
    metadata: Metadata
    row_ids: bool

    @property
    def schema(self) -> StructType:
        """The columns at the end."""
        return struct_type(self.metadata.schema_json)

    @property
    def columns(self) -> list[str]:
        """The names of the columns at the end."""
        return [field.name for field in source_schema.fields(self.metadata)]

    def rows(self, spark: SparkSession, version: int) -> DataFrame:
        """All rows at a version under the columns of the end: the table's columns, ROW."""
        state = self.log.state(version)
        require_readable(state, f"delta.`{self.log.uri}`", row_ids=self.row_ids)
        table = read_version(spark, self.log.uri, version)
        if not self.row_ids:
            return table.select(*self._under_end(state.metadata), F.lit(None).cast("bigint").alias(ROW))
        row_id = table.metadataColumn("_metadata").getField("row_id").alias(ROW)
        return table.select(*self._under_end(state.metadata), row_id)

    def require_files_of(self, rows: DataFrame) -> None:
        """Nothing, or VersionVacuumed if a file that `rows` of a version reads is missing."""
        require_files_of(self.log, rows, self.window.start, self.window.end)

    def _under_end(self, metadata: Metadata) -> list[Column]:
        problem = source_schema.first_difference(metadata, self.metadata)
        if problem is None and _moves_nested_fields(metadata, self.metadata):
            problem = "fields inside a column were added, renamed or dropped, and a view needs its rows at both ends"
        if problem is not None:
            window = self.window
            raise IncompatibleSchemaChange(table=window.table.name, start=window.start, end=window.end, problem=problem)
        same = metadata.table_id == self.metadata.table_id
        known = {field.key if same else field.name.lower(): field.name for field in source_schema.fields(metadata)}
        columns = []
        for field, kind in zip(source_schema.fields(self.metadata), self.schema.fields, strict=True):
            name = known.get(field.key if same else field.name.lower())
            value = F.lit(None) if name is None else _column(name)
            columns.append(value.cast(kind.dataType).alias(field.name, metadata=_of_text(kind)))
        return columns


@dataclass(frozen=True)
class Base(BaseRows):
    """One base table in its window, with its changes."""

    plan: ChangePlan

    def changes(self, spark: SparkSession, workspace: Workspace) -> DataFrame:
        """The changed rows: columns of the table, ROW, SIGNED. Raises VersionVacuumed."""
        found = read_changes(spark, self.log, self.plan, workspace)
        sign = F.when(F.col(quoted(ACTION)) == "DELETE", F.lit(-1)).otherwise(F.lit(1))
        number = F.substring_index(F.col(quoted(ROW_ID)), ":", -1).cast("bigint")
        return found.select(*map(_column, self.columns), number.alias(ROW), sign.alias(SIGNED))


def _of_text(kind: StructField) -> dict[str, Any]:
    """The metadata by which Spark pads what is compared with a CHAR column; a cast loses it."""
    return {CHAR_VARCHAR: kind.metadata[CHAR_VARCHAR]} if CHAR_VARCHAR in kind.metadata else {}


def _moves_nested_fields(old: Metadata, new: Metadata) -> bool:
    known = {field.key: field.form["type"] for field in source_schema.fields(old)}
    pairs = [(known[field.key], field.form["type"]) for field in source_schema.fields(new) if field.key in known]
    return any(isinstance(one, Mapping) and _bare(one) != _bare(other) for one, other in pairs)


def _bare(form: Any) -> Any:
    """A type without the parts that a cast ignores."""
    if isinstance(form, Mapping):
        return {
            name: _bare(part) for name, part in form.items() if name not in ("metadata", "nullable", "containsNull")
        }
    return [_bare(part) for part in form] if isinstance(form, list) else form


def _column(name: str) -> Column:
    return F.col(quoted(name))
