"""Keeping tables clustered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import flag_of, key_of, whole_number_of
from tidemark.operators._clustering import bounds_of, depth_of, names_of
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import most_mapped
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.clustering.model.tables import ClusteredTable, Reclustered
    from tidemark.control.store import ControlStore

__all__ = ["AutoClusterOperator"]


class AutoClusterOperator(SparkOperator):
    """Reclusters tables whose files overlap too much, within a budget.

    The log of a table says its depth, so a table within its goal starts no job. Delta's OPTIMIZE rewrites new files and
    as many earlier results as pay. Its commit changes no data, so streams show no change. Other writers continue. If
    another writer commits first, nothing is lost, and the next run tries again. A suspended table is left alone. A
    retry finds the commit of the last attempt. Raises ClusteringKeyMissing, ClusteringKeyRefused,
    ClusteredTableRecreated, TableNotFound, and ReclusteringsFailed after the other tables are done.

    :param tables: names or paths of tables with a clustering key; None: all registered tables. (templated)
    :param cluster_by: columns of the clustering key. The run first gives the tables this key, and registers them with
        the limits below. (templated)
    :param depth: the average depth that is kept; None: the setting of the table, by default 4. (templated)
    :param run_bytes: the most bytes of a table that a run rewrites; None: the setting of the table. (templated)
    :param day_bytes: the most bytes of a table that are rewritten in 24 hours; None: the setting of the table.
        (templated)
    :param file_bytes: the size of rewritten files; None: the setting of the table, by default Delta's. (templated)
    :param plan_only: return the paths of the tables that are not suspended, and start no job. (templated)
    """

    template_fields: Sequence[str] = (
        *("tables", "cluster_by", "depth", "run_bytes", "day_bytes", "file_bytes", "plan_only", "conn_id"),
    )

    def __init__(
        self,
        *,
        tables: str | Sequence[str] | None = None,
        cluster_by: str | Sequence[str] | None = None,
        depth: float | str | None = None,
        run_bytes: int | str | None = None,
        day_bytes: int | str | None = None,
        file_bytes: int | str | None = None,
        plan_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.cluster_by = cluster_by
        self.depth = depth
        self.run_bytes = run_bytes
        self.day_bytes = day_bytes
        self.file_bytes = file_bytes
        self.plan_only = plan_only
        check_constants(
            self,
            tables=names_of,
            cluster_by=names_of,
            depth=depth_of,
            run_bytes=whole_number_of,
            day_bytes=whole_number_of,
            file_bytes=whole_number_of,
            plan_only=flag_of,
        )

    def execute(self, context: Context) -> list[Any]:
        """A list of {table, how, state, why, depth_before, depth_after, bytes, seconds, version}; with `plan_only`
        paths, in lists if Airflow maps over fewer than there are.
        """
        from tidemark.clustering.worker.upkeep import keep_clustered
        from tidemark.model.codec import to_plain
        from tidemark.streams.planning.groups import in_groups

        store = self.hook.open_store()
        found = self._clustered(context, store)
        if flag_of("plan_only", self.plan_only):
            ready = [one for one in found if one.suspended is None]
            self.log.info("%s of %s tables are not suspended.", len(ready), len(found))
            return in_groups([one.table.path for one in ready], most_mapped())
        bounds = bounds_of(self.depth, self.run_bytes, self.day_bytes, self.file_bytes)
        done = keep_clustered(self.runtime(), found, key=key_of(context), bounds=bounds) if found else ()
        for one in done:
            self._say(one)
        return [to_plain(one) for one in done]

    def _clustered(self, context: Context, store: ControlStore) -> tuple[ClusteredTable, ...]:
        """The tables that are meant, registered if they were not."""
        from tidemark.clustering.worker.upkeep import tables_to_keep

        names, columns = names_of("tables", self.tables), names_of("cluster_by", self.cluster_by)
        if names is None:
            return tables_to_keep(store) if columns is None else self._with_key(context, store, None, columns)
        if columns is not None:
            return self._with_key(context, store, names, columns)
        return tuple(self._registered(context, store, name) for name in names)

    def _with_key(
        self, context: Context, store: ControlStore, names: Sequence[str] | None, columns: Sequence[str]
    ) -> tuple[ClusteredTable, ...]:
        from tidemark.clustering.model.tables import Goal
        from tidemark.clustering.worker.tables import set_key
        from tidemark.errors import InvalidArgument

        if names is None:
            raise InvalidArgument(argument="tables", value=None, problem="name the tables that get the key")
        bounds = bounds_of(self.depth, self.run_bytes, self.day_bytes, self.file_bytes)
        goal, key = Goal(**bounds) if bounds else None, key_of(context)
        references = [self.table_by_name(context, name) for name in names]
        runtime = self.runtime()
        return tuple(set_key(runtime, one, columns, key=key, by=str(key), goal=goal) for one in references)

    def _registered(self, context: Context, store: ControlStore, name: str) -> ClusteredTable:
        from tidemark.clustering.worker.tables import register_clustered
        from tidemark.clustering.worker.upkeep import tables_to_keep

        known = tables_to_keep(store, [name])
        if known:
            return known[0]
        reference = self.table_by_name(context, name)
        return register_clustered(store, self.hook.open_table, reference, by=str(key_of(context)))

    def _say(self, done: Reclustered) -> None:
        if done.version is None:
            self.log.info("%s: nothing rewritten. %s", done.table, done.why)
            return
        self.log.info(
            "%s: %s bytes rewritten in %.1f s, average depth %s before and %s after, version %s. %s",
            *(done.table, f"{done.bytes:,}", done.seconds, done.depth_before, done.depth_after),
            *(done.version, done.why),
        )
