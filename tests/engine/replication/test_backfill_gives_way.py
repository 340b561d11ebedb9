"""A backfill never stops the application: it makes room for who wants the table, and begins anew behind him."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.engine.replication.test_backfill_object import SIMPLE, opened
from tests.postgresql import PostgresServer
from tests.until import wait_until
from tidemark.errors import BackfillGaveWay, JobCancelled
from tidemark.replication.worker.backfill_moves import BEFORE_THE_WRITE

pytestmark = pytest.mark.spark


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[ReplicatedWorld]:
    with opened(spark, source_server, tmp_path, *SIMPLE) as made:
        yield made


class Application:
    """Runs `sql` from the moment at which the copy has its snapshot, and waits until somebody waits for the copy."""

    def __init__(self, world: ReplicatedWorld, *sql: str) -> None:
        self._world, self._sql = world, sql
        self._threads: list[threading.Thread] = []

    def say(self, text: str) -> None:
        if "copying" not in text:
            return
        thread = threading.Thread(target=self._world.source.sql, args=self._sql)
        thread.start()
        self._threads.append(thread)
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
        while thread.is_alive() and self._world.source.sql(waiting) == [(0,)]:
            pass
        reading = threading.Thread(target=self._world.source.sql, args=("SELECT count(*) FROM t",))
        reading.start()
        self._threads.append(reading)

    def end(self) -> None:
        for thread in self._threads:
            thread.join()


def test_an_alter_table_while_it_is_copied_goes_through_and_the_copy_begins_anew(world: ReplicatedWorld) -> None:
    """Four readers are still to open, behind an ALTER TABLE that waits for the session which holds the table."""
    application = Application(world, "ALTER TABLE t ADD COLUMN IF NOT EXISTS w int DEFAULT 7")
    told: list[str] = []

    def say(text: str) -> None:
        told.append(text)
        if len([one for one in told if "copying" in one]) == 1:
            application.say(text)

    request = world.backfill_ask(partitions=4, gives_way_after=0.3)
    report = world.backfill(request, say=say, pauses=(0.0, 0.0, 0.0))
    application.end()
    assert report.rows == 500
    assert set(world.rows("w")) == {(7,)}
    assert [one for one in told if "gave way to other sessions of the source" in one and "starts again" in one]


def test_a_copy_that_is_never_left_the_table_fails_and_may_be_tried_again(world: ReplicatedWorld) -> None:
    application = Application(world, "TRUNCATE t")
    with pytest.raises(BackfillGaveWay) as passing:
        world.backfill(world.backfill_ask(gives_way_after=0.3), say=application.say, pauses=(0.0,))
    application.end()
    assert isinstance(passing.value, BEFORE_THE_WRITE)
    assert not world.target.table_id or world.rows() == []
    ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^tidemark' AND datname = current_database()"
    wait_until(lambda: world.source.sql(ours) == [(0,)])  # a server notes the end of a session a moment after it
    report = world.backfill()
    assert report.rows == 0


def test_a_pause_ends_when_the_job_is_told_to(world: ReplicatedWorld) -> None:
    application = Application(world, "TRUNCATE t")
    due: list[bool] = []

    def say(text: str) -> None:
        application.say(text)
        if "starts again" in text:
            due.append(True)

    def stop_if_due() -> None:
        if due:
            raise JobCancelled(key="k")

    request = world.backfill_ask(gives_way_after=0.3)
    with pytest.raises(JobCancelled):
        world.backfill(request, say=say, stop_if_due=stop_if_due, pauses=(3600.0,), patience=timedelta(minutes=1))
    application.end()
