"""A PostgreSQL database, its random writers, and a replication of it with a store, an event log and targets of its own.

Worker and driver are one process here; what a DAG run does step by step, `turn` does in its order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tests.applies import run_apply
from tests.guarantees.replication_comparison import differences, event_rows, history_of, source_rows, target_rows
from tests.guarantees.replication_tables import SCHEMA, SETUP, SourceTable, source_tables
from tests.guarantees.replication_writers import Writers, opened
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.errors import BackfillInterrupted
from tidemark.jobs.run import run
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.model.streams import Addressing, TableRef
from tidemark.replication.model.replication import (
    Actor,
    ObjectName,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    Selection,
)
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.backfill import run_backfill
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.definitions import create_replication, get_replication
from tidemark.replication.worker.objects import objects_of, request_backfill
from tidemark.replication.worker.preparing import Prepared, prepare
from tidemark.replication.worker.retention import expire_events
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["NAME", "ReplicationWorld", "made_source"]

NAME = "r"


def made_source(
    server: PostgresServer, seed: int, only: Sequence[str] = (), without: Sequence[str] = ()
) -> tuple[SourceAddress, tuple[SourceTable, ...], Writers]:
    """A new database with the tables (`only` some of them), and its writers, who have not begun."""
    address = server.address(server.new_database())
    tables = tuple(table for table in source_tables() if not only or table.name in only)
    with opened(address) as connection, connection.cursor() as cursor:
        for text in (*SETUP, *(text for table in tables for text in table.create())):
            cursor.execute(text)
    return address, tables, Writers(address, tables, seed, without=without)


def _transactions_before(connection: Any, tables: Sequence[SourceTable]) -> set[int]:
    """Those whose changes of tables without a key a trigger has kept, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.history",))
        kept = cursor.fetchone() == (True,)
    return {tx for table in tables if kept and not table.key for tx in history_of(connection, table)}


