"""A table of values of 5 MB is copied, captured, applied and expired by a driver with 1 GB."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.capturing import NOW
from tests.engine.replication.event_histories import STORE
from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.engine.replication.test_backfill_object import opened
from tests.postgresql import LOGICAL, PostgresServer, postgresql_or_skip
from tests.tiers import nightly
from tidemark.lake.event_logs import capture_app_id
from tidemark.replication.driver import captured
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.driver.expire import expire_events
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.jobs import ExpireEvents
from tidemark.replication.model.replication import START, LogPosition
from tidemark.replication.sources.fetches import WIDE

pytestmark = pytest.mark.spark

ROWS = 200
VALUE = "repeat(md5(g::text) || chr(64 + g % 20), 160000)"  # 5.28 MB, which PostgreSQL packs well
WIDE_ROWS = (
    "CREATE TABLE t (id int PRIMARY KEY, v text)",
    f"INSERT INTO t SELECT g, {VALUE} FROM generate_series(1, {ROWS}) g",
)


def test_rows_of_every_width_are_copied_once(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    made = (
        "CREATE TABLE t (id int PRIMARY KEY, v text, j jsonb)",
        "INSERT INTO t SELECT g, repeat('x', g * 700), jsonb_build_array(g) FROM generate_series(1, 200) g",
        "INSERT INTO t VALUES (0, NULL, NULL)",
        f"INSERT INTO t VALUES (-1, repeat('y', {WIDE}), NULL), (-2, NULL, to_jsonb(repeat('z', {WIDE * 20})))",
    )
    with opened(spark, source_server, tmp_path, *made) as world:
        assert world.backfill().rows == 203
        of_target = spark.read.format("delta").load(str(tmp_path / "target"))
        found = {tuple(row) for row in of_target.selectExpr("id", "length(v)", "length(j)").collect()}
        asked = "SELECT id, length(v), length(j::text) FROM t"
        assert found == set(world.source.sql(asked))
        assert of_target.selectExpr("count(DISTINCT datastream_metadata.uuid)").first()[0] == 203


def test_rows_that_look_small_and_are_wide_are_copied_all_the_same(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path
) -> None:
    """Values that are packed so well that they lie in their rows, and look small."""
    made = (
        "CREATE TABLE t (id int PRIMARY KEY, v jsonb)",
        "ALTER TABLE t ALTER v SET STORAGE MAIN",
        "INSERT INTO t SELECT g, to_jsonb(repeat('x', 600000)) FROM generate_series(1, 400) g",
    )
    with opened(spark, source_server, tmp_path, *made) as world:
        assert world.backfill(pauses=(0.0,)).rows == 400


def test_whoever_reads_wide_events_takes_few_at_once(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those who read no wide one of them: it may lie beside theirs."""
    made = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'a' FROM generate_series(1, 3) g")
    at_once: list[int] = []

    def note(*_: object) -> None:
        at_once.append(int(spark.conf.get("spark.sql.parquet.columnarReaderBatchSize")))

    with opened(spark, source_server, tmp_path, *made) as world:
        world.backfill()
        note()
        world.source.sql("UPDATE t SET v = repeat('x', 2000000) WHERE id = 1")
        world.capture()
        world.source.sql("UPDATE t SET v = 'narrow' WHERE id = 1")
        end, request = world.capture(), world.capturing.request
        report = apply_events(spark, STORE, world.apply_ask(end), say=note)
        assert report.events == 2
        assert expire_events(spark, STORE, _expire_ask(world, {}), stop_if_due=note).events > 0
        monkeypatch.setattr(captured, "_look_into", note)
        captured.captured_since(spark, world.capturing.log, capture_app_id(STORE, request.replication_uid), request, 0)
        note()
        assert [mark.mark.widest > 2_000_000 for mark in Target(world.target, STORE, "o").writes()] == [True, False]
    assert at_once == [4096, 8, 8, 8, 4096]


