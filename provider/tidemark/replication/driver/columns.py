"""The columns of an object's target, and how a table gets those of a new schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tidemark.replication.driver.values import spark_type
from tidemark.replication.model.replication import TableSchema, WriteMode
from tidemark.replication.planning.target_names import METADATA_COLUMN
from tidemark.replication.planning.types import delta_type, widens
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MAPPING", "METADATA_COLUMN", "evolve", "field_of", "invalid_columns", "properties_of", "target_columns"]

METADATA = StructType([StructField("uuid", StringType()), StructField("source_timestamp", LongType())])
OF_EVENTS = (
    StructField("change_type", StringType()),
    StructField("change_sequence_number", StringType()),
    StructField("sort_keys", ArrayType(StringType())),
    StructField("is_deleted", BooleanType()),
)
MAPPING = "delta.columnMapping.mode"
_WIDENING = "delta.enableTypeWidening"
_NOT_IN_PARQUET = frozenset(" ,;{}()\n\t=")


def target_columns(schema: TableSchema, mode: WriteMode) -> StructType:
    """The object's columns in the source's order, then what is said of each row; all may be NULL.

    An event's row has more columns: `change_sequence_number` sorts as the events do.
    """
    own = [StructField(column.name, spark_type(column.type)) for column in schema.columns]
    more = OF_EVENTS if mode is WriteMode.APPEND_ONLY else ()
    return StructType([*own, StructField(METADATA_COLUMN, METADATA), *more])


def properties_of(columns: StructType) -> Mapping[str, str]:
    """Of a new table with these columns; names that Parquet does not take ask for column mapping."""
    mapped = {MAPPING: "name"} if any(_needs_mapping(field.name) for field in columns.fields) else {}
    return {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true", **mapped}


def field_of(columns: StructType, name: str) -> StructField | None:
    """The column of that name, in any case of letters, as tables have it."""
    return next((field for field in columns.fields if field.name.lower() == name.lower()), None)


def invalid_columns(columns: StructType, schema: TableSchema) -> str | None:
    """Why a table with `columns` cannot take the rows of `schema`; None if it can, after `evolve`."""
    for column in schema.columns:
        known = field_of(columns, column.name)
        wanted = delta_type(column.type)
        if known is None or known.dataType == spark_type(column.type) or widens(_spelled(known.dataType), wanted):
            continue
        return f"column {column.name} is {wanted} now, and {_spelled(known.dataType)} in the target"
    return None


def evolve(session: SparkSession, name: str, columns: StructType, schema: TableSchema, more: Sequence[str]) -> None:
    """Bring the table `name`, which has `columns`, to take the rows of `schema`: new columns come, others grow.

    `more`: properties that it has. Each statement is a commit of its own, and a second run finds nothing to do.
    """
    place = "FIRST"
    for column in schema.columns:
        known, wanted = field_of(columns, column.name), delta_type(column.type)
        if known is None:
            if _needs_mapping(column.name) and MAPPING not in more:
                session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{MAPPING}' = 'name')")
            session.sql(f"ALTER TABLE {name} ADD COLUMNS ({quoted(column.name)} {wanted} {place})")
        elif known.dataType != spark_type(column.type):
            if _WIDENING not in more:
                session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{_WIDENING}' = 'true')")
            session.sql(f"ALTER TABLE {name} ALTER COLUMN {quoted(known.name)} TYPE {wanted}")
        place = f"AFTER {quoted(column.name if known is None else known.name)}"


def _needs_mapping(name: str) -> bool:
    return not _NOT_IN_PARQUET.isdisjoint(name)


def _spelled(kind: DataType) -> str:
    return str(kind.simpleString()).upper()
