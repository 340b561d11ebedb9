"""Table names in a notebook: what Spark's catalog knows, else a path, else a table of the lake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException

from tidemark.errors import NotADeltaTable, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.moved import beside, by_name, open_registered
from tidemark.lake.tables import resolve
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.alike import alike
from tidemark.sql.identifiers import spelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["VIEWS", "SparkTables"]

PATH = re.compile(r"^(/|[a-zA-Z][\w+.-]*:/|delta\.`|\.{1,2}/)")

_SHOWN = 3

VIEWS = ("VIEW", "TEMPORARY", "TEMPORARY_VIEW", "METRIC_VIEW")


class SparkTables:
    """Finds tables by name for one Spark session and opens their logs.

    As a function it is what begin and extend ask for: a registered table is opened by its path, a name is resolved.
    """

    def __init__(self, spark: SparkSession, lake_root: str | None, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._lake_root = lake_root
        self._options = dict(options)

    def __call__(self, table: TableRef | str) -> DeltaLog:
        """The table's log. Raises what `locate` raises, and SourceMoved."""
        if isinstance(table, TableRef):
            finders = (by_name(self.locate, self._options), beside(self._options))
            return open_registered(table, finders, self._options)
        return DeltaLog.open(self.locate(table)[0], self._options)

    def locate(self, name: str) -> tuple[str, Addressing]:
        """Where the table lies and how its name leads there.

        Raises TableNotFound, and NotADeltaTable, for views too.
        """
        if PATH.match(name):
            return resolve(name, "/", self._options)
        kind = self._kind(name)
        if kind is not None:
            return self._location(name, kind), Addressing.CATALOG
        if self._lake_root is None:
            near = self._near(name)
            hint = f"Did you mean {' or '.join(near)}?" if near else "No name in Spark's catalog is like it."
            raise TableNotFound(path=f"{name} (in Spark's catalog; no lake_root was given)", hint=hint)
        try:
            return resolve(name, self._lake_root, self._options)
        except TableNotFound as error:
            near = self._near(name)
            if not near:
                raise
            hint = f"{error.hint} In Spark's catalog there is {' and '.join(near)}."
            raise TableNotFound(path=error.facts["path"], hint=hint) from error

    def reference(self, name: str) -> TableRef:
        """The table under its name, with its identity."""
        location, addressing = self.locate(name)
        log = DeltaLog.open(location, self._options)
        return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=addressing)

    def is_view(self, name: str) -> bool:
        """Whether the name leads to a view in Spark's catalog."""
        return not PATH.match(name) and (self._kind(name) or "").upper() in VIEWS

    def names(self) -> tuple[str, ...]:
        """The Delta tables of Spark's catalog, `database.table`, sorted."""
        catalog = self._spark.catalog
        found = [
            f"{spelled(database.name)}.{spelled(table.name)}"
            for database in catalog.listDatabases()
            for table in catalog.listTables(database.name)
            if not table.isTemporary and (table.tableType or "").upper() not in VIEWS
        ]
        return tuple(sorted(name for name in found if self._is_delta(name)))

    def _near(self, name: str) -> list[str]:
        """Up to three tables of the schema that is named, or of the current one, with names like it."""
        catalog = self._spark.catalog
        schema, _, table = name.rpartition(".")
        try:
            found = [one.name for one in catalog.listTables(schema or None) if not one.isTemporary]
        except AnalysisException:
            return []
        inside = schema or catalog.currentDatabase()
        return [f"{inside}.{spelled(one)}" for one in alike(table, found)][:_SHOWN]

    def _is_delta(self, name: str) -> bool:
        try:
            self.locate(name)
        except (NotADeltaTable, TableNotFound):  # another format, or dropped meanwhile
            return False
        return True

    def _kind(self, name: str) -> str | None:
        """MANAGED, EXTERNAL, VIEW or TEMPORARY; None where the catalog does not know the name."""
        try:
            return str(self._spark.catalog.getTable(name).tableType)
        except AnalysisException as error:
            if (error.getCondition() or "").startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "PARSE_SYNTAX")):
                return None
            raise

    def _location(self, name: str, kind: str) -> str:
        if kind.upper() in VIEWS:
            raise NotADeltaTable(path=name, problem="it is a view")
        try:
            detail = DeltaTable.forName(self._spark, name).detail().select("location").collect()
        except AnalysisException as error:
            raise NotADeltaTable(path=name, problem=str(error).splitlines()[0]) from error
        if not detail:
            raise TableNotFound(path=name)
        return str(detail[0][0])
