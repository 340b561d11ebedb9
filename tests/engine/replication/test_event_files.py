"""Events of a real PostgreSQL as files: both formats read back as the event log has them, and each event once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from tests.databases.postgresql.captured import SourceWorld
from tests.databases.postgresql.event_log import EVENT_COLUMNS
from tests.engine.replication.capturing import NOW, CaptureWorld
from tests.engine.replication.event_histories import STORE
from tests.engine.replication.written_events import contents, of_files, of_log, read_back
from tests.object_store import BUCKET, running_object_store
from tests.postgresql import PostgresServer
from tidemark.errors import EventFilesIncomplete
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import written_files_path
from tidemark.lake.written_files import FileRange, newest_range
from tidemark.replication.driver.event_files import write_event_files
from tidemark.replication.driver.expire import expire_events
from tidemark.replication.driver.written_files import WrittenFiles
from tidemark.replication.model.jobs import (
    EventFilesReport,
    ExpireEvents,
    ExpireReport,
    FileFormat,
    ForgetEventFiles,
    WriteEventFiles,
)
from tidemark.replication.model.replication import START
from tidemark.replication.planning.event_files import FileEvent

pytestmark = pytest.mark.spark

TYPES = """CREATE TABLE t (id int PRIMARY KEY, flag boolean, small smallint, large bigint, single real, twice float8,
 price numeric(10,2), hundreds numeric(5,-2), unbounded numeric, name text, raw bytea, day date, at timestamp,
 moment timestamptz, doc jsonb, plain json, list int[], clock time, "käse/%{}" text)"""
ROW = """(1, true, -7, 9007199254740993, 0.1, 1e-300, 12345678.90, 12300, 123456789012345678901234567890.5,
 E'a"b\\\\c\nü😀', '\\x00ff', '2024-02-29', '2024-02-29 12:00:00.5',
 '2024-02-29 12:00:00.123456+00', '{"a": 1.50, "b": [null, "x", {}]}',
 '"scalar"', '{1,NULL,3}', '23:59:59.000001', 'odd')"""
NULLS = (
    "(2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 'null', null, null, '')"
)
ODD = """(3, false, 0, -1, 'NaN', '-Infinity', 'NaN', -12300, 'NaN', '', '', 'infinity', '-infinity',
 '0044-03-15 00:00:00+00 BC', 'null', '{"deep":
 [1 , 2]}', '{{1,2},{3,4}}', '00:00', null)"""


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[CaptureWorld]:
    source = SourceWorld(source_server, "files")
    source.sql(TYPES, "CREATE TABLE free (a int, b text)", "ALTER TABLE free REPLICA IDENTITY FULL")
    source.replicate("t")
    source.replicate("free", keys=())
    yield CaptureWorld(spark, source, tmp_path)
    source.close()


def captured(world: CaptureWorld, *texts: str) -> None:
    if texts:
        world.source.sql(*texts)
    world.store(world.capture())


def request_of(world: CaptureWorld, kind: FileFormat = FileFormat.JSON, **more: Any) -> WriteEventFiles:
    request = WriteEventFiles(
        replication_uid=world.request.replication_uid,
        stream="shop",
        event_log=world.request.event_log,
        batches=world.request.batches,
        end=world.request.captured,
        target=f"file://{world.home}/files",
        format=kind,
        file_bytes=50_000_000,
        interval_seconds=3600,
    )
    return replace(request, **more)


def write(world: CaptureWorld, kind: FileFormat = FileFormat.JSON, **more: Any) -> EventFilesReport:
    return write_event_files(world.spark, STORE, request_of(world, kind, **more))


def change_everything(world: CaptureWorld) -> None:
    world.source.sql(
        f"INSERT INTO t VALUES {ROW}, {NULLS}, {ODD}",
        "UPDATE t SET name = repeat(md5(random()::text), 2) || 'x', id = 10 WHERE id = 1",
        "UPDATE t SET flag = NOT flag WHERE id = 3",
        "INSERT INTO free SELECT g, 'b' FROM generate_series(1, 5) AS g",
        "UPDATE free SET b = 'c' WHERE a = 2",
        "DELETE FROM free WHERE a = 3",
        "DELETE FROM t WHERE id = 2",
        "SELECT pg_logical_emit_message(true, 'mine', 'hello')",
        "SELECT pg_logical_emit_message(false, 'mine', 'alone')",
        "TRUNCATE free",
    )
    captured(world)


@pytest.mark.parametrize("kind", FileFormat)
def test_what_was_written_reads_back_as_the_events_of_the_log(world: CaptureWorld, kind: FileFormat) -> None:
    change_everything(world)
    captured(world, "ALTER TABLE t ADD COLUMN late text", "UPDATE t SET late = 'x'", "INSERT INTO free VALUES (9, 'z')")
    report = write(world, kind)
    assert [one.name for one in fields(FileEvent)] == list(EVENT_COLUMNS)
    files = contents(world)
    found, expected = of_files(world), of_log(world)
    assert {one["change"] for one in expected} >= {"SCHEMA", "TRUNCATE", "MESSAGE", "UPDATE-DELETE", "DELETE"}
    assert found == expected
    ends = Counter("".join(Path(name).suffixes[-2:]) for name in files if not name.startswith("_control"))
    assert len(files) == report.files
    assert len(ends) == 1
    assert sum(report.events.values()) == len(expected)
    assert set(report.events) == {"public_t", "public_free", "_control"}


