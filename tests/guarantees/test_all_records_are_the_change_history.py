"""Four writers change three tables while the change stream is captured, splits and merges; three groups read it.

Each group gets every change of the tables' histories, once, each key's in order, though some of its chunks fail at
first. 12 commits, 400 by `make test-all`.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from delta.exceptions import DeltaConcurrentModificationException

from tests.guarantees.partition_invariants import Snapshot, require_invariants
from tests.tiers import some
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, WatchedTable
from tidemark.change_streams.model.sinks import Sink, SinkKind
from tidemark.change_streams.worker.capture import capture
from tidemark.change_streams.worker.definitions import create_change_stream
from tidemark.change_streams.worker.groups import create_group, group_status
from tidemark.change_streams.worker.reading import read_chunks
from tidemark.change_streams.worker.waves import commit_wave, plan_wave
from tidemark.control.store import ControlStore
from tidemark.delivery.driver.exactly_once import CONFLICTS
from tidemark.jobs.run import run as run_job
from tidemark.jobs.spark_work import own_session
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(36_000)]

SEED = 7
TABLES = ("soak.a", "soak.b", "soak.c")
WRITERS = 4
PACE = 6  # commits that the writers may make before the next round, so that batches stay small on any machine
KEYS = 40
MODS = "ARRAY<STRUCT<keys: STRING, new_values: STRING, old_values: STRING>>"
RECORDS = f"commit_timestamp TIMESTAMP, record_sequence STRING, table_name STRING, mod_type STRING, mods {MODS}"
STREAM = "soaked"

Change = tuple[str, int, str, str, Any, Any]  # table, version, kind, key, old, new
TAKEN: list[tuple[str, str, Any, str, str]] = []
CHANCE = random.Random(SEED)


def fail_sometimes(records: Any, chunk: Any) -> int:
    """Fails before it takes anything; so what it takes is taken once."""
    if CHANCE.random() < 0.2:
        raise ValueError("this chunk fails this time")
    rows = records.select(
        "commit_timestamp", "record_sequence", "server_transaction_id", "table_name", "mod_type", "mods"
    )
    taken = 0
    for row in rows.collect():
        for mod in row.mods:
            key = f"{row.table_name} {json.loads(mod['keys'])['id']}"
            place = f"{row.commit_timestamp.isoformat()} {row.record_sequence}"
            TAKEN.append((key, place, mod, row.mod_type, row.server_transaction_id))
            taken += 1
    return taken


@dataclass
class Soak:
    spark: SparkSession
    root: Path
    store: ControlStore
    tables: dict[str, TableRef] = field(default_factory=dict)
    before: Snapshot | None = None
    ended: list[str] = field(default_factory=list)
    permitted: int = PACE
    split_rows: int = 12
    permits: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(PACE))

    def path(self, name: str) -> str:
        return str(self.root / name.replace(".", "/"))

    def create(self, name: str, columns: str, properties: str = "") -> TableRef:
        self.spark.sql(f"CREATE TABLE delta.`{self.path(name)}` ({columns}) USING delta {properties}")
        table_id = DeltaLog.open(self.path(name)).state().table_id
        return TableRef(name, self.path(name), table_id, Addressing.LAKE)

    def open(self, table: TableRef | str) -> DeltaLog:
        return DeltaLog.open(table if isinstance(table, str) else table.path)

    def run(self, spec: JobSpec) -> JobResult:
        return run_job(self.spark, spec, say=lambda _: None)

    @property
    def paths(self) -> JobPaths:
        return JobPaths(str(self.root / "_tidemark"), str(self.root / "jobs"))

    def capture(self) -> bool:
        result = capture(
            Runtime(self.store, run=self.run, paths=self.paths, tables=self.open),
            STREAM,
            allowed_skew=timedelta(0),
            split_rows=self.split_rows,
            merge_rows=self.split_rows // 2,
        )
        return result is not None

    def consume(self, group: str, sink: Sink, run: str) -> int:
        """One wave; how many chunks it had."""
        wave = plan_wave(self.store, STREAM, group, run=run, max_chunks=100, max_rows=50)
        if wave.chunks:
            read_chunks(
                Runtime(self.store, run=self.run, paths=self.paths, tables=self.open),
                wave.chunks,
                sink,
                run=run,
                key=TransactionKey("soak", run, group),
            )
        commit_wave(self.store, STREAM, group, run=run)
        self.before = require_invariants(self.store, STREAM, self.before)
        return len(wave.chunks)


@pytest.fixture
def soak(spark: SparkSession, tmp_path: Path) -> Soak:
    made = Soak(spark, tmp_path, ControlStore(f"sqlite:///{tmp_path}/control.db"))
    tracked = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
    made.tables = {name: made.create(name, "id BIGINT, v BIGINT, w STRING", tracked) for name in TABLES}
    create_change_stream(
        made.store,
        name=STREAM,
        tables=[WatchedTable(table, ("id",), None, 0) for table in made.tables.values()],
        everything=False,
        options=ChangeStreamOptions(),
        log_path=str(tmp_path / "log"),
        initial_partitions=2,
    )
    return made


def statements(number: int) -> Iterator[tuple[str, str]]:
    """(table, statement), for ever; each key is at most once in a table."""
    chance = random.Random(SEED * 100 + number)
    while True:
        table = chance.choice(TABLES)
        low = chance.randrange(KEYS)
        high = low + chance.randrange(1, 12)
        value, kind = chance.randrange(1000), chance.random()
        merged = f"(SELECT id, {value} AS v, 'm{value}' AS w FROM range({low}, {high})) s ON t.id = s.id"
        if kind < 0.55:
            yield (
                table,
                f"MERGE INTO {{t}} t USING {merged} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            )
        elif kind < 0.8:
            yield table, f"UPDATE {{t}} SET w = 'u{value}' WHERE id BETWEEN {low} AND {high}"
        elif kind < 0.95:
            yield table, f"DELETE FROM {{t}} WHERE id BETWEEN {low} AND {low + 3}"
        else:
            yield table, "OPTIMIZE {t}"


def write_all(soak: Soak, number: int, commits: int, failures: list[Exception]) -> None:
    """A writer's share of the commits; one that loses to another writer tries again."""
    session = own_session(soak.spark)
    try:
        for _, (table, statement) in zip(range(commits // WRITERS), statements(number), strict=False):
            soak.permits.acquire()
            try:
                _commit(session, statement.format(t=f"delta.`{soak.path(table)}`"))
            finally:
                soak.ended.append(statement)
    except Exception as error:  # noqa: BLE001 - a thread's error is the test's
        failures.append(error)


def _commit(session: SparkSession, statement: str) -> None:
    for _ in range(50):
        try:
            session.sql(statement)
            return
        except (*CONFLICTS, DeltaConcurrentModificationException):
            continue


def wait_for_commits(soak: Soak, writers: list[threading.Thread]) -> bool:
    """Whether the writers are still at work, after all commits that they were permitted; they get the next ones."""
    while any(writer.is_alive() for writer in writers) and len(soak.ended) < soak.permitted:
        time.sleep(0.05)
    soak.permitted += PACE
    soak.permits.release(PACE)
    return any(writer.is_alive() for writer in writers)


def history(soak: Soak) -> Counter[tuple[str, str, str, str, str]]:
    """(transaction, kind, key, old, new) of every version, by what the rows of two neighbours differ in."""
    found: Counter[tuple[str, str, str, str, str]] = Counter()
    for table in soak.tables.values():
        head = DeltaLog.open(table.path).head()
        old: dict[int, dict[str, Any]] = {}
        for version in range(1, head + 1):
            rows = soak.spark.read.format("delta").option("versionAsOf", version).load(table.path).collect()
            new = {row.id: {"v": str(row.v), "w": row.w} for row in rows}
            assert len(new) == len(rows)
            for key in old.keys() | new.keys():
                found.update(_change(f"{table.table_id}:{version}", key, old.get(key), new.get(key)))
            old = new
    return found


def _change(
    transaction: str, key: int, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> Iterator[tuple[str, str, str, str, str]]:
    if old == new:
        return
    if old is None or new is None:
        kind = "INSERT" if old is None else "DELETE"
        yield transaction, kind, str(key), _text(old or {}), _text(new or {})
        return
    changed = [name for name in old if old[name] != new[name]]
    yield transaction, "UPDATE", str(key), _text({n: old[n] for n in changed}), _text({n: new[n] for n in changed})


def _text(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _as_change(transaction: str, kind: str, mod: Any) -> tuple[str, str, str, str, str]:
    key = json.loads(mod["keys"])["id"]
    return transaction, kind, key, *(_text(json.loads(mod[name] or "{}")) for name in ("old_values", "new_values"))


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("commits", some((12, 400), now=(12,)))
def test_every_group_gets_the_whole_history_once(soak: Soak, commits: int) -> None:
    TAKEN.clear()
    if commits < 100:
        soak.split_rows = 2  # the few batches are hot, however the commits fall into them
    appended = soak.create("soak.records", f"server_transaction_id STRING, {RECORDS}")
    mirror = soak.create("soak.mirror", "id BIGINT, v BIGINT, w STRING")
    sinks = {
        "appended": Sink(SinkKind.APPEND, appended),
        "mirrored": Sink(SinkKind.MERGE, mirror, soak.tables["soak.a"].table_id),
        "taken": Sink(SinkKind.FUNCTION, function=f"{__name__}:fail_sometimes"),
    }
    for group in sinks:
        create_group(soak.store, STREAM, group, "earliest")
    failures: list[Exception] = []
    writers = [threading.Thread(target=write_all, args=(soak, n, commits, failures)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    rounds = 0
    while wait_for_commits(soak, writers) or soak.capture():
        rounds += 1
        soak.capture()
        for group, sink in sinks.items():
            soak.consume(group, sink, f"run {rounds}")
    assert failures == []
    _read_to_the_end(soak, sinks, rounds)
    expected = history(soak)
    assert sum(expected.values()) > commits

    records = soak.spark.read.format("delta").load(appended.path).collect()
    flat = Counter(_as_change(r.server_transaction_id, r.mod_type, mod) for r in records for mod in r.mods)
    assert flat == expected
    assert Counter(_as_change(transaction, kind, mod) for _, _, mod, kind, transaction in TAKEN) == expected
    of_key: dict[str, list[str]] = {}
    for key, place, *_ in TAKEN:
        of_key.setdefault(key, []).append(place)
    assert [key for key, places in of_key.items() if places != sorted(places)] == []
    source, copy = (soak.spark.read.format("delta").load(soak.path(name)) for name in ("soak.a", "soak.mirror"))
    assert sorted(map(tuple, copy.collect())) == sorted(map(tuple, source.collect()))
    assert soak.before is not None
    assert len(soak.before.partitions) > 2, "no partition has split or merged"


def _read_to_the_end(soak: Soak, sinks: dict[str, Sink], rounds: int) -> None:
    wave: Callable[[str, int], int] = lambda group, n: soak.consume(group, sinks[group], f"last run {n}")  # noqa: E731
    for group in sinks:
        number = rounds
        while wave(group, number) or group_status(soak.store, STREAM, group).open_chunks:
            number += 1
        status = group_status(soak.store, STREAM, group)
        assert status.low_watermark == status.published_until
