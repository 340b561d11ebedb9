"""Envelopes that a Debezium has landed in files reach targets, each once, whatever is landed and whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.databases.debezium.landed import land
from tests.databases.debezium.random_envelopes import RandomShop
from tests.engine.replication.landed_world import LandedWorld
from tests.tiers import some
from tidemark.errors import EnvelopeInvalid, EnvelopesOutOfOrder, ReplicationInvalid, ReplicationRefused, SlotLost
from tidemark.failpoints import KILL_AT
from tidemark.replication.model.replication import ObjectState, ReplicationState, Selection
from tidemark.replication.worker.objects import request_backfill
from tidemark.replication.worker.recovering import recover_from

pytestmark = pytest.mark.spark

KILLED_AT = ("events.staged", "events.written", "slot.moved", "segment1.written")
COLUMNS = ("id", "total", "body", "placed")


def land_all(world: LandedWorld, shop: RandomShop, number: int, count: int = 60) -> None:
    for table, records in shop.envelopes(count).items():
        land(world.landed, f"{table}/{number:04d}.jsonl", records)


def require_same(world: LandedWorld, shop: RandomShop) -> None:
    for table, rows in shop.rows.items():
        wanted = sorted((tuple(row[name] for name in COLUMNS) for row in rows.values()), key=repr)
        assert world.rows(f"public.{table}", *COLUMNS) == wanted


def bare(op: str, key: Any, row: dict[str, Any] | None, table: str = "t", **more: Any) -> dict[str, Any]:
    source = {"connector": "mysql", "name": "s", "db": "d", "table": table, "file": "b.1", "pos": 4, "ts_ms": 5}
    before = {"id": key} if op == "d" else None
    value = {"op": op, "source": {**source, **more}, "before": before, "after": row}
    return {"key": None if key is None else {"id": key}, "value": value}


def test_files_reach_the_targets_and_a_second_run_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    world, shop = LandedWorld(spark, tmp_path, max_events=70), RandomShop(1)
    for number in range(2):
        land_all(world, shop, number)
        world.turn()
        require_same(world, shop)
    events = world.events()
    assert len({one["uuid"] for one in events}) == len(events)
    assert {one["read_method"] for one in events} == {"postgres-cdc-wal", "postgresql-backfill"}
    assert {one["source_metadata"]["connector"] for one in events} == {"postgresql"}
    world.jobs.clear()
    captured = world.replication.captured
    assert world.turn() is None
    assert world.jobs == []  # no news starts no Spark
    assert world.replication.captured > captured
    assert world.events() == events
    require_same(world, shop)


@pytest.mark.parametrize("point", some(KILLED_AT, ["events.written"], "a start of Spark for each point"))
def test_a_run_that_was_killed_is_continued_and_nothing_is_lost_or_twice(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    world, shop = LandedWorld(spark, tmp_path, max_events=40), RandomShop(2)
    land_all(world, shop, 0)
    script = Path(__file__).with_name("killed_landed.py")
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
    land_all(world, shop, 1)
    for _ in range(2):
        world.turn()
    require_same(world, shop)
    events = world.events()
    assert len({one["uuid"] for one in events}) == len(events)


def test_a_new_table_is_taken_up_from_its_first_envelope_on(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path)
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1, "v": "a"})])
    world.turn()
    world.prepare()
    land(world.landed, "2.jsonl", [bare("c", 2, {"id": 2, "v": "b"}), bare("c", 1, {"id": 1}, "late")])
    land(world.landed, "3.jsonl", [bare("c", 3, {"id": 3, "v": "c"}), bare("c", 2, {"id": 2}, "late")])
    world.capture()  # the table came between the look and the capture
    assert [one["key"] for one in world.events()] == ['["1"]', '["2"]']
    world.turn()
    assert world.rows("d.t", "id", "v") == [(1, "a"), (2, "b"), (3, "c")]
    assert world.rows("d.late", "id") == [(1,), (2,)]


def test_tables_that_nobody_selects_are_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path, selection=Selection(include=("d.t",)))
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1}, "other"), bare("c", 1, {"id": 1})])
    world.turn()
    assert list(world.objects()) == ["d.t"]
    assert world.rows("d.t", "id") == [(1,)]


def test_an_envelope_that_is_none_is_named_and_nothing_of_its_batch_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = LandedWorld(spark, tmp_path)
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1, "v": "a"})])
    world.turn()
    wrong = land(world.landed, "2.jsonl", [bare("c", 5, {"id": 5, "v": "e"}), bare("c", None, {"id": 2})])
    with pytest.raises(EnvelopeInvalid, match=r"2\.jsonl.*it has no key, which is id elsewhere"):
        world.turn()
    assert world.replication.state is ReplicationState.FAILED
    assert len(world.events()) == 1
    wrong.unlink()
    land(world.landed, "2.jsonl", [bare("c", 2, {"id": 2, "v": "b"})])
    world.turn()
    assert world.replication.state is ReplicationState.RUNNING
    assert world.rows("d.t", "id", "v") == [(1, "a"), (2, "b")]


def test_a_file_that_comes_too_late_is_named_and_not_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path)
    land(world.landed, "2.jsonl", [bare("c", 1, {"id": 1})])
    world.turn()
    late = land(world.landed, "1.jsonl", [bare("c", 2, {"id": 2})])
    os.utime(late, (1, 1))  # as a copy that keeps times
    with pytest.raises(EnvelopesOutOfOrder, match=r"sorts before 2\.jsonl"):
        world.turn()
    late.rename(world.landed / "3.jsonl")
    world.turn()
    assert world.rows("d.t", "id") == [(1,), (2,)]


def test_files_may_be_deleted_once_they_were_read_and_not_before(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path, max_events=2)
    first = land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1})])
    world.turn()
    first.unlink()
    grown = land(world.landed, "2.jsonl", [bare("c", key, {"id": key}) for key in range(2, 5)])
    world.turn()
    with grown.open("a") as file:  # a file that is appended to
        file.write(json.dumps(bare("c", 9, {"id": 9})) + "\n")
    world.turn()
    assert world.rows("d.t", "id") == [(1,), (2,), (3,), (4,), (9,)]
    grown.write_text("")
    with pytest.raises(SlotLost, match=r"shorter file 2\.jsonl"):
        world.turn()
    assert world.replication.state is ReplicationState.FAILED_PERMANENTLY
    land(world.landed, "3.jsonl", [bare("c", 10, {"id": 10})])
    recover_from(
        world.store,
        world.replication.name,
        position="now",
        source=world.source,
        event_log=lambda uid: f"{tmp_path}/events-{uid}",
        by=world.by,
        keep=("d.t",),
    )
    land(world.landed, "4.jsonl", [bare("c", 11, {"id": 11})])
    world.turn()
    assert world.replication.state is ReplicationState.RUNNING
    assert (11,) in world.rows("d.t", "id")
    assert (10,) not in world.rows("d.t", "id")


def test_a_backfill_is_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path)
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1})])
    world.turn()
    assert world.replication.options.backfill is False
    assert world.objects()["d.t"].state is ObjectState.NOT_STARTED
    with pytest.raises(ReplicationRefused, match="execute-snapshot"):
        request_backfill(world.store, world.replication.name, ["d.t"], by=world.by)


def test_values_without_a_place_for_a_key_need_to_be_told_one(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path)
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1})["value"], bare("u", 1, {"id": 1, "v": 2})["value"]])
    with pytest.raises(ReplicationInvalid, match="extra keys"):
        world.turn()
    told = LandedWorld(spark, tmp_path, parameters={"keys": {"d.*": ["id"]}})
    told.turn()
    assert told.rows("d.t", "id", "v") == [(1, 2)]


def test_a_moved_key_carries_the_value_that_its_log_leaves_out(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path)
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1, "v": "long"})])
    world.turn()
    gone, come = bare("d", 1, None), bare("c", 2, {"id": 2, "v": "__debezium_unavailable_value"})
    gone["headers"], come["headers"] = {"__debezium.newkey": "2"}, {"__debezium.oldkey": "1"}
    land(world.landed, "2.jsonl", [gone])
    world.turn()
    assert world.rows("d.t", "id", "v") == [(1, "long")]  # its other half is still to come
    land(world.landed, "3.jsonl", [come])
    world.turn()
    assert world.rows("d.t", "id", "v") == [(2, "long")]


def test_a_source_at_another_place_is_another_source(spark: SparkSession, tmp_path: Path) -> None:
    from tests.databases.debezium.landed import address_of
    from tidemark.errors import SourceIsAnother

    world = LandedWorld(spark, tmp_path)
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1})])
    world.turn()
    other = tmp_path / "other"
    land(other, "1.jsonl", [bare("c", 2, {"id": 2})])
    moved = LandedWorld(spark, tmp_path, address=address_of(other))
    with pytest.raises(SourceIsAnother):
        moved.turn()


def test_a_table_begins_now_if_the_connection_says_so(spark: SparkSession, tmp_path: Path) -> None:
    world = LandedWorld(spark, tmp_path, parameters={"begin": "now"})
    land(world.landed, "1.jsonl", [bare("c", 1, {"id": 1})])
    world.turn()
    land(world.landed, "2.jsonl", [bare("c", 2, {"id": 2})])
    world.turn()
    assert world.rows("d.t", "id") == [(2,)]