def test_files_are_in_folders_of_object_and_minute_with_one_schema_each(world: CaptureWorld) -> None:
    change_everything(world)
    captured(world, "ALTER TABLE t ADD COLUMN late text", "UPDATE t SET late = 'x'")
    write(world)
    files = contents(world)
    of_t = [name for name in files if name.startswith("public_t/")]
    assert len(of_t) == 2  # the schema changed
    for name in of_t:
        lines = [json.loads(line) for line in gzip.decompress(files[name]).splitlines()]
        assert len({line["schema_key"] for line in lines}) == 1
        minute = datetime.fromisoformat(lines[0]["source_timestamp"]).strftime("%Y/%m/%d/%H/%M")
        assert name.startswith(f"public_t/{minute}/")
        assert "/".join(name.split("/")[:6]) == f"public_t/{minute}"
    first = json.loads(gzip.decompress(files[of_t[0]]).splitlines()[0])
    assert first["read_method"] == "postgres-cdc-wal"
    assert first["source_metadata"]["change_type"] == "INSERT"
    assert first["payload"]["large"] == 9007199254740993
    assert first["payload"]["doc"] == {"a": 1.5, "b": [None, "x", {}]}
    assert first["payload"]["at"] == "2024-02-29T12:00:00.5"
    assert first["payload"]["moment"] == "2024-02-29T12:00:00.123456Z"
    assert first["sort_keys"][1] == first["source_metadata"]["lsn"]


def test_avro_has_unified_types(world: CaptureWorld) -> None:
    change_everything(world)
    write(world, FileFormat.AVRO)
    (file,) = (world.home / "files" / "public_t").rglob("*.avro")
    with file.open("rb") as opened:
        reader = fastavro.reader(opened)
        payload = next(iter(reader))["payload"]
        (record,) = [field["type"] for field in reader.writer_schema["fields"] if field["name"] == "payload"]
    types = {field["name"]: field["type"][1] for field in record["fields"]}
    assert (types["id"], types["large"], types["single"], types["raw"]) == ("int", "long", "float", "bytes")
    assert (types["price"]["precision"], types["price"]["scale"]) == (10, 2)
    assert types["doc"] == {"type": "string", "logicalType": "json"}
    assert types["unbounded"] == types["clock"] == "string"
    assert (str(payload["price"]), payload["moment"].microsecond, payload["at"]["date"].year) == (
        "12345678.90",
        123456,
        2024,
    )
    assert payload["k_se____"] == "odd"


