"""What a source commits comes into the event log exactly once, whatever happens to the runs that bring it there."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.databases.postgresql.captured import SourceWorld
from tests.engine.replication.capturing import NOW, CaptureWorld
from tests.postgresql import PostgresServer
from tidemark.errors import EventLogChanged, SlotAhead, SlotLost, SourceIsAnother, SourceSetBack, SourceUnreachable
from tidemark.lake.event_logs import batches, capture_app_id
from tidemark.replication.model.replication import LogPosition
from tidemark.replication.planning.events import EVENT_NAMESPACE
from tidemark.replication.planning.positions import lsn_of, lsn_text
from tidemark.replication.sources.postgresql.capturing import PostgresLog, postgres_log
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.slots import advance_slot, current_position

pytestmark = pytest.mark.spark

APP_ID = capture_app_id("store", "uid-1")


class Died(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[CaptureWorld]:
    source = SourceWorld(source_server, "capture")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source.replicate("t")
    yield CaptureWorld(spark, source, tmp_path)
    source.close()


def keys(world: CaptureWorld) -> list[str]:
    return [row["key"] for row in world.events()]


def test_an_event_has_what_datastream_tells_and_its_place(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1, 'a')", "UPDATE t SET id = 2")
    report = world.capture()
    insert, gone, come = world.events()
    schema = world.rows.where("change = 'SCHEMA'").first()
    assert report.events == {"public.t": 3}
    assert (report.transactions, report.batches, report.protocol) == (2, 1, "functions")
    assert (insert["stream_name"], insert["read_method"], insert["object"]) == ("shop", "postgres-cdc-wal", "public_t")
    assert insert["read_timestamp"] == NOW.replace(tzinfo=None)
    metadata = insert["source_metadata"]
    assert (metadata["schema"], metadata["table"], metadata["change_type"]) == ("public", "t", "INSERT")
    assert metadata["primary_keys"] == ["id"]
    assert [row["source_metadata"]["is_deleted"] for row in (insert, gone, come)] == [False, True, False]
    assert (gone["key"], come["key"], come["old_key"]) == ('["1"]', '["2"]', '["1"]')
    assert len(insert["schema_key"]) == 40
    assert schema is not None
    assert schema["schema_key"] == insert["schema_key"]
    assert [row["batch"] for row in (insert, gone, come)] == [1, 1, 1]
    raw = world.source.rows()  # the slot has moved: nothing is left to read
    assert raw == []


def test_uuids_and_sort_keys_come_of_the_place_in_the_log(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 3) AS g", "UPDATE t SET id = -1 WHERE id = 1")
    staged = {(row[1], row[6]): row for row in world.source.rows()}
    world.capture()
    rows = world.rows.collect()
    assert len(rows) == len(staged) == 6
    for row in rows:
        _, commit, xid, at, lsn, nth, sequence, _, half, *_ = staged[int(row["position"], 16), row["sequence"]]
        name = f"{world.request.system_id}|{commit:016X}|{lsn:016X}|{nth}|{half}"
        assert row["uuid"] == str(uuid.uuid5(EVENT_NAMESPACE, name))
        assert (row["source_metadata"]["lsn"], row["source_metadata"]["tx_id"]) == (lsn_text(lsn), str(xid))
        assert at is not None
        assert row["sort_keys"] == [str(at // 1_000), lsn_text(lsn), str(sequence)]


def test_both_ways_to_read_write_the_same_log(
    spark: SparkSession, world: CaptureWorld, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = f"{world.source.slot}_copy"
    world.source.sql(f"SELECT pg_copy_logical_replication_slot('{world.source.slot}', '{copy}')")
    world.source.sql("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 50) AS g", "DELETE FROM t WHERE id > 40")
    world.source.sql("SELECT pg_logical_emit_message(true, 'tidemark', 'beat')")
    world.capture()
    other = CaptureWorld(spark, world.source, tmp_path_factory.mktemp("other"))
    other.request = replace(other.request, slot=copy, captured=world.request.captured)
    report = other.capture(functions_up_to=-1)
    assert report.protocol == "replication"
    assert world.rows.exceptAll(other.rows).count() == 0
    assert other.rows.count() == world.rows.count() == 62
    world.source.sql(f"SELECT pg_drop_replication_slot('{copy}')")


def test_a_run_without_an_event_writes_nothing_and_leaves_the_slot_to_the_caller(world: CaptureWorld) -> None:
    before = world.confirmed
    world.source.sql("INSERT INTO t VALUES (1)")
    first = world.capture()
    head = world.log.head()
    world.store(first)
    assert world.confirmed == first.captured > before
    world.source.sql("CREATE TABLE beside AS SELECT 1", "DROP TABLE beside", "CHECKPOINT")
    second = world.capture()
    assert (world.log.head(), second.batches, second.events) == (head, 1, {})
    assert second.captured > first.captured == world.confirmed


def test_batches_are_whole_transactions_and_the_slot_follows_each(world: CaptureWorld) -> None:
    for first in range(0, 50, 10):
        world.source.sql(f"INSERT INTO t SELECT generate_series({first}, {first + 9})")
    seen: list[LogPosition] = []
    report = world.capture(max_events=15, stop_if_due=lambda: seen.append(world.confirmed))
    assert (report.batches, report.transactions, report.events) == (3, 5, {"public.t": 50})
    assert keys(world) == [f'["{number}"]' for number in range(50)]
    assert len(set(seen)) == 3
    found = list(batches(world.log, APP_ID))
    assert [(one.number, one.transactions) for one in found] == [(3, 1), (2, 2), (1, 2)]
    assert found[0].start == found[1].end
    assert found[0].end == report.captured.commit


@pytest.mark.parametrize("functions_up_to", [1 << 30, -1])
def test_a_run_that_dies_before_the_commit_has_written_nothing(world: CaptureWorld, functions_up_to: int) -> None:
    world.source.sql("INSERT INTO t VALUES (1), (2)")
    with pytest.raises(Died):
        world.capture(stop_if_due=dying_at(2), functions_up_to=functions_up_to)
    assert world.rows.count() == 0
    report = world.capture(functions_up_to=functions_up_to)
    assert (keys(world), report.events) == (['["1"]', '["2"]'], {"public.t": 2})


def test_a_run_that_died_after_the_commit_is_found_by_the_next(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1), (2)")
    before = world.confirmed
    with pytest.raises(Died):
        world.capture(say=dying_at(1))
    assert world.confirmed == before  # the slot has not moved
    world.source.sql("ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (3)")
    report = world.capture()
    assert keys(world) == ['["1"]', '["2"]', '["3"]']
    assert (report.batches, report.transactions, report.events) == (2, 2, {"public.t": 3})
    assert (set(report.schemas), report.renamed) == ({"public.t"}, {"public.t": "public.u"})
    assert world.rows.where("change = 'SCHEMA'").count() == 1
    assert world.confirmed == report.captured
    assert report.newest_source_timestamp is not None


def test_of_two_captures_at_once_one_takes_over_what_the_other_wrote(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1), (2)")
    reports = []

    def other_comes_first(*_: str) -> None:
        if not reports:
            reports.append(None)
            world.source.sql("INSERT INTO t VALUES (3)")  # behind the end of the first, before that of the other
            reports.append(world.capture())
            world.source.sql("INSERT INTO t VALUES (4)")

    calls = iter([lambda: None, other_comes_first])
    late = world.capture(stop_if_due=lambda: next(calls, lambda: None)())
    assert keys(world) == ['["1"]', '["2"]', '["3"]']
    assert late.captured == reports[1].captured
    assert late.events == reports[1].events == {"public.t": 3}
    assert any("another capture" in line for line in world.said)
    world.store(late)
    world.capture()
    assert keys(world) == ['["1"]', '["2"]', '["3"]', '["4"]']


@pytest.mark.parametrize("functions_up_to", [1 << 30, -1])
def test_a_source_that_goes_away_in_the_middle_loses_nothing(world: CaptureWorld, functions_up_to: int) -> None:
    world.source.sql("INSERT INTO t SELECT g, repeat('v', 100) FROM generate_series(1, 60000) AS g")
    ended = []

    def end_sessions() -> None:
        if len(ended) == 1:
            world.source.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidemark'"
            )
        ended.append(None)

    with pytest.raises(SourceUnreachable):
        world.capture(stop_if_due=end_sessions, functions_up_to=functions_up_to)
    assert world.rows.count() == 0
    assert world.capture(functions_up_to=functions_up_to).events == {"public.t": 60000}
    assert world.rows.select("key").distinct().count() == 60001  # and null, of the schema


def test_an_event_log_that_is_another_is_refused(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1)")
    world.store(world.capture())
    shutil.rmtree(f"{world.home}/events")
    with pytest.raises(EventLogChanged, match="is gone"):
        world.capture()
    world.spark.sql(f"CREATE TABLE delta.`{world.home}/events` (a INT) USING delta")
    with pytest.raises(EventLogChanged, match="lacks the columns"):
        world.capture()
    shutil.rmtree(f"{world.home}/events")
    known, world.request = world.request, replace(world.request, batches=0)
    world.capture()
    world.request = known
    with pytest.raises(EventLogChanged, match="up to 0 only"):
        world.capture()


def test_an_event_log_that_was_restored_is_refused_until_its_batches_are_back(world: CaptureWorld) -> None:
    for key in (1, 2):
        world.source.sql(f"INSERT INTO t VALUES ({key})")
        world.store(world.capture())
    table, whole = f"delta.`{world.home}/events`", world.log.head()
    world.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {whole - 1}")
    world.source.sql("INSERT INTO t VALUES (3)")
    with pytest.raises(EventLogChanged, match=f"before batch 2. Restore it to version {whole}"):
        world.capture()
    world.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {whole}")
    assert world.capture().batches == 3
    assert keys(world) == ['["1"]', '["2"]', '["3"]']


def test_another_source_or_slot_is_noticed_before_anything_is_read(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1)")
    known = world.request
    world.request = replace(known, system_id="1")
    with pytest.raises(SourceIsAnother):
        world.capture()
    world.request = replace(known, slot="no_such_slot")
    with pytest.raises(SlotLost):
        world.capture()
    world.request = known
    with connect(world.source.address) as connection:
        advance_slot(connection, world.source.slot, current_position(connection))
    with pytest.raises(SlotAhead):
        world.capture()
    assert world.rows.count() == 0


def test_a_slot_that_another_capture_moves_on_after_the_log_was_read_is_not_ahead(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1)")

    @contextmanager
    def overtaken(*asked: Any) -> Iterator[PostgresLog]:
        with postgres_log(*asked) as log:
            resume = log.resume

            def later(*place: Any) -> None:
                log.resume = resume  # type: ignore[method-assign]
                assert world.capture().batches == 1
                resume(*place)

            log.resume = later  # type: ignore[method-assign]
            yield log

    report = world.capture(open_log=overtaken)
    assert report.captured >= world.confirmed
    assert (report.batches, keys(world)) == (1, ['["1"]'])


def test_a_source_that_is_behind_the_log_is_not_captured_and_its_slot_stays(world: CaptureWorld) -> None:
    world.source.sql("INSERT INTO t VALUES (1)")
    before = world.confirmed
    known, ahead = world.request, LogPosition(f"{lsn_of(world.request.captured) + (64 << 20):016X}")
    world.request = replace(known, captured=ahead)
    with pytest.raises(SourceSetBack):
        world.capture()
    assert world.confirmed == before
    world.request = known
    assert world.capture().events == {"public.t": 1}


def dying_at(call: int) -> Callable[..., None]:
    calls = []

    def die(*_: str) -> None:
        calls.append(None)
        if len(calls) == call:
            raise Died

    return die
