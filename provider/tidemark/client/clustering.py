"""Clustering of tables from a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.client.context import ClientContext
from tidemark.clustering.model.tables import ClusteredTable, Goal, Reclustered
from tidemark.clustering.planning.conditions import bounds_in
from tidemark.clustering.worker import tables
from tidemark.clustering.worker.looking import clustering_information
from tidemark.clustering.worker.recluster import recluster_table
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ClusteringOfALake"]

_LOWEST = Goal(depth=1.0)
_HISTORY = (
    "planned_at TIMESTAMP, state STRING, how STRING, why STRING, planned_bytes BIGINT, bytes BIGINT,"
    " files_removed BIGINT, files_added BIGINT, depth_before DOUBLE, depth_after DOUBLE, seconds DOUBLE,"
    " version BIGINT, ended_at TIMESTAMP, error STRING, run STRING"
)


class ClusteringOfALake:
    """The part of `Lake` that looks after the clustering of tables."""

    _context: ClientContext

    def clustering_information(
        self, table: str, columns: Sequence[str] | None = None, *, errors: int = 10
    ) -> dict[str, Any]:
        """The state of the table's clustering, with the fields of SYSTEM$CLUSTERING_INFORMATION by their names there.

        A file counts as a partition. `columns`: any columns with statistics, by default those of the key. `errors`: how
        many of the last errors are shown. The log alone is read. Raises ClusteringKeyMissing, ClusteringKeyRefused,
        TableNotFound.
        """
        context = self._context
        log = context.tables(table)
        return clustering_information(context.store, log, columns, table=table, errors=errors).to_plain()

    def cluster_by(self, table: str, columns: Sequence[str], *, goal: Goal | None = None) -> ClusteredTable:
        """Let the table be clustered by these columns, and keep it so, as the DAG `keep_tables_clustered`.

        Rewrites no file. `goal`: depth and budgets of the table. A second run changes nothing. Raises
        ClusteringKeyRefused, TableNotFound.
        """
        context = self._context
        reference = context.tables.reference(table)
        return tables.set_key(context.runtime, reference, columns, key=_new_key(context), by=context.who, goal=goal)

    def drop_clustering_key(self, table: str) -> None:
        """The table has no key from now on; its files stay. A second run changes nothing. Of a table that is gone the
        registration ends. Raises TableNotFound for one that was not registered.
        """
        context = self._context
        tables.drop_key(context.runtime, self._table(table), key=_new_key(context), by=context.who)

    def suspend_recluster(self, table: str) -> ClusteredTable:
        """The table is not reclustered by itself until it is resumed. Raises ClusteringKeyMissing, TableNotFound."""
        context = self._context
        return tables.suspend_recluster(context.store, context.tables, self._table(table), by=context.who)

    def resume_recluster(self, table: str) -> ClusteredTable:
        """The table is reclustered by itself again. Raises ClusteringKeyMissing, TableNotFound."""
        context = self._context
        return tables.resume_recluster(context.store, context.tables, self._table(table), by=context.who)

    def recluster(
        self, table: str, *, max_size: int | None = None, depth: float | None = None, where: str | None = None
    ) -> Reclustered:
        """Recluster the table now, also if it is suspended, within `max_size` bytes.

        `depth`: the average depth to reach, by default the lowest. `where`: bounds of columns of the key, joined by
        AND. The depth is then that of files which can have such rows. A conflict with other writers loses nothing:
        `state` is then `left`. Raises SqlCompilationError and InvalidArgument for another condition,
        ClusteringKeyMissing, TableNotFound.
        """
        context = self._context
        reference = context.tables.reference(table)
        kept = tables.register_clustered(context.store, context.tables, reference, by=context.who)
        goal = Goal(depth=_LOWEST.depth if depth is None else depth, file_bytes=kept.goal.file_bytes)
        return recluster_table(
            context.runtime,
            kept,
            key=_new_key(context),
            goal=goal,
            most_bytes=max_size,
            within=() if where is None else bounds_in(where),
            by_hand=True,
        )

    def clustered_tables(self) -> tuple[ClusteredTable, ...]:
        """The tables that are kept clustered, by name."""
        return tables.list_clustered(self._context.store)

    def recluster_history(self, table: str) -> DataFrame:
        """The reclusterings of a table, newest first: bytes, depth before and after, seconds, version, error."""
        context = self._context
        found = tables.recluster_history(context.store, self._table(table))
        rows = [
            (
                *(one.planned_at, one.state.value, one.how.value, one.why, one.planned_bytes, one.bytes),
                *(one.files_removed, one.files_added, one.depth_before, one.depth_after, one.seconds),
                *(one.version, one.ended_at, one.error, one.run),
            )
            for one in found
        ]
        return context.spark.createDataFrame(rows, _HISTORY)

    def _table(self, name: str) -> TableRef:
        """The table, or one that is gone, as it was registered. Raises TableNotFound."""
        context = self._context
        return tables.table_or_registered(context.store, context.tables.reference, name, context.place_of(name))


def _new_key(context: ClientContext) -> TransactionKey:
    return TransactionKey("client", context.store.new_id(), "transaction")
