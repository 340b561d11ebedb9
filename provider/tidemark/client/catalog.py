"""Table names in a notebook: what Spark's catalog knows, else a path, else a table of the lake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from tidemark.client.sessions import ClientSession
from tidemark.errors import AmbiguousTableName, NotADeltaTable, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.moved import Finder, below_the_root, beside, by_name, open_registered
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage, canonical_uri
from tidemark.lake.tables import location_of, resolve
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.alike import alike
from tidemark.sql.identifiers import spelled
from tidemark.sql.table_names import TableName, table_name
from tidemark.streams.driver.catalog_tables import VIEWS, catalog_location, is_known, kind_of, same_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["VIEWS", "SparkTables"]

_SHOWN = 3


class SparkTables:
    """Finds tables by name for one Spark session and opens their logs.

    As a function it serves `begin` and `extend`: a registered table is opened by its path, a name is resolved.
    """

    def __init__(self, session: ClientSession, lake_root: str | None, options: Mapping[str, str]) -> None:
        self._session = session
        self._lake_root = lake_root
        self._options = dict(options)

    @property
    def _spark(self) -> SparkSession:
        return self._session.spark

    def __call__(self, table: TableRef | str) -> DeltaLog:
        """The table's log. Raises what `locate` raises, and SourceMoved."""
        if isinstance(table, TableRef):
            return open_registered(table, self._finders(), self._options)
        return DeltaLog.open(self.locate(table)[0], self._options)

    def _finders(self) -> tuple[Finder, ...]:
        below = () if self._lake_root is None else (below_the_root(self._lake_root, self._options),)
        return by_name(self.locate, self._options), beside(self._options), *below, self._in_the_catalog

    def locate(self, name: str) -> tuple[str, Addressing]:
        """The table's path and the origin of its name.

        Raises TableNotFound; NotADeltaTable, for views too; AmbiguousTableName for a name that is two tables.
        """
        meant = table_name(name)
        if meant.path is not None:
            return resolve(name, "/", self._options)
        kind = kind_of(self._spark, name)
        if kind is None:
            return self._below_the_root(meant)
        location = catalog_location(self._spark, name, kind)
        if Addressing.LAKE in meant.ways and self._lake_root is not None:
            return self._of_two(meant, canonical_uri(location), self._lake_root)
        return location, Addressing.CATALOG

    def require_one(self, name: str) -> None:
        """Say nothing if the name is one table, of the catalog or below the root. A name that the catalog does not know
        costs less than by `locate`, and its table is not looked for. Raises as `locate`.
        """
        meant = table_name(name)
        below = self._lake_root is not None and Addressing.LAKE in meant.ways
        if meant.path is None and not (below and not is_known(self._spark, name)):
            self.locate(name)

    def _below_the_root(self, name: TableName) -> tuple[str, Addressing]:
        """The path of a name that the catalog does not know. Raises TableNotFound."""
        if self._lake_root is None or name.only_in_catalog:
            near = self._near(name.text)
            hint = f"Did you mean {' or '.join(near)}?" if near else "No name in Spark's catalog is like it."
            nowhere = "no lake_root was given" if self._lake_root is None else "the lake root has no catalogs"
            raise TableNotFound(path=f"{name.text} (in Spark's catalog; {nowhere})", hint=hint)
        try:
            return resolve(name.text, self._lake_root, self._options)
        except TableNotFound as error:
            near = self._near(name.text)
            if not near:
                raise
            hint = f"{error.hint} In Spark's catalog there is {' and '.join(near)}."
            raise TableNotFound(path=error.facts["path"], hint=hint) from error

    def _of_two(self, name: TableName, in_catalog: str, lake_root: str) -> tuple[str, Addressing]:
        """The table of the catalog, if no other one has the name below the root. Raises AmbiguousTableName."""
        below, _ = location_of(name.text, lake_root)
        if below == in_catalog or not Storage(below, self._options).exists(LOG_DIRECTORY):
            return in_catalog, Addressing.CATALOG
        raise AmbiguousTableName(name=name.text, path=below, location=in_catalog)

    def reference(self, name: str) -> TableRef:
        """The table under its name, with its identity."""
        location, addressing = self.locate(name)
        log = DeltaLog.open(location, self._options)
        return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=addressing)

    def is_view(self, name: str) -> bool:
        """Whether the name leads to a view in Spark's catalog."""
        return table_name(name).path is None and (kind_of(self._spark, name) or "").upper() in VIEWS

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

    def _in_the_catalog(self, table: TableRef) -> tuple[TableRef, ...]:
        return same_table(self._spark, table, self._options) if table.addressing is Addressing.CATALOG else ()
