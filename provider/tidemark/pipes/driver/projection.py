"""Rows of files as rows of a table: values with its types, and the first error of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.delivery.driver.checks import DEFAULT, GENERATED, checks_of
from tidemark.delivery.driver.fit import nullable
from tidemark.pipes.driver.blocks import BLOCK, FILE, ID
from tidemark.pipes.driver.casts import fitted
from tidemark.pipes.driver.target import Target
from tidemark.pipes.planning.readers import ValueFormats
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "BAD",
    "CARRIED",
    "CHECKED",
    "CHECKED_SCHEMA",
    "ERROR",
    "ERROR_SCHEMA",
    "OPEN",
    "RAW",
    "SKIP",
    "Shape",
    "projected",
    "source",
    "staged_name",
]

RAW = "__raw"  # the row as the file has it, where it has a text
BAD = "__bad"  # why the row cannot be read at all
SKIP = "__skip"  # whether it is no row: a blank line
OPEN = "__open"  # whether its last field has an end of a line, so that its quote may be open
CARRIED = (FILE, BLOCK, ID, RAW, SKIP, OPEN, BAD)
CHECKED_SCHEMA = "STRUCT<message: STRING, column: STRING>"
CHECKED = "__checked"  # why an item of a SELECT has no value
ERROR = "__error"
ERROR_SCHEMA = "STRUCT<message: STRING, column: STRING, position: INT, raw: STRING>"
_LONGEST_RAW = 4096  # characters of a bad row that are kept


def source(number: int) -> str:
    """The name of the n-th value of a row that is read."""
    return f"__s{number}"


def staged_name(number: int) -> str:
    """The name of the n-th column of the table in staged files, which cannot have all names."""
    return f"c{number}"


@dataclass(frozen=True)
class Shape:
    """The columns of the target that the values fill, in their order. `positions`: those in the file, from 1; None for
    a value without a position.
    """

    fields: tuple[StructField, ...]
    positions: tuple[int | None, ...]

    @property
    def given(self) -> frozenset[str]:
        """Their names in lower case."""
        return frozenset(field.name.lower() for field in self.fields)


def projected(
    rows: DataFrame, shape: Shape, target: Target, formats: ValueFormats, at: datetime, *, truncate: bool
) -> DataFrame:
    """Rows with `source(n)`, CARRIED and CHECKED as rows of the target.

    Columns: staged_name(n) for each column of `shape`, FILE, BLOCK, ID, SKIP, OPEN, and ERROR (ERROR_SCHEMA, NULL for a
    good row).
    """
    fits = [
        fitted(F.col(source(n)), rows.schema[source(n)].dataType, field, formats, truncate=truncate)
        for n, field in enumerate(shape.fields)
    ]
    errors = [
        F.when(F.col(BAD).isNotNull(), _error(F.col(BAD), None, None)),
        F.when(F.col(CHECKED).isNotNull(), _error(F.col(CHECKED).message, None, None, F.col(CHECKED).column)),
    ]
    for field, position, fit in zip(shape.fields, shape.positions, fits, strict=True):
        if fit.fails is not None:
            errors.append(F.when(fit.fails, _error(fit.message, field.name, position)))
    kept = [F.col(name) for name in CARRIED]
    values = [fit.value.alias(field.name) for field, fit in zip(shape.fields, fits, strict=True)]
    cast = rows.select(*kept, F.coalesce(*errors).alias(ERROR), *values)
    whole = cast.select("*", *_absent(shape, target))
    error = F.coalesce(F.col(ERROR), *_broken(shape, target, at))
    columns = [F.col(quoted(field.name)).alias(staged_name(n)) for n, field in enumerate(shape.fields)]
    return whole.select(FILE, BLOCK, ID, SKIP, OPEN, *columns, error.alias(ERROR))


def _error(message: Column, name: str | None, position: int | None, named: Column | None = None) -> Column:
    return F.struct(
        message.alias("message"),
        (F.lit(name).cast("string") if named is None else named).alias("column"),
        F.lit(position).cast("int").alias("position"),
        F.substring(F.col(RAW), 1, _LONGEST_RAW).alias("raw"),
    )


def _absent(shape: Shape, target: Target) -> Sequence[Column]:
    """Columns that the files do not give, with their default or NULL: constraints may name them."""
    found = []
    for field in target.schema.fields:
        if field.name.lower() in shape.given:
            continue
        given = field.metadata.get(DEFAULT) or field.metadata.get(GENERATED)
        value = F.lit(None) if given is None else F.expr(str(given))
        found.append(value.cast(nullable(field.dataType)).alias(field.name))
    return found


def _broken(shape: Shape, target: Target, at: datetime) -> Sequence[Column]:
    positions = {f.name.lower(): p for f, p in zip(shape.fields, shape.positions, strict=True)}
    checks = checks_of(target.metadata, StructType(list(shape.fields)), shape.given, at)
    return [
        F.when(
            ~F.coalesce(check.holds, F.lit(False)),
            _error(_violated(check.name), (name := _column_of(check.name)), positions.get((name or "").lower())),
        )
        for check in checks
    ]


def _violated(name: str) -> Column:
    if name.startswith("NOT NULL "):
        return F.lit("NULL result in a non-nullable column")
    return F.lit(f"The row breaks the constraint {name}")


def _column_of(name: str) -> str | None:
    """The column in the name of a check; None for a CHECK constraint."""
    kind, _, rest = name.partition(" ")
    if kind == "CHECK":
        return None
    return rest.removeprefix("NULL ").split(".")[0]
