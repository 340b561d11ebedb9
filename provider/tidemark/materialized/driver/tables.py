"""The tables of kept queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import DateType, NumericType, StringType, StructField, TimestampNTZType, TimestampType

from tidemark.errors import InvalidArgument, TableNotFound
from tidemark.jobs.own_tables import make_table
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.driver.resolving import kept_schema
from tidemark.materialized.model.jobs import KeptTable
from tidemark.materialized.model.shapes import KeptShape, Shape
from tidemark.model.own_tables import PARTIALS_SUFFIX
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name
from tidemark.sql.table_names import table_name
from tidemark.streams.model.partial_columns import GROUP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["create_kept"]

_MOST_CLUSTERED = 4  # columns, as Delta allows
_PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
}


def create_kept(
    spark: SparkSession, shape: KeptShape, wanted: KeptTable, options: Mapping[str, str] | None = None
) -> TableRef:
    """The kept table, created without rows if it does not exist, and clustered. With `replace` an existing table gets
    the columns of the shape and the clustering asked for, and loses its rows.

    A second run finds it, and clusters it if an earlier one died before that. Raises InvalidArgument for a table with
    other columns and for a clustering that Delta refuses, NotADeltaTable.
    """
    suffix = PARTIALS_SUFFIX if shape.shape is Shape.SUMS else ""
    name, path = f"{wanted.name}{suffix}", f"{wanted.path.rstrip('/')}{suffix}"
    schema = kept_schema(spark, shape)
    clustered = _clustered(shape, wanted.cluster_by)
    try:
        log = DeltaLog.open(path, options)
    except TableNotFound:
        properties = {**_PROPERTIES, **wanted.properties}
        log = make_table(spark, path, schema, properties=properties, options=options)
    if _kinds(struct_type(log.state().metadata.schema_json)) != _kinds(schema):
        if not wanted.replace:
            problem = "a table with other columns exists at its path; drop it, or create the view with OR REPLACE"
            raise InvalidArgument(argument="name", value=name, problem=problem)
        _cluster(spark, log, ())  # Delta keeps no column of the old key otherwise
        rows = spark.createDataFrame([], schema).write.format("delta").mode("overwrite")
        rows.option("overwriteSchema", "true").save(log.uri)
    if wanted.replace or not log.state().clustering:
        _cluster(spark, log, clustered)
    addressing = Addressing.PATH if table_name(wanted.name).path is not None else Addressing.LAKE
    return TableRef(name, log.uri, log.state().table_id, addressing)


def _clustered(shape: KeptShape, columns: Sequence[str]) -> list[str]:
    """The columns of the kept table that Delta clusters by: for partial aggregates, their first groups.

    Raises InvalidArgument for more columns than Delta allows, and for one that the query has not. The same for a column
    without a least and a greatest value.
    """
    whole = struct_type(shape.whole.schema_json)
    known = {field.name.casefold(): field for field in whole.fields}
    unknown = [name for name in columns if name.casefold() not in known]
    unordered = [name for name in columns if name.casefold() in known and not _has_range(known[name.casefold()])]
    for wrong, problem in (
        (unknown, f"the query has no such column; it has {', '.join(whole.names)}"),
        (unordered, "Delta clusters by columns with a least and a greatest value"),
        (columns[_MOST_CLUSTERED:] and columns, f"Delta clusters by at most {_MOST_CLUSTERED} columns"),
    ):
        if wrong:
            raise InvalidArgument(argument="cluster_by", value=", ".join(wrong), problem=problem)
    if shape.shape is not Shape.SUMS:
        return list(columns)
    followed = struct_type(shape.followed.schema_json).fields
    groups = [field.name for field in followed if field.name.startswith(GROUP) and _has_range(field)]
    return groups[:_MOST_CLUSTERED] if columns else []


def _has_range(field: StructField) -> bool:
    return isinstance(field.dataType, NumericType | StringType | DateType | TimestampType | TimestampNTZType)


def _cluster(spark: SparkSession, log: DeltaLog, columns: Sequence[str]) -> None:
    """Give the table this clustering; empty: none."""
    if columns:
        spark.sql(f"ALTER TABLE {path_name(log.uri)} CLUSTER BY ({', '.join(map(quoted, columns))})")
    elif log.state().clustering:
        spark.sql(f"ALTER TABLE {path_name(log.uri)} CLUSTER BY NONE")


def _kinds(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
