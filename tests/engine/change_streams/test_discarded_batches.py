"""A capture that can never succeed is passed, and a late one of a batch that was given up puts nothing in twice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.change_streams.captured import Captured, on_one_table
from tests.engine.change_streams.test_client_change_streams import KEYED, SINGERS, Bench
from tests.engine.lakes import Lake
from tests.tiers import some
from tidemark.change_streams.driver.batch_log import bar_discarded, open_log
from tidemark.change_streams.model.change_streams import CaptureBatch
from tidemark.change_streams.worker.capture import open_batch
from tidemark.errors import (
    BatchBarred,
    DiscardedBatchCaptured,
    InvalidArgument,
    KeyTwiceInTransaction,
    WatchedTableChanged,
)
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    made = Bench(spark, tmp_path)
    made.lake.create_change_stream("SingersNameStream", "music.Singers")
    return made


def test_a_doubled_key_is_passed_by_a_restart_and_nothing_else_is_left_out(bench: Bench) -> None:
    bench.table("music.Albums", "SingerId BIGINT, Title STRING", "TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    bench.lake.alter_change_stream(
        "SingersNameStream", ["music.Singers", "music.Albums"], keys={"music.Albums": ["SingerId"]}
    )
    bench.write("INSERT INTO {t} VALUES (9, 'Blue')", "music.Albums")
    bench.singers("1, 'a', 'b', 1", "2, 'a', 'b', 1")
    bench.write("INSERT INTO {t} VALUES (3, 'a', 'b', 1), (3, 'x', 'y', 2)")
    for _ in range(2):
        with pytest.raises(KeyTwiceInTransaction, match="restart"):
            bench.capture()
    bench.write("DELETE FROM {t} WHERE SingerId = 3 AND Age = 2")
    with pytest.raises(KeyTwiceInTransaction):  # mended, but the version is still there
        bench.capture()
    with pytest.raises(InvalidArgument, match="does not watch"):
        bench.lake.alter_change_stream("SingersNameStream", restart=["music.Nobody"])
    bench.lake.alter_change_stream("SingersNameStream", restart=["music.singers"])
    bench.singers("4, 'a', 'b', 1")
    assert bench.capture().rows == 2
    assert [(one.table_name, one.mods[0].keys) for one in bench.records(as_json=False)] == [
        ("music.Albums", '{"SingerId":"9"}'),
        ("music.Singers", '{"SingerId":"4"}'),
    ]
    assert bench.capture() is None


@pytest.mark.parametrize("watch", some([["music.Singers", "music.Albums"], "ALL"], now=["ALL"]))
def test_a_table_that_vanishes_while_a_batch_is_open_is_named_and_altering_passes_it(bench: Bench, watch: Any) -> None:
    bench.table("music.Albums", SINGERS, KEYED)
    bench.lake.alter_change_stream("SingersNameStream", watch)
    bench.singers("1, 'a', 'b', 1")
    bench.write("INSERT INTO {t} VALUES (9, 'a', 'b', 1)", "music.Albums")
    context = bench.lake._context
    opened = open_batch(context.store, "SingersNameStream", tables=context.tables, allowed_skew=timedelta(0))
    assert opened is not None
    shutil.rmtree(bench.path / "lake" / "music" / "Albums")
    for _ in range(2):
        with pytest.raises(WatchedTableChanged) as failed:
            bench.capture()
        said = str(failed.value)
        assert "cannot capture music.Albums from version 1 on: No table exists" in said
        assert "each capture tries the same batch again" in said
        assert "Remove the table from the watch list" in said
    bench.lake.alter_change_stream("SingersNameStream", "ALL" if watch == "ALL" else "music.Singers")
    assert bench.capture().rows == 1
    assert [one.table_name for one in bench.records(as_json=False)] == ["music.Singers"]


def test_a_suspended_stream_goes_on_with_what_it_had_and_its_promise_moves(bench: Bench) -> None:
    bench.write("INSERT INTO {t} VALUES (3, 'a', 'b', 1), (3, 'x', 'y', 2)")
    with pytest.raises(KeyTwiceInTransaction):
        bench.capture()
    bench.lake.suspend_change_stream("SingersNameStream")
    before = bench.lake.describe_change_stream("SingersNameStream").published_until
    assert bench.capture().rows == 0
    assert bench.lake.describe_change_stream("SingersNameStream").published_until > before
    assert (bench.records(), bench.capture()) == ([], None)


def following(captured: Captured, *ends: int) -> CaptureBatch:
    """The batch that comes after the one that is given up: the same versions, the next number."""
    return replace(captured.batch(*ends), number=captured.number + 1, discarded=(captured.number,))


def test_an_attempt_of_a_batch_that_was_given_up_comes_too_late(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    batch, after = captured.batch(lake.version), following(captured, lake.version)
    log = open_log(lake.spark, after)

    for attempt in ("one", "two"):  # a kill after the barrier, and the retry
        bar_discarded(lake.spark, log, after, attempt)
    assert log.head() == 1
    with pytest.raises(BatchBarred, match="discarded"):
        captured.run(batch)
    result = captured.run(after)
    with pytest.raises(BatchBarred):
        captured.run(batch)
    assert (result.rows, len(captured.rows()), len(captured.rows("partition"))) == (1, 1, 1)
    assert captured.run(after).found


def test_one_that_reached_the_log_before_keeps_the_next_out(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    batch, after = captured.batch(lake.version), following(captured, lake.version)
    captured.run(batch)
    head = DeltaLog.open(str(captured.log_path)).head()
    for _ in range(2):
        with pytest.raises(DiscardedBatchCaptured, match="Batch 0"):
            captured.run(after)
    assert (DeltaLog.open(str(captured.log_path)).head(), len(captured.rows())) == (head, 1)
    assert captured.run(batch).found


def test_a_barrier_and_a_late_capture_at_once_leave_one_of_them(
    lake: Lake, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    batch, after = captured.batch(lake.version), following(captured, lake.version)
    log = open_log(lake.spark, after)
    barred = []

    def meanwhile(point: str) -> None:
        if point == "capture.before" and not barred:
            barred.append(point)
            bar_discarded(lake.spark, log, after, "other")

    monkeypatch.setattr("tidemark.change_streams.driver.batch_log.failpoint", meanwhile)
    with pytest.raises(BatchBarred, match="discarded"):
        captured.run(batch)
    assert barred
    assert captured.rows() == []
    assert captured.run(after).rows == 1
