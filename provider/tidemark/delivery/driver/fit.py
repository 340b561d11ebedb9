"""Whether the columns of a stream fit a target, decided before anything is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidemark.delivery.driver.char_columns import char_length, padded
from tidemark.delivery.driver.checks import DEFAULT, filled_by_delta
from tidemark.errors import TargetDoesNotFit
from tidemark.model.external_tables import FILENAME
from tidemark.model.statements import SchemaEvolution
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP, COMMIT_VERSION, IS_UPDATE, ROW_ID
from tidemark.sql.identifiers import quoted

__all__ = [
    "METADATA_COLUMNS",
    "FittedColumn",
    "as_stored",
    "fit_columns",
    "missing_required",
    "nullable",
    "stores_empty_as_null",
]

METADATA_COLUMNS = (ACTION, IS_UPDATE, ROW_ID, FILENAME, COMMIT_VERSION, COMMIT_TIMESTAMP)
WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)
DIGITS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
READ_FROM_TEXT = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True)
class FittedColumn:
    """A column of the stream with the target's spelling and type, everything nullable. `may_fail`: some values of
    `source_type` do not fit. `char_length`: the n of a CHAR(n). `empty_is_null`: the target stores an empty value as
    NULL.
    """

    source: str
    target: str
    data_type: DataType
    source_type: DataType
    may_fail: bool = False
    char_length: int | None = None
    empty_is_null: bool = False

    @property
    def expression(self) -> Column:
        """The stream's column under the target's name and type; NULL for a value that does not fit."""
        column = F.col(quoted(self.source))
        cast = column.try_cast(self.data_type) if self.may_fail else column.cast(self.data_type)
        stored = F.when(F.length(cast) > 0, cast) if self.empty_is_null else cast
        return stored.alias(self.target)

    def shown(self, value: Column) -> Column:
        """A value of the target's column as Spark shows it. Values that are the same there are equal."""
        return value if self.char_length is None else padded(value, self.char_length)

    @property
    def fits(self) -> Column:
        """Whether the value fits the target: a number without loss, a text if it can be parsed."""
        column = F.col(quoted(self.source))
        cast = column.try_cast(self.data_type)
        if isinstance(self.source_type, NumericType):
            return cast.try_cast(self.source_type).eqNullSafe(column)
        return column.isNull() | cast.isNotNull()


def fit_columns(
    source: StructType, target: StructType, *, target_name: str, evolution: SchemaEvolution, sorted_out: bool = False
) -> tuple[FittedColumn, ...]:
    """The columns to write, in the stream's order.

    Metadata columns are written only if the target has columns of their names. A type fits if it is equal, or if the
    target's is wider without loss. `sorted_out`: rows with values that do not fit go to a quarantine, so narrower
    numbers and parsed texts are allowed. Raises TargetDoesNotFit with every column that does not fit.
    """
    known = {field.name.lower(): field for field in target.fields}
    offered = [f for f in source.fields if f.name not in METADATA_COLUMNS or f.name.lower() in known]
    extra = [f.name for f in offered if f.name.lower() not in known]
    problems = []
    if extra and evolution is SchemaEvolution.FAIL:
        problems.append(f"it has no column {_listed(extra)} (schema_evolution='add' would add them)")
    for field in offered:
        wanted = known.get(field.name.lower())
        if wanted is None or _widens(field.dataType, wanted.dataType):
            continue
        if not (sorted_out and _may_become(field.dataType, wanted.dataType)):
            problems.append(
                f"column {field.name} is {field.dataType.simpleString()}, there {wanted.dataType.simpleString()}"
            )
    missing = missing_required({field.name.lower() for field in offered}, target)
    if missing:
        problems.append(f"its NOT NULL column {_listed(missing)} would get no value")
    if problems:
        raise TargetDoesNotFit(target=target_name, problem="; ".join(problems))
    return tuple(_fitted(field, known.get(field.name.lower())) for field in offered)


def _fitted(field: StructField, wanted: StructField | None) -> FittedColumn:
    chosen = field if wanted is None else wanted
    return FittedColumn(
        source=field.name,
        target=chosen.name,
        data_type=nullable(chosen.dataType),
        source_type=field.dataType,
        may_fail=not _widens(field.dataType, chosen.dataType),
        char_length=None if wanted is None else char_length(wanted),
    )


def as_stored(columns: tuple[FittedColumn, ...], partitioned: Collection[str]) -> tuple[FittedColumn, ...]:
    """The columns with their values as a target stores them that is `partitioned` by these. Delta stores an empty text
    or binary value of a partition column as NULL.
    """
    named = frozenset(name.lower() for name in partitioned)

    def becomes_null(column: FittedColumn) -> bool:
        return column.char_length is None and stores_empty_as_null(column.target, column.data_type, named)

    return tuple(replace(column, empty_is_null=True) if becomes_null(column) else column for column in columns)


def stores_empty_as_null(name: str, data_type: DataType, partitioned: Collection[str]) -> bool:
    """Whether Delta stores an empty value of the column as NULL. `partitioned`: partition columns, in small letters."""
    return isinstance(data_type, (StringType, BinaryType)) and name.lower() in partitioned


def nullable(data_type: DataType) -> DataType:
    """The type without NOT NULL inside it. Spark casts to no other, and Delta checks NOT NULL itself."""
    if isinstance(data_type, StructType):
        return StructType([StructField(f.name, nullable(f.dataType), True, f.metadata) for f in data_type.fields])
    if isinstance(data_type, ArrayType):
        return ArrayType(nullable(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(nullable(data_type.keyType), nullable(data_type.valueType))
    return data_type


def _may_become(source: DataType, target: DataType) -> bool:
    if isinstance(source, StringType):
        return isinstance(target, READ_FROM_TEXT)
    return isinstance(source, NumericType) and isinstance(target, NumericType)


def missing_required(given: Collection[str], target: StructType) -> list[str]:
    """The NOT NULL columns that get no value: they are not given (in lower case), and Delta does not fill them."""
    return [
        field.name
        for field in target.fields
        if not field.nullable
        and field.name.lower() not in given
        and not filled_by_delta(field)
        and DEFAULT not in field.metadata
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
