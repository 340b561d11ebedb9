"""A control store with objects of many kinds that need attention, each for a reason of its own. No Spark."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.airflow.monitored import DAG, Monitored
from tests.airflow.monitored_replications import MonitoredReplications
from tests.guarantees.view_world import ViewWorld
from tidemark.materialized.model.definitions import KeptKind, TargetLag
from tidemark.materialized.worker.views import comment_on_view, suspend_view
from tidemark.model.statements import TransactionKey
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker.definitions import create_pipe, note_pipe_run, pause_pipe

__all__ = ["BY", "IN_THE_STORE", "Needing"]

BY = f"{DAG}/scheduled__1/load/-1"
IN_THE_STORE = [
    ("failed", "replicated_table", "shop/shop.payments"),
    ("failed", "stream", "clicks"),
    ("failed", "stream", "stock"),
    ("warning", "pipe", "shop.bad_files"),
    ("warning", "replicated_table", "shop/shop.reviews"),
    ("warning", "replicated_table", "shop/shop.stock"),
    ("locked", "stream", "left"),
    ("stopped", "dynamic_table", "city_counts"),
    ("stopped", "pipe", "shop.orders_pipe"),
    ("stopped", "replication", "crm"),
]
"""Need, kind and name of all that the store alone knows, in order."""


class Needing:
    """The streams and replications of the monitor's world. `left`: its window was left an hour ago. `shop.orders_pipe`
    is paused, and `shop.bad_files` has skipped a file. `city_counts` is suspended, `late_counts` is behind its lag.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.monitored = Monitored(root / "lake", f"sqlite:///{root}/control.db")
        self.store = self.monitored.store
        self.store.migrate()
        self.url = self.monitored.url

    def fill(self) -> Needing:
        self.monitored.fill()
        MonitoredReplications(self.root / "replicated", self.url).fill()
        self.left("left")
        self._pipes()
        self._views()
        self.monitored._clock(hours=0)
        return self

    def left(self, name: str) -> None:
        """A stream whose window was opened two hours ago, and left."""
        made = self.monitored
        made._clock(hours=2.5)
        made._stream(name)
        made._commit(name, times=1)
        made._clock(hours=2)
        made._begin("manual__left", name)

    def pipe(self, name: str) -> None:
        statement = "COPY INTO shop.orders FROM @landing"
        create_pipe(self.store, name, statement, queue=queue_path("/lake", name), by=BY)

    def _pipes(self) -> None:
        self.monitored._clock(hours=1)
        for name in ("shop.orders_pipe", "shop.bad_files", "shop.good_files"):
            self.pipe(name)
        pause_pipe(self.store, "shop.orders_pipe", by=BY)
        now = self.store.clock()
        for name, problem in (("shop.bad_files", "a file was skipped"), ("shop.good_files", None)):
            (uid,) = {one.uid for one in self._all_pipes() if one.name == name}
            note_pipe_run(self.store, uid, problem, None, now, by=BY)

    def _all_pipes(self) -> tuple[object, ...]:
        from tidemark.pipes.worker.definitions import list_pipes

        return list_pipes(self.store)

    def _views(self) -> None:
        self.views = ViewWorld(self.root / "views", self.url)
        self.views.clock.now = self.monitored.now - timedelta(hours=1)
        for name in ("city_counts", "late_counts"):
            lag = TargetLag(timedelta(minutes=5))
            self.views.view(name, "source", kind=KeptKind.DYNAMIC_TABLE, lag=lag)
            self.views.refresh_due(str(TransactionKey(DAG, "scheduled__1", name)))
            comment_on_view(self.store, name, "for the map", by=BY)
        suspend_view(self.store, "city_counts", why="its source is loaded again", by=BY)