class ReplicationWorld:
    """The replication `r` of all tables at `address`; what it knows and writes lies at `home`, and is found again.

    Writers must be at rest until `prepare` has made the slot: what was there `before` is in no event.
    """

    def __init__(
        self, spark: SparkSession, address: SourceAddress, tables: Sequence[SourceTable], home: Path, **options: Any
    ) -> None:
        self.spark, self.address, self.tables, self.home = spark, address, tuple(tables), home
        self.store = ControlStore(f"sqlite:///{home}/tidemark.db")
        self.source = open_source(address)
        self.paths = JobPaths(f"{home}/work", f"{home}/jobs")
        self.run_id = "first"
        self.said: Callable[[str], None] = lambda _: None  # hears what the jobs say, as they go
        self.expired: list[DataFrame] = []
        with opened(address) as connection:
            self.before = _transactions_before(connection, tables)
        create_replication(
            self.store,
            name=NAME,
            kind=SourceKind.POSTGRESQL,
            source_conn_id="source",
            selection=Selection(include=(f"{SCHEMA}.*",), exclude=(f"{SCHEMA}.history",)),
            options=ReplicationOptions(target=f"{home}/lake", **options),
            event_log=f"{home}/events",
            by=self.by(),
            if_not_exists=True,
        )

    def by(self, task: str = "prepare") -> Actor:
        """A task of the DAG run under way; with another `run_id` it is another run's."""
        return Actor("a test", run=f"replicate/{self.run_id}/{task}/-1")

    def job(self, spec: JobSpec) -> JobResult:
        return run(self.spark, spec, source=self.address, say=self.said)

    @property
    def replication(self) -> Replication:
        return get_replication(self.store, NAME)

    def objects(self) -> dict[str, ReplicatedObject]:
        """By the table's name."""
        return {one.name.table: one for one in objects_of(self.store, NAME)}

    # The steps of a DAG run.

    def prepare(self) -> Prepared:
        """Publication, slot and objects are as the source is now."""
        patience = timedelta(seconds=20)
        return prepare(
            self.store, NAME, source=self.source, targets=self._target, by=self.by("prepare"), patience=patience
        )

    def _target(self, name: ObjectName) -> TableRef:
        path = f"{self.home}/lake/{name.folded}"
        return TableRef(name=path, path=path, table_id="", addressing=Addressing.PATH)

    def capture(self) -> None:
        capture(Runtime(self.store, run=self.job, paths=self.paths), NAME, source=self.source, by=self.by("capture"))

    def backfill(self, name: str) -> None:
        """One that DDL of the source came in between is left to the next run, as its task would fail."""
        with suppress(BackfillInterrupted):
            run_backfill(
                Runtime(self.store, run=self.job, paths=self.paths),
                self.objects()[name].uid,
                by=self.by(f"backfill_{name}"),
                cancel=lambda: None,
                read_progress=lambda _: None,
                partitions=1,
            )

    def apply(self, name: str) -> None:
        by = self.by(f"apply_{name}")
        run_apply(Runtime(self.store, run=self.job, paths=self.paths), self.objects()[name].uid, by=by)
        if self.objects()[name].needs_backfill:
            request_backfill(self.store, NAME, [f"{SCHEMA}.{name}"], by=by)

    def expire(self) -> None:
        """Whatever may go goes, however young; `_events` remembers it."""
        before = self._log()
        expire_events(Runtime(self.store, run=self.job, paths=self.paths), NAME, keep=timedelta(0))
        self.expired.append(before.exceptAll(self._log()))

    def _log(self) -> DataFrame:
        """The event log as it is now."""
        version = DeltaLog.open(self.replication.event_log).head()
        return self.spark.read.format("delta").option("versionAsOf", version).load(self.replication.event_log)

    def _events(self) -> DataFrame:
        """Every event that the log ever had."""
        return reduce(lambda all_, gone: all_.unionAll(gone), self.expired, self._log())

    def turn(self, run_id: str, chance: random.Random | None = None, share: float = 1.0) -> None:
        """A DAG run: capture, then each object's backfill and apply; by chance only a share of the steps, and
        capture amid them; the event log is expired by chance then, too.
        """
        self.run_id, chance = run_id, chance or random.Random(0)
        self.prepare()
        steps = [(step, name) for name in self.objects() for step in (self.backfill, self.apply)]
        before = chance.randrange(len(steps)) if share < 1 else 0
        for number, (step, name) in enumerate(steps):
            if number == before:
                self.capture()
                if share < 1:
                    self.expire()
            if chance.random() < share:
                step(name)
        if share < 1:
            self.expire()

    def catch_up(self) -> None:
        """Until every object shows what is committed now; writers must rest. A needed backfill takes two turns."""
        for number in range(3):
            self.turn(f"last {number}")
            if all(one.applied == self.replication.captured for one in self.objects().values()):
                return
        raise AssertionError(
            [(one.name.text, one.state, one.needs_backfill, one.applied) for one in self.objects().values()]
        )

    # What must hold.

    def require_same(self) -> None:
        """Every mirror is its source, row by row, and what has no key has the events of its history."""
        with opened(self.address) as connection:
            source = source_rows(connection, self.tables)
            wrong = []
            for table in self.tables:
                target = self.spark.read.format("delta").load(self.objects()[table.name].target.path)
                if table.key:
                    wrong.append(differences(table, source[table.name], target_rows(target, table)))
                else:
                    self._require_history(connection, table)
        told = [text for text in wrong if text]
        assert not told, "\n".join(told)

    def _require_history(self, connection: Any, table: SourceTable) -> None:
        """The log has each transaction's changes once and in order; the target has what came after its snapshot."""
        one = self.objects()[table.name]
        events = self._events()
        found, happened = event_rows(events, table, one.source_id), history_of(connection, table)
        happened = {tx: changes for tx, changes in happened.items() if tx not in self.before}
        assert found == happened, _first_difference(found, happened)
        assert one.snapshot is not None
        later = events.where((F.col("object_id") == one.source_id) & (F.col("position") >= one.snapshot.commit))
        rows = later.where("change NOT IN ('SCHEMA', 'TRUNCATE')").select("uuid").collect()
        wanted = {row.uuid for row in rows}
        target = self.spark.read.format("delta").load(one.target.path).select("datastream_metadata.uuid")
        written = [row.uuid for row in target.collect()]
        assert len(written) == len(set(written)), "an event is in the target twice"
        assert wanted <= set(written), f"{len(wanted - set(written))} events are not in the target"


def _first_difference(found: dict[int, Any], happened: dict[int, Any]) -> str:
    lacking, more = sorted(set(happened) - set(found)), sorted(set(found) - set(happened))
    other = [tx for tx in sorted(set(found) & set(happened)) if found[tx] != happened[tx]]
    return f"transactions lacking {lacking[:5]}, too many {more[:5]}, other {other[:5]}"
