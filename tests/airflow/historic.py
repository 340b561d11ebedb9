"""A control store with an object of every kind, each with a history. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from tests.airflow.monitored import DAG
from tests.airflow.needing import BY, Needing
from tests.control.change_stream_model import ChangeStreamWorld, Clock, segment
from tests.unit.channels.token_table import Tokens
from tests.unit.lake.delta_directories import born
from tests.unit.search.tables import METADATA
from tidemark.change_streams.model.change_streams import Partition
from tidemark.change_streams.store.schema import partitions
from tidemark.change_streams.worker.groups import create_group
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, chunk_written, commit_wave, plan_wave
from tidemark.channels.store import landing_tables
from tidemark.clustering.model.tables import ClusteredTable, How, Recluster, ReclusterState
from tidemark.clustering.store import reclusterings, tables
from tidemark.control.object_histories import HISTORIES
from tidemark.control.object_list import ObjectsWish, show_all
from tidemark.control.samples import keep_sample
from tidemark.control.schema import all_tables
from tidemark.control.store import ControlStore
from tidemark.materialized.model.definitions import KeptKind
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing, TableRef
from tidemark.pipes.worker.definitions import get_pipe, note_pipe_run
from tidemark.search.model.jobs import Kept, UpkeepMark
from tidemark.search.planning.sql import parse_targets
from tidemark.search.store import searches
from tidemark.search.worker.definitions import add_search

__all__ = ["CAPTURE", "HIDDEN", "HTML", "RUNS", "Changes", "Historic", "copy_rows", "old_partitions", "tokens"]

HTML = "shop.<img src=x onerror=alert(1)>"
HIDDEN = str(TransactionKey("not_for_all", "r", "load"))
"""A run of a DAG that nobody may read."""
CAPTURE = str(TransactionKey(DAG, "hourly__1", "capture"))
"""The task that captures the change stream."""
RUNS = 12
"""So many runs of the pipe, and so many reclusterings."""


class Historic:
    """`shop.good_files` is a pipe with runs, and a clustered table is called HTML. The last runs of both are those of
    HIDDEN. The change stream is that of `Changes`.
    """

    def __init__(self, root: Path) -> None:
        self.needing = Needing(root).fill()
        self.store, self.url, self.now = self.needing.store, self.needing.url, self.needing.monitored.now
        self._runs_of_a_pipe()
        self._view()
        self._reclusterings()
        self._upkeep()
        Changes(root, self.url, self.now)
        born(root / "landing")
        tokens(self.store, root / "landing", self.now)

    def named(self) -> dict[str, str]:
        """One object of each kind that has a history, by its name."""
        everything = self.store.read(lambda c: show_all(c, ObjectsWish(), now=self.now))
        chosen = {"stream": "order_changes", "replication": "shop", "replicated_table": "shop/shop.items"}
        found = {**{one.kind: one.name for one in everything}, **chosen, "pipe": "shop.good_files"}
        return {kind: found[kind] for kind in HISTORIES}

    def _by(self, number: int, of: int) -> str:
        return HIDDEN if number == of - 1 else str(TransactionKey(DAG, f"scheduled__{number}", "work"))

    def _runs_of_a_pipe(self) -> None:
        uid = get_pipe(self.store, "shop.good_files").uid
        for number in range(RUNS):
            figures = {
                "files": 10 + number, "files_loaded": 9 + number, "files_with_errors": number % 3,
                "rows": 1000 * number, "bytes": 4096 * number, "errors": number % 3, "pending": 0, "seconds": 12.5,
            }  # fmt: skip
            at = self.now + timedelta(minutes=number)
            note_pipe_run(self.store, uid, None, None, at, by=self._by(number, RUNS), figures=figures)

    def _view(self) -> None:
        views = self.needing.views
        views.view("by_city", "source", kind=KeptKind.MATERIALIZED_VIEW)
        for number in range(2):
            views.sources["source"].append()
            views.refresh("by_city", f"run {number}")

    def _reclusterings(self) -> None:
        table = TableRef(HTML, "file:///lake/html", "id of html", Addressing.LAKE)
        kept = ClusteredTable("clustered-1", table, ("id",), self.now)
        self.store.write(lambda c: tables.register_table(c, kept, by=BY))
        for number in range(RUNS):
            planned = Recluster(
                f"r{number}", kept.uid, self._by(number, RUNS), self.now + timedelta(hours=number), How.CUBES,
                "it is deeper than <4>", number, 1 << 20, 1 << 18, 6.5,
            )  # fmt: skip
            ended = self._ended(planned, failed=number == RUNS - 1)
            self.store.write(lambda c, one=planned: reclusterings.plan_recluster(c, one))
            self.store.write(lambda c, one=ended: reclusterings.end_recluster(c, one))

    def _ended(self, planned: Recluster, *, failed: bool) -> Recluster:
        at = planned.planned_at + timedelta(seconds=30)
        if failed:
            return replace(planned, state=ReclusterState.FAILED, ended_at=at, error="it is secret")
        return replace(
            planned, state=ReclusterState.DONE, bytes=1 << 20, files_removed=9, files_added=2, depth_after=3.5,
            seconds=30.0, ended_at=at,
        )  # fmt: skip

    def _upkeep(self) -> None:
        table = TableRef("shop.orders", "file:///lake/shop/orders", "id of orders", Addressing.LAKE)
        search = add_search(self.store, table, METADATA, parse_targets("EQUALITY(id)"), by=BY)
        mark = UpkeepMark(search.app_id, 5, 3, 1000, True, self.now - timedelta(seconds=9))
        commits = [Kept(version, mark, 300, 2400, self.now + timedelta(seconds=version)) for version in (1, 2)]
        self.store.write(lambda c: searches.keep_commits(c, search, commits, run=BY))


def tokens(store: ControlStore, landing: Path, at: datetime) -> Tokens:
    """The landing table at that path, with two channels, one of them with markup in its name, and their history."""
    table = TableRef("shop.landing", landing.as_uri(), "id-1", Addressing.PATH)
    store.write(lambda c: landing_tables.register(c, table, by=BY, at=at))
    ingested = {"rows": 1200, "errors": 3}
    store.write(lambda c: keep_sample(c, landing_tables.KIND, "id-1", at=at, run=BY, figures=ingested))
    made = Tokens(landing, at - timedelta(minutes=3))
    for number in range(3):
        made.minute(**{"ORDERS": str(7 * number), HTML: f"file_{number}"})
    return made


def copy_rows(source: ControlStore, target: ControlStore) -> None:
    """All rows of the one store are those of the other, which may be in another database."""
    target.write(lambda c: [c.execute(table.delete()) for table in reversed(all_tables().sorted_tables)])
    for table in all_tables().sorted_tables:
        rows = source.read(lambda c, t=table: [dict(row) for row in c.execute(sa.select(t)).mappings()])
        if rows:
            target.write(lambda c, t=table, r=rows: c.execute(t.insert(), r))


class Changes:
    """The change stream `s`, with the group `mirror`. Two partitions, the left of which has split, and one of its
    children has merged with the right one. The last wave of the group has failed in one partition.
    """

    def __init__(self, root: Path, url: str, now: datetime) -> None:
        clock = Clock(now - timedelta(hours=2))
        self.store = ControlStore(url, clock=clock)
        world = self.world = ChangeStreamWorld(self.store, root / "changes", clock, run=CAPTURE)
        create_group(self.store, "s", "mirror", "earliest")
        left, right = world.active()
        self._batch(left, right)
        world.batch(segment(left.token, world.clock.now + timedelta(seconds=1), 70), closed=[left], opened=halves(left))
        first, second, _ = world.active()
        self._batch(first, second)
        world.batch(closed=[second, right], opened=[(second.lo, right.hi)])
        for number in range(2):
            self._wave(f"{DAG}/wave__{number}", fails=number == 1)

    def _batch(self, *of: Partition) -> None:
        at = self.world.clock.now + timedelta(seconds=1)
        self.world.batch(*(segment(one.token, at, 10 * number + 5) for number, one in enumerate(of)))

    def _wave(self, run: str, *, fails: bool) -> None:
        planned = plan_wave(self.store, "s", "mirror", run=run, max_chunks=10, max_rows=100)
        task = f"{run}/read/0"
        for number, chunk in enumerate(begin_chunks(self.store, planned.chunks, run, task=task)):
            if fails and number == 0:
                chunk_failed(self.store, chunk, run, "it is secret", task=HIDDEN)
            else:
                chunk_written(self.store, chunk, chunk.expected, {})
        if not fails:
            commit_wave(self.store, "s", "mirror", run=run)


def old_partitions(store: ControlStore, count: int, now: datetime) -> None:
    """Ended partitions of the change stream, `old-0` the first of them, long before the others."""
    first = now - timedelta(days=30)

    def insert(connection: sa.Connection) -> None:
        uid = connection.execute(sa.select(partitions.c.stream_uid).limit(1)).scalar_one()
        like = {"stream_uid": uid, "lo": 0, "hi": 65_536, "parents": "[]", "batch": 0, "hot": 0, "quiet": 0}
        for number in range(count):
            start = first + timedelta(minutes=number)
            values = {**like, "token": f"old-{number}", "start_at": start, "end_at": start + timedelta(minutes=1)}
            connection.execute(partitions.insert().values(values))

    store.write(insert)


def halves(one: Partition) -> list[tuple[int, int]]:
    middle = (one.lo + one.hi) // 2
    return [(one.lo, middle), (middle, one.hi)]
