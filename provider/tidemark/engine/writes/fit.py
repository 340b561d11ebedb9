"""Whether the columns of a stream fit a target, decided before anything is written."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from tidemark.errors import TargetDoesNotFit
from tidemark.model.external_tables import FILENAME
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP, COMMIT_VERSION, IS_UPDATE, ROW_ID
from tidemark.model.transactions import SchemaEvolution

__all__ = ["FittedColumn", "fit_columns", "quoted"]

METADATA_COLUMNS = (ACTION, IS_UPDATE, ROW_ID, FILENAME, COMMIT_VERSION, COMMIT_TIMESTAMP)
WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)
DIGITS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


@dataclass(frozen=True)
class FittedColumn:
    """A column of the stream and what it becomes in the target: the target's own spelling and type."""

    source: str
    target: str
    data_type: DataType

    @property
    def expression(self) -> Column:
        """The stream's column under the target's name and type."""
        return F.col(quoted(self.source)).cast(self.data_type).alias(self.target)


def fit_columns(
    source: StructType, target: StructType, *, target_name: str, evolution: SchemaEvolution
) -> tuple[FittedColumn, ...]:
    """The columns to write, in the stream's order.

    Metadata columns go along only where the target has columns of their names. A type fits if it is the same or the
    target's is wider without loss. Raises TargetDoesNotFit, naming every column that does not.
    """
    known = {field.name.lower(): field for field in target.fields}
    offered = [f for f in source.fields if f.name not in METADATA_COLUMNS or f.name.lower() in known]
    extra = [f.name for f in offered if f.name.lower() not in known]
    problems = []
    if extra and evolution is SchemaEvolution.FAIL:
        problems.append(f"it has no column {_listed(extra)} (schema_evolution='add' would add them)")
    for field in offered:
        wanted = known.get(field.name.lower())
        if wanted is not None and not _widens(field.dataType, wanted.dataType):
            problems.append(
                f"column {field.name} is {field.dataType.simpleString()}, there {wanted.dataType.simpleString()}"
            )
    missing = _missing_required(offered, target)
    if missing:
        problems.append(f"its NOT NULL column {_listed(missing)} would get no value")
    if problems:
        raise TargetDoesNotFit(target=target_name, problem="; ".join(problems))
    return tuple(_fitted(field, known.get(field.name.lower())) for field in offered)


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, dots and dollars included."""
    return "`" + name.replace("`", "``") + "`"


def _fitted(field: StructField, wanted: StructField | None) -> FittedColumn:
    chosen = field if wanted is None else wanted
    return FittedColumn(source=field.name, target=chosen.name, data_type=chosen.dataType)


def _missing_required(offered: list[StructField], target: StructType) -> list[str]:
    names = {field.name.lower() for field in offered}
    fillers = ("delta.generationExpression", "delta.identity.start", "CURRENT_DEFAULT")
    return [
        field.name
        for field in target.fields
        if not field.nullable and field.name.lower() not in names and not any(f in field.metadata for f in fillers)
    ]


def _widens(source: DataType, target: DataType) -> bool:
    if source.simpleString().lower() == target.simpleString().lower():
        return True
    if isinstance(source, WHOLE_NUMBERS):
        return _holds_whole(DIGITS[type(source)], target)
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        whole = source.precision - source.scale <= target.precision - target.scale
        return whole and source.scale <= target.scale
    return isinstance(source, FloatType) and isinstance(target, DoubleType)


def _holds_whole(digits: int, target: DataType) -> bool:
    if isinstance(target, WHOLE_NUMBERS):
        return DIGITS[type(target)] >= digits
    if isinstance(target, DecimalType):
        return target.precision - target.scale >= digits
    return isinstance(target, DoubleType) and digits <= DIGITS[IntegerType]


def _listed(names: list[str]) -> str:
    return ", ".join(names)
