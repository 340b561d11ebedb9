"""The query of a view by its name, from Spark's catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql.types import DataType, StructField, StructType

from tidemark.changes.driver.views.same_meaning import require_same_meaning
from tidemark.changes.planning.views.expand import expand
from tidemark.errors import TableNotFound, ViewNotUnderstood, ViewTextMissing
from tidemark.model.views import StoredTable, StoredView, ViewColumn, ViewQuery
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Catalog", "resolve_view", "stored_view"]

_IS_A_TABLE = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"  # Delta's are, and views are not
_NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_PLAIN = re.compile(r"\w+", re.ASCII)
_KINDS = {"MATERIALIZED_VIEW": "Materialized View", "STREAMING_TABLE": "Streaming Table"}


def resolve_view(spark: SparkSession, name: str, *, beyond_snowflake: bool = False) -> ViewQuery:
    """The query of the view `name` (as SQL writes it) over its base tables, whose full names are `bases`.

    It works behind Spark Connect, too. Raises ViewTextMissing for a temporary view, ViewRefused (R70),
    ViewNotUnderstood if our reading of the text is not Spark's, TableNotFound.
    """
    catalog = Catalog(spark)
    view = catalog.view(name)
    query = expand(
        view,
        catalog.schema(view.name).json(),
        catalog.resolve,
        beyond=beyond_snowflake,
        is_builtin=catalog.builtin.__contains__,
    )
    require_same_meaning(spark, query)
    return query


def stored_view(spark: SparkSession, name: str) -> StoredView:
    """The view `name` as it is stored. Raises ViewTextMissing, ViewNotUnderstood, TableNotFound."""
    return Catalog(spark).view(name)


class Catalog:
    """The entries of the session's catalogs."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @cached_property
    def builtin(self) -> frozenset[str]:
        """The names of Spark's own functions, in lower case."""
        return frozenset(row[0].lower() for row in self._spark.sql("SHOW SYSTEM FUNCTIONS").collect())

    def view(self, name: str) -> StoredView:
        """A view that is not temporary. Raises ViewTextMissing, ViewNotUnderstood, TableNotFound."""
        found = self.described(name)
        if found is None or found.get("type") != "VIEW":
            raise ViewNotUnderstood(view=name, problem="it is not a view")
        if found.get("catalog_name") == "system" or "global_temp" in found.get("namespace", ()):
            raise ViewTextMissing(view=name, problem="it is a temporary view")
        return self.stored(found)

    def resolve(self, parts: tuple[str, ...], namespace: tuple[str, ...]) -> StoredTable | StoredView:
        """The table or view that a name in the text of a view of `namespace` means. Raises TableNotFound."""
        if len(parts) == 2 and parts[0].lower() == "delta":
            return StoredTable(path_name(parts[1]))
        name = _name((*namespace[: max(len(namespace) + 1 - len(parts), 0)], *parts))
        found = self.described(name)
        if found is None:
            return StoredTable(name)
        if found.get("type") == "VIEW":
            return self.stored(found)
        kind = str(found.get("type"))
        return StoredTable(name, _KINDS.get(kind, f"{found.get('provider', kind)} table"))

    def described(self, name: str) -> dict[str, Any] | None:
        """The catalog's entry; None for a table of Delta. Raises TableNotFound."""
        try:
            text = self._spark.sql(f"DESCRIBE TABLE EXTENDED {name} AS JSON").collect()[0][0]
        except AnalysisException as error:
            condition = error.getCondition() or ""
            if condition == _IS_A_TABLE:
                return None
            if condition.startswith(_NOT_THERE):
                raise TableNotFound(path=f"{name} (in Spark's catalog)") from error
            raise
        found: dict[str, Any] = json.loads(text)
        return found

    def stored(self, entry: Mapping[str, Any]) -> StoredView:
        """A view from its entry. Raises ViewTextMissing."""
        name = _name((entry["catalog_name"], *entry["namespace"], entry["table_name"]))
        if not entry.get("view_text"):
            raise ViewTextMissing(view=name, problem="the catalog has none for it")
        sources = entry.get("view_query_output_columns") or [column["name"] for column in entry["columns"]]
        fields = self.schema(name).fields
        return StoredView(
            name=name,
            text=entry["view_text"],
            namespace=_parts(entry["view_catalog_and_namespace"]),
            columns=tuple(_column(field, source) for field, source in zip(fields, sources, strict=True)),
            settings=entry.get("view_creation_spark_configuration") or {},
        )

    def schema(self, name: str) -> StructType:
        """The schema of a view for its readers."""
        return self._spark.table(name).schema


def _column(field: StructField, source: str) -> ViewColumn:
    return ViewColumn(field.name, source, None if _has_fields(field.dataType) else field.dataType.simpleString())


def _has_fields(kind: DataType) -> bool:
    return "struct<" in kind.simpleString()


def _name(parts: tuple[str, ...]) -> str:
    return ".".join(part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts)


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name that Spark has quoted if necessary."""
    found, rest = [], name
    while rest:
        if rest.startswith("`"):
            end = 1
            while rest[end : end + 2] == "``" or rest[end] != "`":
                end += 2 if rest[end : end + 2] == "``" else 1
            found.append(rest[1:end].replace("``", "`"))
            rest = rest[end + 2 :]
        else:
            part, _, rest = rest.partition(".")
            found.append(part)
    return tuple(found)