@pytest.mark.parametrize("keys", [("id",), ()], ids=["a key", "no key"])
def test_whoever_merges_wide_rows_keeps_none_of_them(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    """Neither Spark nor Delta does: Java's streams would hold 100 at once."""
    made = (
        f"CREATE TABLE t (id int {'PRIMARY KEY' if keys else ''}, v text, w int)",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
        f"ALTER TABLE t REPLICA IDENTITY {'DEFAULT' if keys else 'FULL'}",
        "INSERT INTO t SELECT g, 'a', 1 FROM generate_series(1, 3) g",
    )
    is_kept = {
        "UPDATE t SET v = 'narrow' WHERE id = 1": True,
        "UPDATE t SET v = repeat('x', 200000) WHERE id < 3": False,
        "UPDATE t SET id = 7, w = 2 WHERE id = 2": False,  # its value is looked for in the target
    }
    found = {}
    with opened(spark, source_server, tmp_path, *made, keys=keys) as world:
        world.backfill()
        for change in is_kept:
            world.source.sql(change)
            end = world.capture()
            with _kept_rows(spark) as seen:
                world.apply(end)
            found[change] = bool(seen)
        assert world.rows() == sorted(world.source.sql("SELECT id, v, w FROM t"), key=repr)
    assert found == is_kept


@contextmanager
def _kept_rows(spark: SparkSession) -> Iterator[set[int]]:
    """The ids of what Spark keeps meanwhile, without the logs of tables."""
    jvm: Any = spark.sparkContext._jsc
    before, seen, over = set(jvm.getPersistentRDDs()), set[int](), threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            kept = dict(jvm.getPersistentRDDs())
            seen.update(id for id, rows in kept.items() if not (rows.name() or "").startswith("Delta Table State"))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()
        seen -= before


def _expire_ask(world: ReplicatedWorld, needed: Mapping[str, LogPosition]) -> ExpireEvents:
    request = world.capturing.request
    later = NOW + timedelta(days=8)
    return ExpireEvents(request.replication_uid, "shop", request.event_log, request.batches, later, needed)


def _copy(home: Path) -> None:
    """In a process of its own, whose driver has 1 GB: a copy, a second one that catches up, changes, and retention."""
    from tidemark.model.spark import POSTGRESQL_PACKAGE, S3_SETTINGS
    from tidemark.testing import local_spark

    packages = f"{S3_SETTINGS['spark.jars.packages']},{POSTGRESQL_PACKAGE}"
    spark = local_spark(warehouse=home, memory="1g", more={**S3_SETTINGS, "spark.jars.packages": packages})
    with postgresql_or_skip(LOGICAL) as server:
        world = ReplicatedWorld(spark, server, home, WIDE_ROWS)
        try:
            assert world.backfill().rows == ROWS
            world.source.sql(f"INSERT INTO t SELECT g, {VALUE} FROM generate_series(1001, 1030) g")
            world.apply()
            world.source.sql(f"UPDATE t SET v = {VALUE.replace('g', '(id + 7)')} WHERE id % 10 = 0")
            world.source.sql("DELETE FROM t WHERE id % 10 = 1", "UPDATE t SET id = id + 5000 WHERE id % 10 = 2")
            world.apply()
            world.source.sql("UPDATE t SET v = 'narrow' WHERE id % 10 = 3")
            world.apply()
            world.source.sql(f"UPDATE t SET v = {VALUE.replace('g', '(id + 3)')}")
            print("applied", world.apply().rows["updated"])
            request = _expire_ask(world, {world.oid: world.applied or START})
            print("expired", expire_events(spark, STORE, request).events)
            assert world.backfill().rows
            found = spark.read.format("delta").load(str(home / "target")).selectExpr("count(*)", "sum(length(v))")
            print("copied", *found.first())
            print("source", *world.source.sql("SELECT count(*), sum(length(v)) FROM t")[0])
        finally:
            world.close()
    spark.stop()


@pytest.mark.timeout(1200)
@nightly("a driver of its own, and a gigabyte of values", "test_rows_of_every_width_are_copied_once")
def test_a_driver_of_1_gb_copies_values_of_5_mb(tmp_path: Path, source_server: PostgresServer) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [
        sys.executable,
        "-c",
        f"from {__name__} import _copy; from pathlib import Path; _copy(Path({str(tmp_path)!r}))",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1000)
    assert done.returncode == 0, done.stderr[-3000:]
    assert any(line.startswith("expired") and int(line.split()[1]) > 100 for line in done.stdout.splitlines())
    assert any(line.startswith("applied") and int(line.split()[1]) > 200 for line in done.stdout.splitlines())
    copied, source = [line for line in done.stdout.splitlines() if line.startswith(("copied", "source"))]
    assert copied.split()[1:] == source.split()[1:]
