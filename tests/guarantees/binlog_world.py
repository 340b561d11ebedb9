"""A MariaDB or MySQL with random writers, and a replication of it with a store, an event log and targets of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql

from tests.applies import run_apply
from tests.databases.mariadb import BinlogServer
from tidemark.control.store import ControlStore
from tidemark.errors import BackfillInterrupted
from tidemark.jobs.run import run
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.streams import Addressing, TableRef
from tidemark.replication.model.replication import (
    Actor,
    ObjectName,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    Selection,
    WriteMode,
)
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.apply import apply_objects
from tidemark.replication.worker.backfill import run_backfill
from tidemark.replication.worker.backfills import run_backfills
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.definitions import create_replication, get_replication
from tidemark.replication.worker.objects import is_due, objects_of, request_backfill
from tidemark.replication.worker.preparing import prepare
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NAME", "BinlogWorld", "RandomWriter"]

NAME = "r"
TABLES = {
    "orders": "(id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40), amount DECIMAL(12,2), at DATETIME(6), raw BLOB)",
    "items": "(a INT, b VARCHAR(12) COLLATE utf8mb4_bin, note LONGTEXT, PRIMARY KEY (a, b))",
}


class RandomWriter(threading.Thread):
    """Transactions of every form until `end`; some are rolled back, wholly or in part."""

    def __init__(self, server: BinlogServer, database: str, seed: int) -> None:
        super().__init__(name=f"writer {seed}", daemon=True)
        self._connection = server.connection(database)
        self._chance = random.Random(seed)
        self._ending = threading.Event()
        self.committed = 0

    def run(self) -> None:
        while not self._ending.is_set() and self._connection.open:
            self.transaction()
            time.sleep(0.002)

    def end(self) -> None:
        self._ending.set()
        self.join(60)
        if self._connection.open:
            self._connection.close()

    def transaction(self) -> None:
        chance = self._chance
        with self._connection.cursor() as cursor, suppress(pymysql.err.MySQLError):  # deadlocks, duplicate keys
            for _ in range(chance.randint(1, 5)):
                cursor.execute(*self._statement())
                if chance.random() < 0.1:
                    cursor.execute("SAVEPOINT s")
                    cursor.execute(*self._statement())
                    cursor.execute("ROLLBACK TO SAVEPOINT s")
            if chance.random() < 0.85:
                self._connection.commit()
                self.committed += 1
                return
        with suppress(pymysql.err.MySQLError):  # the server was killed
            self._connection.rollback()

    def _statement(self) -> tuple[str, tuple[Any, ...]]:
        chance = self._chance
        text = chance.choice(["é", "日本語", "", "x" * 30, None, "a'b\\c"])
        key, other = chance.randint(1, 60), chance.randint(1, 60)
        note = chance.choice([None, "n", "long " * chance.randint(1, 4000)])
        row = (text, chance.randint(-(10**6), 10**6) / 100, f"2024-02-29 12:00:00.{key:06d}", bytes([key, 0]))
        forms: list[tuple[str, tuple[Any, ...]]] = [
            ("INSERT INTO orders (v, amount, at, raw) VALUES (%s, %s, %s, %s), ('two', 0, NULL, NULL)", row),
            ("INSERT INTO orders VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE v = 'again'", (key, *row)),
            ("REPLACE INTO orders VALUES (%s, %s, %s, %s, %s)", (key, *row)),
            ("UPDATE orders SET v = %s, amount = %s WHERE id BETWEEN %s AND %s + 5", (text, row[1], key, key)),
            ("UPDATE orders SET id = id + 1000 WHERE id = %s", (key,)),
            ("DELETE FROM orders WHERE id %% 60 = %s", (key,)),
            ("REPLACE INTO items VALUES (%s, %s, %s)", (key, f"b{other}", note)),
            ("UPDATE items SET note = %s WHERE a = %s", (note, key)),
            ("UPDATE IGNORE items SET b = CONCAT('m', b) WHERE a = %s", (key,)),
            ("DELETE FROM items WHERE a = %s", (other,)),
        ]
        return chance.choice(forms)


@dataclass
class BinlogWorld:
    """The replication `r` of all tables of a database; what it knows and writes is at `home`. `database`: one that
    exists; else one with TABLES is made.
    """

    spark: SparkSession
    server: BinlogServer
    home: Path
    run_id: str = "first"
    database: str = ""
    without_key: WriteMode = WriteMode.APPEND_ONLY
    said: Callable[[str], None] = lambda _: None
    writers: list[RandomWriter] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.database:
            self.database = self.server.new_database()
            for name, columns in TABLES.items():
                self.server.sql(f"CREATE TABLE {name} {columns}", self.database)
        self.address = self.server.address(self.database)
        self.store = ControlStore(f"sqlite:///{self.home}/tidemark.db")
        self.source = open_source(self.address)
        self.paths = JobPaths(f"{self.home}/work", f"{self.home}/jobs")
        create_replication(
            self.store,
            name=NAME,
            kind=self.server.kind,
            source_conn_id="source",
            selection=Selection(include=(f"{self.database}.*",)),
            options=ReplicationOptions(target=f"{self.home}/lake", without_key=self.without_key),
            event_log=f"{self.home}/events",
            by=self.by("create"),
            if_not_exists=True,
        )

    def answer_from(self, server: BinlogServer) -> None:
        """The connection's name leads to another server from now on."""
        self.server, self.address = server, server.address(self.database)
        self.source = open_source(self.address)

    def write(self, seed: int) -> RandomWriter:
        """A writer that has begun."""
        self.writers.append(RandomWriter(self.server, self.database, seed))
        self.writers[-1].start()
        return self.writers[-1]

    def by(self, task: str) -> Actor:
        return Actor("a test", run=f"replicate/{self.run_id}/{task}/-1")

    def job(self, spec: JobSpec) -> JobResult:
        return run(self.spark, spec, source=self.address, say=self.said)

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.store, run=self.job, paths=self.paths)

    @property
    def replication(self) -> Replication:
        return get_replication(self.store, NAME)

    def objects(self) -> dict[str, ReplicatedObject]:
        return {one.name.table: one for one in objects_of(self.store, NAME)}

    def _target(self, name: ObjectName) -> TableRef:
        path = f"{self.home}/lake/{name.folded}"
        return TableRef(name=path, path=path, table_id="", addressing=Addressing.PATH)

    def prepare(self) -> None:
        patience = timedelta(seconds=20)
        prepare(self.store, NAME, source=self.source, targets=self._target, by=self.by("prepare"), patience=patience)

    def capture(self) -> None:
        capture(self.runtime, NAME, source=self.source, by=self.by("capture"))

    def backfill(self, table: str) -> None:
        with suppress(BackfillInterrupted):  # the next run begins it again
            run_backfill(
                self.runtime,
                self.objects()[table].uid,
                by=self.by(f"backfill_{table}"),
                cancel=lambda: None,
                read_progress=lambda _: None,
                partitions=3,
            )

    def backfill_together(self) -> None:
        """All objects that wait for it, in one job."""
        due = [one.uid for one in self.objects().values() if is_due(one)]
        if due:
            run_backfills(self.runtime, due, by=self.by("backfill"), cancel=lambda: None)

    def apply(self, table: str) -> None:
        by = self.by(f"apply_{table}")
        run_apply(self.runtime, self.objects()[table].uid, by=by)
        if self.objects()[table].needs_backfill:
            request_backfill(self.store, NAME, [f"{self.database}.{table}"], by=by)

    def turn(self, run_id: str) -> None:
        """A DAG run."""
        self.run_id = run_id
        self.prepare()
        self.capture()
        for table in self.objects():
            self.backfill(table)
            self.apply(table)

    def turn_together(self, run_id: str) -> None:
        """A DAG run with one job of each kind for all objects."""
        self.run_id = run_id
        self.prepare()
        self.capture()
        self.backfill_together()
        outcomes = apply_objects(self.runtime, [one.uid for one in self.objects().values()], by=self.by("apply"))
        assert [one.error for one in outcomes.values() if one.error is not None] == []

    def catch_up(self) -> None:
        """Until every object shows what is committed now. Writers rest."""
        for number in range(4):
            self.turn(f"last {number}")
            if all(one.applied == self.replication.captured for one in self.objects().values()):
                return
        raise AssertionError([(one.name.text, one.state, one.needs_backfill) for one in self.objects().values()])

    def rest(self) -> int:
        """End all writers; the number of their transactions."""
        for writer in self.writers:
            writer.end()
        return sum(writer.committed for writer in self.writers)

    def require_same(self) -> None:
        """Every mirror is its source, row by row."""
        for table in self.objects():
            names = [row[0] for row in self.server.sql(f"SHOW COLUMNS FROM {table}", self.database)]
            listed = ", ".join(f"`{name}`" for name in names)
            source = {_plain(row) for row in self.server.sql(f"SELECT {listed} FROM {table}", self.database)}
            mirror = self.spark.read.format("delta").load(self.objects()[table].target.path)
            target = [_plain(tuple(row)) for row in mirror.select(*names).collect()]
            assert len(target) == len(set(target)), f"{table} has rows twice"
            lacking, more = sorted(source - set(target), key=repr), sorted(set(target) - source, key=repr)
            assert (lacking[:3], more[:3]) == ([], []), f"{table}: {len(lacking)} lacking, {len(more)} too many"


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)
