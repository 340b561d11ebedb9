"""What random writers did, as capture has it in the event log: replayed one by one it is the source, and a table's
history holds each event once, in order, whichever way the slot was read and however batches were cut.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.replication_comparison import differences, event_rows, history_of, source_rows
from tests.guarantees.replication_replay import replayed
from tests.guarantees.replication_world import ReplicationWorld, made_source
from tests.guarantees.replication_writers import opened
from tests.postgresql import PostgresServer
from tidemark.engine.replication.capture import capture_events
from tidemark.engine.workspace import Workspace
from tidemark.model.replication import START, LogPosition
from tidemark.model.replication_jobs import CapturedObject, CaptureEvents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def ask_of(world: ReplicationWorld, captured: LogPosition, batches: int, max_events: int) -> CaptureEvents:
    one = world.replication
    return CaptureEvents(
        replication_uid=one.uid,
        stream=one.name,
        kind=one.kind,
        event_log=one.event_log,
        slot=one.slot,
        publication=one.publication,
        system_id=one.system_id or "",
        captured=captured,
        batches=batches,
        objects=tuple(
            CapturedObject(each.name, each.source_id, each.schema.keys, None) for each in world.objects().values()
        ),
        options=one.options.__class__(**{**vars(one.options), "max_events": max_events}),
    )


@pytest.mark.parametrize("seed", range(2))
def test_events_replayed_one_by_one_are_the_source(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    address, tables, writers = made_source(source_server, seed)
    world = ReplicationWorld(spark, address, tables, tmp_path)
    world.prepare()
    captured, batches = world.replication.captured or START, 0

    def capture() -> None:
        nonlocal captured, batches
        ask = ask_of(world, captured, batches, chance.choice((400, 100_000)))
        with Workspace(f"{tmp_path}/work", "capture") as workspace:
            report = capture_events(
                spark.newSession(), world.store.store_id, ask, address, workspace, now=datetime.now(UTC),
                say=lambda _: None, stop_if_due=lambda: None, functions_up_to=chance.choice((0, 64 << 20)),
            )  # fmt: skip
        captured, batches = report.captured, report.batches

    try:
        with writers.at_work(pause=0.005):
            for _ in range(2):
                capture()
        writers.run(400)
        writers.settle()
        capture()
        events = spark.read.format("delta").load(world.replication.event_log).collect()
        assert len({event.uuid for event in events}) == len(events)
        with opened(address) as connection:
            source, found = source_rows(connection, tables), []
            for table in tables:
                oid = world.objects()[table.name].source_id
                own = sorted((e for e in events if e.object_id == oid), key=lambda e: (e.position, e.sequence))
                if table.key:
                    found.append(differences(table, source[table.name], replayed(table, own)))
                else:
                    log = spark.read.format("delta").load(world.replication.event_log)
                    assert event_rows(log, table, oid) == history_of(connection, table)
        assert not any(found), "\n".join(text for text in found if text)
    finally:
        writers.settle()
        world.source.drop(world.replication)
        world.store.close()
