"""Event files are a source. Those that Tidemark wrote give the same targets again. Those of Datastream come late and
twice, and give the rows that its database has.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.databases.debezium.landed import land
from tests.databases.debezium.random_envelopes import RandomShop
from tests.databases.event_files.dropped import address_of, drop, event
from tests.databases.event_files.random_stream import RandomStream
from tests.engine.replication.landed_world import LandedWorld
from tests.tiers import nightly, some
from tidemark.errors import EventFileInvalid, EventFilesOutOfOrder, ReplicationRefused
from tidemark.failpoints import KILL_AT
from tidemark.replication.driver.event_files import write_event_files
from tidemark.replication.model.jobs import FileFormat, WriteEventFiles
from tidemark.replication.model.replication import ReplicationState
from tidemark.replication.worker.objects import request_backfill

pytestmark = pytest.mark.spark

KILLED_AT = ("events.staged", "events.written", "slot.moved", "segment1.written")
TOLD = ("object", "uuid", "change", "payload", "key", "old_key", "unchanged", "problem", "read_method", "schema_key")


def of(spark: SparkSession, tmp_path: Path, name: str, **more: Any) -> LandedWorld:
    home = tmp_path / name
    home.mkdir(exist_ok=True)
    return LandedWorld(spark, home, **more)


def write_files(world: LandedWorld, files: Path, kind: FileFormat) -> None:
    replication = world.replication
    assert replication.captured is not None
    request = WriteEventFiles(
        replication_uid=replication.uid,
        stream=replication.name,
        event_log=replication.event_log,
        batches=replication.batches,
        end=replication.captured,
        target=f"file://{files}",
        format=kind,
        file_bytes=2_000,
        interval_seconds=3600,
        schemas=tuple(one.schema for one in world.objects().values()),
    )
    write_event_files(world.spark, world.store.store_id, request, most=50)


def land_all(world: LandedWorld, shop: RandomShop, number: int) -> None:
    for table, records in shop.envelopes(60).items():
        land(world.landed, f"{table}/{number:04d}.jsonl", records)


def told(world: LandedWorld) -> list[tuple[Any, ...]]:
    """Events in their order, with source times in milliseconds, as files have them."""
    rows = world.spark.read.format("delta").load(world.replication.event_log)
    millis = F.unix_millis("source_timestamp")
    return [tuple(row) for row in rows.orderBy("position", "sequence").select(*TOLD, millis).collect()]


def comparable(events: list[tuple[Any, ...]], kind: FileFormat) -> list[tuple[Any, ...]]:
    """Avro has no zeros at the end of a second."""
    if kind is FileFormat.JSON:
        return events
    return [(*one[:3], re.sub(r'(:\d\d\.\d*?)0+"', r'\1"', one[3]), *one[4:]) for one in events]


def target(world: LandedWorld, table: str) -> list[tuple[Any, ...]]:
    frame = world.spark.read.format("delta").load(f"{world.home}/lake/{table}")
    return sorted(map(tuple, frame.drop("datastream_metadata").collect()), key=repr)


@pytest.mark.parametrize("kind", some(FileFormat, [FileFormat.JSON], "both formats are read in test_own_files.py"))
def test_files_that_were_written_give_the_same_events_and_targets(
    spark: SparkSession, tmp_path: Path, kind: FileFormat
) -> None:
    origin, shop, files = of(spark, tmp_path, "origin"), RandomShop(24, tables=("orders",)), tmp_path / "files"
    copy = of(spark, tmp_path, "copy", address=address_of(files))
    for number in range(2):
        land_all(origin, shop, number)
        origin.prepare()
        origin.capture()
        write_files(origin, files, kind)
        copy.prepare()
        copy.capture()
        assert comparable(told(copy), kind) == comparable(told(origin), kind)
    for world in (origin, copy):
        world.apply()
    assert target(copy, "public_orders") == target(origin, "public_orders")
    assert len(target(copy, "public_orders")) == len(shop.rows["orders"]) > 0
    assert {one[2] for one in told(copy)} >= {"SCHEMA", "TRUNCATE", "INSERT", "UPDATE", "DELETE"}
    assert any(one[6] for one in told(copy))  # values that were left out
    copy.jobs.clear()
    assert copy.turn() is None
    assert copy.jobs == []  # no news starts no Spark
    with pytest.raises(ReplicationRefused, match="Have Datastream backfill the object"):
        request_backfill(copy.store, copy.replication.name, ["public.orders"], by=copy.by)


@nightly(
    "Spark beside a shorter proof",
    proven_by="tests/databases/event_files/test_own_files.py::"
    "test_a_batch_ends_anywhere_and_a_range_comes_when_its_list_does",
)
def test_files_of_a_range_that_is_not_whole_are_left_for_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    origin, shop, files = of(spark, tmp_path, "origin", max_events=60), RandomShop(4), tmp_path / "files"
    land_all(origin, shop, 0)
    origin.prepare()
    origin.capture()
    write_files(origin, files, FileFormat.JSON)
    lists = sorted((files / "_control/_ranges").iterdir())
    hidden = lists[-1].rename(tmp_path / lists[-1].name)
    copy = of(spark, tmp_path, "copy", address=address_of(files))
    copy.prepare()
    copy.capture()
    assert 0 < len(told(copy)) < len(told(origin))
    hidden.rename(lists[-1])
    copy.prepare()
    copy.capture()
    assert told(copy) == told(origin)


def test_files_of_datastream_that_come_late_and_twice_give_the_rows_of_the_database(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = RandomStream(seed=5)
    copy = of(spark, tmp_path, "copy", address=address_of(tmp_path / "files"), max_events=70)
    (tmp_path / "files").mkdir()
    for files in stream.files(runs=2, changes=60):
        for name, lines in files.items():
            drop(tmp_path / "files", name, lines)
        copy.prepare()
        copy.capture()
    copy.turn()
    assert stream.late > 0
    assert stream.twice > 0
    assert copy.rows("shop.orders", "id", "total", "note") == stream.rows
    uuids = [one["uuid"] for one in copy.events()]
    assert len(uuids) == len(set(uuids))
    assert {one["source_metadata"]["log_file"] for one in copy.events()} >= {"mysql-bin.000009"}


def test_late_events_count_unless_the_log_has_a_newer_one_of_the_same_key(spark: SparkSession, tmp_path: Path) -> None:
    files = tmp_path / "files"
    copy = of(spark, tmp_path, "copy", address=address_of(files))
    drop(files, "d_t/2024/05/01/10/05/a.jsonl", [event(50, 1), event(51, 2, change_type="DELETE", is_deleted=True)])
    copy.turn()
    drop(
        files,
        "d_t/2024/05/01/10/01/b.jsonl",
        [event(10, 1), event(11, 2), event(12, 3), event(50, 1), event(51, 2, change_type="DELETE", is_deleted=True)],
    )
    backfill = {"read_method": "mysql-backfill-fulldump"}
    rows = [event(number, key, log_file="", log_position=0) for number, key in ((60, 1), (61, 4))]
    drop(files, "d_t/2024/05/01/09/00/c.jsonl", [one | backfill for one in rows])
    copy.turn()
    assert copy.rows("d.t", "id", "v") == [(1, "v50"), (3, "v12"), (4, "v61")]
    assert [one["uuid"] for one in copy.events()] == ["t50", "t51", "t61", "t12"]
    drop(files, "d_t/2024/05/01/10/02/d.jsonl", [event(10, 1)])
    copy.turn()  # a batch of which nothing is left
    assert copy.rows("d.t", "id", "v") == [(1, "v50"), (3, "v12"), (4, "v61")]
    drop(files, "d_t/2024/05/01/10/07/e.jsonl", [event(70, 1)])
    copy.turn()
    assert copy.rows("d.t", "id", "v") == [(1, "v70"), (3, "v12"), (4, "v61")]


@pytest.mark.parametrize("point", some(KILLED_AT, ["events.written"], "a start of Spark for each point"))
def test_a_run_that_was_killed_is_continued_and_nothing_is_lost_or_twice(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    stream, files = RandomStream(seed=6), tmp_path / "files"
    first, second = stream.files(runs=2, changes=60)
    for name, lines in first.items():
        drop(files, name, lines)
    script = Path(__file__).with_name("killed_event_files.py")
    path = os.pathsep.join(filter(None, (str(script.parents[3]), os.environ.get("PYTHONPATH"))))
    killed = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path, KILL_AT: point},
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    for name, lines in second.items():
        drop(files, name, lines)
    world = LandedWorld(spark, tmp_path, address=address_of(files), max_events=40)
    for _ in range(2):
        world.turn()
    assert world.rows("shop.orders", "id", "total", "note") == stream.rows
    uuids = [one["uuid"] for one in world.events()]
    assert len(uuids) == len(set(uuids))


@nightly(
    "Spark beside a shorter proof",
    proven_by="tests/databases/event_files/test_folders.py::test_a_line_that_is_no_event_is_named",
)
def test_a_file_that_is_none_stops_the_run_and_nothing_of_its_batch_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    copy = of(spark, tmp_path, "copy", address=address_of(files))
    drop(files, "d_t/2024/05/01/10/01/a.jsonl", [event(1, 1)])
    copy.turn()
    wrong = drop(files, "d_t/2024/05/01/10/02/b.jsonl", [event(2, 2), '{"uuid": "cut'])
    with pytest.raises(EventFileInvalid, match=r"b\.jsonl: has no JSON object in line 2"):
        copy.turn()
    assert copy.replication.state is ReplicationState.FAILED
    assert len(copy.events()) == 1
    wrong.unlink()
    late = drop(files, "d_t/2024/05/01/10/02/c.jsonl", [event(2, 2)])
    os.utime(late, (1, 1))  # as a copy that keeps times
    with pytest.raises(EventFilesOutOfOrder):
        copy.turn()
    os.utime(late)
    copy.turn()
    assert copy.replication.state is ReplicationState.RUNNING
    assert copy.rows("d.t", "id", "v") == [(1, "v1"), (2, "v2")]