def test_a_second_run_writes_nothing_and_the_next_one_only_what_is_new(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    first = write(world)
    version = DeltaLog.open(written_files_path(world.request.event_log)).head()
    before = contents(world)
    assert write(world) == EventFilesReport(first.written, 0)
    assert DeltaLog.open(written_files_path(world.request.event_log)).head() == version
    captured(world, "INSERT INTO free VALUES (2, 'b')")
    assert write(world).events == {"public_free": 1}
    after = contents(world)
    assert {name: after[name] for name in before} == before
    assert len(read_back(after)) == len(of_log(world))
    newest = newest_range(DeltaLog.open(written_files_path(world.request.event_log)), request_of(world).target)
    assert newest is not None
    assert (newest.done, newest.end) == (True, world.request.captured.commit)


class _Died(Exception):
    pass


@pytest.mark.parametrize("kind", FileFormat)
def test_after_a_death_the_same_files_are_written_whatever_was_captured_since(
    world: CaptureWorld, kind: FileFormat
) -> None:
    captured(world, "INSERT INTO free SELECT g, repeat('b', 100) FROM generate_series(1, 40) AS g")
    stops = iter([None, None, None])

    def stop() -> None:
        if next(stops, "no more") == "no more":
            raise _Died

    with pytest.raises(_Died):
        write_event_files(world.spark, STORE, request_of(world, kind, file_bytes=2000), stop_if_due=stop)
    left = contents(world)
    assert len(left) == 3
    captured(world, "INSERT INTO free VALUES (41, 'later')")
    report = write(world, FileFormat.JSON, file_bytes=10_000_000)  # the range that was begun keeps its own
    assert report.continued
    found = contents(world)
    assert {name: found[name] for name in left} == left
    assert of_files(world) == of_log(world)


def test_large_backlogs_are_written_in_ranges_of_whole_batches(world: CaptureWorld) -> None:
    for number in range(4):
        captured(world, f"INSERT INTO free SELECT g, 'b' FROM generate_series(1, 10) AS g -- {number}")
    report = write_event_files(world.spark, STORE, request_of(world), most=15)
    log = DeltaLog.open(written_files_path(world.request.event_log))
    assert log.state().transactions[next(iter(log.state().transactions))] == 4  # two ranges, begun and done
    assert report.events["public_free"] == 40
    assert of_files(world) == of_log(world)


def test_two_targets_are_written_apart_and_a_deleted_row_begins_again(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    write(world)
    assert write(world, target=f"file://{world.home}/others").files == 2
    before = contents(world)
    table = written_files_path(world.request.event_log)
    world.spark.sql(f"DELETE FROM delta.`{table}` WHERE target = 'file://{world.home}/files'")
    assert write(world).files == len(before)
    assert contents(world) == before
    assert write(world, target=f"file://{world.home}/others").files == 0


def forget(world: CaptureWorld, target: str) -> FileRange | None:
    request = ForgetEventFiles(world.request.replication_uid, "shop", world.request.event_log, target)
    return WrittenFiles(world.spark, STORE, request, None).forget()


def test_a_target_that_is_forgotten_begins_again_and_holds_no_event_back(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    others = f"file://{world.home}/others"
    write(world)
    write(world, target=others)
    captured(world, "INSERT INTO free VALUES (2, 'b')")
    write(world)
    assert expire(world).events == 1, "the other target needs the second event"
    found = forget(world, others)
    assert found is not None
    assert (found.done, found.events) == (True, 2)
    assert forget(world, others) is None
    told = newest_range(DeltaLog.open(written_files_path(world.request.event_log)), others)
    assert told is not None
    assert (told.done, told.end) == (False, ""), "a worker without Spark sees that it has nothing"
    assert write(world, target=others).events["public_free"] == 1
    assert write(world).files == 0
    captured(world, "INSERT INTO free VALUES (3, 'c')")
    write(world)
    assert forget(world, others) is not None
    assert expire(world).events == 1, "the second event goes; the newest batch always stays"


def expire(world: CaptureWorld) -> ExpireReport:
    request = ExpireEvents(
        replication_uid=world.request.replication_uid,
        stream="shop",
        event_log=world.request.event_log,
        batches=world.request.batches,
        before=NOW + timedelta(days=8),
        needed={},
    )
    return expire_events(world.spark, STORE, request)


def test_events_that_are_in_no_file_yet_do_not_expire(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    write(world)
    oid = next(oid for oid, one in world.source.captured.items() if one.name.table == "free")
    captured(world, "INSERT INTO free VALUES (2, 'b')")
    captured(world, "INSERT INTO free VALUES (3, 'c')")
    assert expire(world) == ExpireReport(1, {oid: 1})
    report = write(world)
    assert report.events["public_free"] == 2
    assert expire(world).events == 1
    assert world.rows.where("change = 'SCHEMA'").count() == 1
    captured(world, "INSERT INTO free VALUES (4, 'd')")
    assert write(world).events == {"public_free": 1}  # its schema's event is as old as the log
    assert [json.loads(one.payload)["a"] for one in read_back(contents(world)) if one.change == "INSERT"] == list(
        "1234"
    )


def test_events_that_somebody_deleted_before_they_were_written_are_an_error(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free SELECT g, 'b' FROM generate_series(1, 10) AS g")

    def stop() -> None:
        raise _Died

    with pytest.raises(_Died):
        write_event_files(world.spark, STORE, request_of(world), stop_if_due=stop)
    world.spark.sql(f"DELETE FROM delta.`{world.request.event_log}` WHERE payload LIKE '%\"4\"%'")
    with pytest.raises(EventFilesIncomplete, match="11 events were begun, and the event log has 10"):
        write(world)
    assert contents(world) == {}


def test_a_restored_table_of_written_files_is_no_reason_to_write_again(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    write(world)
    captured(world, "INSERT INTO free VALUES (2, 'b')")
    write(world)
    table = written_files_path(world.request.event_log)
    world.spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 2")
    with pytest.raises(EventFilesIncomplete, match="it was restored"):
        write(world)


def test_nothing_captured_is_nothing_to_write(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    assert write(world, end=START) == EventFilesReport(START, 0)


def test_files_are_written_to_an_object_store(world: CaptureWorld) -> None:
    captured(world, "INSERT INTO free VALUES (1, 'a')")
    with running_object_store() as store:
        request = request_of(world, target=f"s3://{BUCKET}/events")
        assert write_event_files(world.spark, STORE, request, store.options).files == 2
        every = store.keys()
        names = [name for name in every if "/_ranges/" not in name]
        assert sorted(name.split("/")[1] for name in names) == ["_control", "public_free"]
        assert len(every) == len(names) + 1
        put = {name: gzip.decompress(store.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()) for name in names}
        assert write_event_files(world.spark, STORE, request, store.options).files == 0
    (row,) = [json.loads(lines) for name, lines in put.items() if "/public_free/" in name]
    assert row["payload"] == {"a": 1, "b": "a"}
