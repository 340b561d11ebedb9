"""A control store with replications whose objects stand in every way that the monitor tells apart. No Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.airflow.monitored import DAG
from tests.applies import run_apply
from tests.control.change_stream_model import Clock
from tests.control.replication_model import Ends, WorkerDied, World, at, columns, found
from tidemark.control.store import ControlStore
from tidemark.errors import SourceUnreachable
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import AppliedObject, AppliedObjects, ApplyReport
from tidemark.replication.model.replication import Actor, BackfillProgress, ReplicationOptions, Selection
from tidemark.replication.store import replicated_objects, replication_errors
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import get_replication
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

__all__ = ["REASON", "WORST_FIRST", "MonitoredReplications", "made_in"]

REASON = "column weight may have any value in rows that are older than it"
WORST_FIRST = (
    "shop.payments", "shop.stock", "shop.reviews", "shop.customers", "shop.vouchers", "shop.items", "shop.orders",
)  # fmt: skip


def _by(task: str) -> Actor:
    key = str(TransactionKey(DAG, "scheduled__2026-11-22", task))
    return Actor(who=key, run=key)


@dataclass
class MonitoredReplications:
    """`shop`: `payments` failed, `stock` needs a backfill, `reviews` cannot be replicated, `customers` is at 43 %,
    `vouchers` waits for its backfill, `items` is behind, `orders` is current. `crm` is paused, and has no objects.
    """

    root: Path
    url: str
    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def __post_init__(self) -> None:
        self.store = ControlStore(self.url, keep_connections=True)
        self.clock = Clock(self.now - timedelta(hours=3))
        self.shop = World(
            self.store, self.root / "shop", ReplicationOptions(target="lake"), self.clock, name="shop",
            source_conn_id="shop_database", selection=Selection(include=("shop",)), by=_by("create"),
        )  # fmt: skip

    def fill(self) -> MonitoredReplications:
        self._crm()
        shop = self.shop
        shop.start("shop.orders", "shop.items", "shop.stock", "shop.payments", "shop.customers", "shop.vouchers")
        shop.source.lag_bytes = 48_200_000
        for name in ("shop.orders", "shop.items", "shop.stock"):
            shop.backfill(name, by=_by("backfill"))
        self._needs_backfill("shop.stock")
        with pytest.raises(SourceUnreachable):
            shop.backfill("shop.payments", Ends.ERROR, by=_by("backfill"))
        self._register_all(unsupported="row security hides rows of it from the user of the connection")
        shop.source.commit("id of shop.items")
        self.clock.now = self.now - timedelta(minutes=4)
        self.active("shop.customers", done=51_600, expected=120_000)
        shop.capture(by=_by("capture"))
        return self

    def active(self, name: str, *, done: int, expected: int) -> None:
        """Its backfill is under way."""
        if self.shop.object(name).state != "active":
            with pytest.raises(WorkerDied):
                self.shop.backfill(name, Ends.WORKER_DIED_BEFORE, by=_by("backfill"))
        one, progress = self.shop.object(name), BackfillProgress(expected, done, self.clock.now)
        assert self.store.write(
            lambda connection: replicated_objects.set_progress(
                connection, one.uid, number=one.writes, progress=progress
            )
        )

    def many(self, count: int) -> MonitoredReplications:
        """A replication of `count` objects that wait for their backfills, the last of which has failed."""
        self.shop.start(*(f"shop.t{number:05}" for number in range(count)))
        with pytest.raises(SourceUnreachable):
            self.shop.backfill(f"shop.t{count - 1:05}", Ends.ERROR)
        return self

    def errors(self, name: str, *, count: int) -> None:
        """So many different errors of the replication as a whole, the newest with the highest number."""
        uid = get_replication(self.store, name).uid
        for number in range(count):
            met = {"reason": "SourceUnreachable", "message": f"reason {number}", "by": _by("capture")}
            at = self.now + timedelta(seconds=number)
            self.store.write(lambda c, m=met, a=at: replication_errors.keep(c, uid, None, at=a, **m))

    def _register_all(self, *, unsupported: str) -> None:
        there = [found(one.name.text) for one in self.shop.objects()]
        self.shop.register(*there, found("shop.reviews", unsupported=unsupported))

    def _needs_backfill(self, name: str) -> None:
        shop = self.shop
        shop.source.commit(f"id of {name}")
        shop.capture(by=_by("capture"))
        report = ApplyReport(at(16), columns("id", "x"), 0, 0, {}, needs_backfill=REASON)
        stopped = AppliedObjects((AppliedObject(shop.object(name).uid, report),))
        run_apply(
            Runtime(self.store, run=lambda _: JobResult(to_plain(stopped)), paths=JobPaths("/w", "/x")),
            shop.object(name).uid,
            by=_by("apply"),
        )

    def _crm(self) -> None:
        self.shop.create("crm", Selection(include=("crm",)), event_log=(self.root / "crm").as_uri())
        lifecycle.start(self.store, "crm", by=_by("prepare"))
        lifecycle.validated(self.store, "crm", system_id="cluster-1", position=at(16), by=_by("prepare"))
        lifecycle.pause(self.store, "crm", by=Actor("ana", "the CRM moves"), at_once=True)


def made_in(root: Path) -> MonitoredReplications:
    """In a store of their own, not filled yet."""
    store = ControlStore(f"sqlite:///{root}/control.db")
    store.migrate()
    store.close()
    return MonitoredReplications(root, f"sqlite:///{root}/control.db")
