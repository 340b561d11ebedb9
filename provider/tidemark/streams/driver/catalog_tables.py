"""Delta tables in the catalogs of a Spark session, by their names and by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from tidemark.errors import CatalogTableMoved, NotADeltaTable, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.moved import look_at_all, table_at
from tidemark.lake.storage import canonical_uri
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.identifiers import quoted, spelled
from tidemark.sql.table_names import in_catalogs, table_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["VIEWS", "catalog_location", "is_known", "kind_of", "named_table", "require_in_catalog", "same_table"]

VIEWS = ("VIEW", "TEMPORARY", "TEMPORARY_VIEW", "METRIC_VIEW")

_NOT_THERE = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",  # what it says of a catalog that it does not have
    "PARSE_SYNTAX",
)
_CATALOG_MISSING = "Check the name. A task needs the catalog's settings on its Spark connection (spark_conf)."


def kind_of(spark: SparkSession, name: str) -> str | None:
    """MANAGED, EXTERNAL, VIEW or TEMPORARY; None if the catalog does not know the name."""
    try:
        return str(spark.catalog.getTable(_as_spark_reads(name)).tableType)
    except AnalysisException as error:
        if (error.getCondition() or "").startswith(_NOT_THERE):
            return None
        raise


def is_known(spark: SparkSession, name: str) -> bool:
    """Whether the catalog may know the name. A no needs no error of Spark's, which costs more than the question."""
    try:
        return bool(spark.catalog.tableExists(_as_spark_reads(name)))
    except AnalysisException:  # `kind_of` says what it means
        return True


def catalog_location(spark: SparkSession, name: str, kind: str) -> str:
    """The location of the Delta table. Raises NotADeltaTable, also for a view; TableNotFound if it was dropped in
    between.
    """
    if kind.upper() in VIEWS:
        raise NotADeltaTable(path=name, problem="it is a view")
    try:
        detail = spark.sql(f"DESCRIBE DETAIL {_as_spark_reads(name)}").select("format", "location").collect()
    except AnalysisException as error:
        raise NotADeltaTable(path=name, problem=str(error).splitlines()[0]) from error
    if not detail:
        raise TableNotFound(path=name)
    if detail[0]["format"] != "delta":
        raise NotADeltaTable(path=name, problem=f"it is a table of the format {detail[0]['format']}")
    return str(detail[0]["location"])


def _as_spark_reads(name: str) -> str:
    """The name with backticks for each part that Spark does not read without them."""
    return ".".join(map(spelled, table_name(name).parts)) or name


def named_table(spark: SparkSession, name: str, options: Mapping[str, str]) -> TableRef:
    """The table that has the name, with its identity. Raises TableNotFound, NotADeltaTable, CorruptLog."""
    kind = kind_of(spark, name)
    if kind is None:
        raise TableNotFound(path=f"{name} (in Spark's catalog)", hint=_CATALOG_MISSING)
    log = DeltaLog.open(catalog_location(spark, name, kind), options)
    return TableRef(name, log.uri, log.state().table_id, Addressing.CATALOG)


def require_in_catalog(session: SparkSession, tables: Mapping[str, str]) -> None:
    """Nothing, if none of the names that only a catalog knows leads to another path. `tables`: name → canonical URI.

    A name that this session's catalogs do not know is no contradiction: another Spark may have begun the transaction.
    Raises CatalogTableMoved, NotADeltaTable.
    """
    for name, path in in_catalogs(tables).items():
        kind = kind_of(session, name)
        found = path if kind is None else canonical_uri(catalog_location(session, name, kind))
        if found != path:
            raise CatalogTableMoved(name=name, path=path, found=found)


def same_table(spark: SparkSession, table: TableRef, options: Mapping[str, str]) -> tuple[TableRef, ...]:
    """The table under its own name, if it has that still; else each name in its schema that leads to it."""
    found = tuple(_at(spark, table, table.name, options))
    if found:
        return found
    *schema, _ = table_name(table.name).parts
    inside = ".".join(map(quoted, schema)) or quoted(spark.catalog.currentDatabase())

    def look(name: str) -> tuple[TableRef, ...]:
        return tuple(_at(spark, table, ".".join((*map(spelled, schema), spelled(name))), options))

    return tuple(look_at_all(_names_in(spark, inside), look))


def _at(spark: SparkSession, table: TableRef, name: str, options: Mapping[str, str]) -> Iterator[TableRef]:
    """The table under `name`, if it has that."""
    try:
        kind = kind_of(spark, name)
        location = None if kind is None else catalog_location(spark, name, kind)
    except (NotADeltaTable, TableNotFound):
        return
    if location is not None:
        yield from table_at(table, location, name, Addressing.CATALOG, options)


def _names_in(spark: SparkSession, schema: str) -> list[str]:
    try:
        found = spark.catalog.listTables(schema)
    except AnalysisException:  # the schema is gone, too
        return []
    return [one.name for one in found if not one.isTemporary and (one.tableType or "").upper() not in VIEWS]
