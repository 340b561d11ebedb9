"""A batch stands in the log once, whoever captures it and how often; what cannot be captured is refused beforehand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from pyspark.sql import SparkSession

from tests.engine.change_streams.captured import Captured, on_one_table, table_ref
from tests.engine.lakes import Lake
from tests.tiers import some_rows
from tidemark.change_streams.driver.capture import FEW_ROWS, capture_batch, settings_for
from tidemark.change_streams.model.change_streams import CLOCKS_DIFFER, MICROSECOND, CaptureResult, WatchedTable
from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
from tidemark.errors import ChangeStreamRefused, WatchedTableChanged
from tidemark.jobs.run import run
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobSpec

pytestmark = pytest.mark.spark


def test_a_second_attempt_answers_what_the_first_has_written(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured = on_one_table(lake, workspace, partitions=2)
    lake.sql("INSERT INTO {t} SELECT id, 'a' FROM range(9)")
    batch = captured.batch(lake.version)

    first = captured.run(batch)
    head = DeltaLog.open(str(captured.log_path)).head()
    lake.sql("DELETE FROM {t}")
    second = captured.run(batch)

    assert (first.found, second) == (False, replace(first, found=True))
    assert DeltaLog.open(str(captured.log_path)).head() == head

    captured.close(batch, first)
    captured.capture(lake.version)
    assert captured.run(batch) == second  # though a later batch stands in the log


def test_the_job_answers_the_result_and_finds_it_again(lake: Lake, workspace: Workspace, tmp_path: Path) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    batch = captured.batch(lake.version)
    spec = JobSpec(
        kind=CAPTURE_CHANGES.name,
        entry=CAPTURE_CHANGES.entry,
        request=to_plain(batch),
        store_id="store",
        workspace=f"file://{tmp_path}/_tidemark",
        result_uri=f"{tmp_path}/result",
        cancel_uri=f"{tmp_path}/cancel",
        deadline=datetime.now(UTC) + timedelta(hours=1),
    )
    answers = [run(lake.spark, spec) for _ in range(2)]
    assert [answer.error for answer in answers] == [None, None]
    first, second = map(CAPTURE_CHANGES.reported, answers)
    assert (first.rows, first.found, second) == (1, False, replace(first, found=True))


def test_two_captures_at_once_make_one_commit_and_answer_the_same(
    lake: Lake, workspace: Workspace, tmp_path: Path
) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} SELECT id, 'a' FROM range(50)")
    batch = captured.batch(lake.version)
    together = Barrier(2)

    def capture(number: int) -> CaptureResult:
        with Workspace(f"file://{tmp_path}/_tidemark", f"capture{number}") as own:
            together.wait()
            return capture_batch(lake.spark.newSession(), batch, own)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(capture, range(2))
    assert replace(one, found=True) == replace(other, found=True)
    assert {one.found, other.found} == {False, True}
    log = DeltaLog.open(str(captured.log_path))
    with_batch = [commit for commit in log.commits(-1, log.head()) if batch.stream.uid in commit.transactions]
    assert (len(with_batch), len(captured.rows()), len(captured.rows("window"))) == (1, 50, 1)


def test_a_small_batch_is_a_few_jobs_and_leaves_the_settings_of_the_session(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured = on_one_table(lake, workspace, partitions=2)
    lake.sql("INSERT INTO {t} SELECT id, 'a' FROM range(20)")
    session = lake.spark.newSession()
    its_own = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "7"}
    for name, value in its_own.items():
        session.conf.set(name, value)
    jobs = number_of_jobs(session)
    assert capture_batch(session, captured.batch(lake.version), workspace).rows == 20
    assert number_of_jobs(session) - jobs <= 15  # as Spark would have it: 26
    assert {name: session.conf.get(name) for name in its_own} == its_own


def number_of_jobs(spark: SparkSession) -> int:
    """How many jobs Spark has run so far."""
    kept = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return 1 + max((int(kept.apply(place).jobId()) for place in range(kept.size())), default=-1)


def test_a_batch_of_many_rows_is_planned_as_the_session_says() -> None:
    assert settings_for(FEW_ROWS + 1) == {}
    assert settings_for(FEW_ROWS)["spark.sql.adaptive.enabled"] == "false"


def test_another_batch_that_has_the_number_is_the_answer(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured = on_one_table(lake, workspace)
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    batch = captured.batch(lake.version)
    captured.run(batch)
    lake.sql("INSERT INTO {t} VALUES (2, 'a')")
    found = captured.run(captured.batch(lake.version))  # as from a store that was put back from a backup
    assert (found.found, found.rows, found.taken) == (True, 1, batch.ranges)
    assert captured.run(batch).taken is None
    assert len(captured.rows()) == 1


def test_a_table_that_is_no_log_is_left_alone(lake: Lake, workspace: Workspace) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    captured = replace(on_one_table(lake, workspace), log_path=lake.path)
    head = lake.version
    with pytest.raises(ChangeStreamRefused, match="is not its log"):
        captured.capture(lake.version)
    assert lake.version == head


def test_tables_with_equal_and_backward_clocks_have_times_of_their_own(
    lake: Lake, workspace: Workspace, tmp_path: Path
) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a')", "UPDATE {t} SET v = 'b'")
    other = Lake(lake.spark, tmp_path / "other", workspace).create()
    other.sql("INSERT INTO {t} VALUES (1, 'x')", "DELETE FROM {t}")
    watched = [WatchedTable(table_ref(table, name), ("k",), None, 0) for table, name in ((lake, "a"), (other, "b"))]
    captured = Captured(lake.spark, workspace, tmp_path / "log", watched, partitions=4)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
    for table in (lake, other):
        set_times(table, {0: noon - 5, 1: noon, 2: noon - 60})

    captured.capture(2, 2, safe_until=datetime(2026, 1, 1, 13, tzinfo=UTC))
    late = lake.sql("UPDATE {t} SET v = 'c'")
    set_times(lake, {late: noon + 1})
    captured.capture(late, 2)

    found = {row["server_transaction_id"]: row for row in captured.rows()}
    ids = [table.log.state().table_id for table in (lake, other)]
    order = [f"{table_id}:1" for table_id in sorted(ids)] + [f"{table_id}:2" for table_id in sorted(ids)]
    assert list(found) == [*order, f"{ids[0]}:{late}"]
    times = [(row["commit_timestamp"] - int(noon * 1_000_000)) for row in found.values()]
    assert times == [0, 1, 1_000, 1_001, 3_600_000_000]  # Delta takes a file's time as a millisecond after the last
    assert {row["raw_commit_timestamp"] - int(noon * 1_000_000) for row in found.values()} == {0, 1_000, 1_000_000}
    assert {row["table_name"] for row in found.values()} == {"a", "b"}


def test_a_table_whose_clock_is_ahead_moves_no_other_and_is_named(
    lake: Lake, workspace: Workspace, tmp_path: Path
) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a')", "UPDATE {t} SET v = 'b'")
    other = Lake(lake.spark, tmp_path / "other", workspace).create()
    other.sql("INSERT INTO {t} VALUES (1, 'x')")
    watched = [WatchedTable(table_ref(table, name), ("k",), None, 0) for table, name in ((lake, "a"), (other, "b"))]
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for table, ahead in ((lake, 3_600), (other, -1)):
        set_times(table, {version: noon.timestamp() + ahead + version for version in range(table.version + 1)})
    captured = Captured(lake.spark, workspace, tmp_path / "log", watched, opened_at=noon)
    result = captured.capture(2, 1, safe_until=noon - timedelta(seconds=10))
    assert result.ahead == {"a": timedelta(hours=1, seconds=2)}
    assert result.published_until == noon + CLOCKS_DIFFER + 2 * MICROSECOND
    late = other.sql("UPDATE {t} SET v = 'y'")
    set_times(other, {late: noon.timestamp() + 60})
    captured.opened_at = noon + timedelta(seconds=70)
    assert captured.capture(2, late, safe_until=noon + timedelta(seconds=60)).ahead == {}
    times = [(row["table_name"], row["commit_timestamp"] - int(noon.timestamp()) * 10**6) for row in captured.rows()]
    assert times == [("b", 0), ("a", 10_000_000), ("a", 10_000_001), ("b", 60_000_000)]
    assert [row["raw_commit_timestamp"] for row in captured.rows()][1] == (noon.timestamp() + 3_601) * 10**6


def set_times(table: Lake, times: dict[int, float]) -> None:
    for version, time in times.items():
        os.utime(table.path / "_delta_log" / f"{version:020d}.json", (time, time))


def dropped(lake: Lake) -> None:
    shutil.rmtree(lake.path)


def recreated(lake: Lake) -> None:
    shutil.rmtree(lake.path)
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} VALUES (2, 'a')")


def untracked(lake: Lake) -> None:
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")


def without_its_key(lake: Lake) -> None:
    lake.sql("ALTER TABLE {t} RENAME COLUMN k TO id")


def without_a_listed_column(lake: Lake) -> None:
    lake.sql("ALTER TABLE {t} DROP COLUMN v")


@pytest.mark.parametrize(
    ("change", "problem"),
    some_rows(
        [
            (dropped, "No table exists at"),
            (recreated, "another one now"),
            (untracked, "row tracking"),
            (without_its_key, "key column k is gone"),
            (without_a_listed_column, "watched column v is gone"),
        ],
        now=[(dropped, "No table exists at"), (without_its_key, "key column k is gone")],
    ),
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_watched_table_that_changed_is_an_error_before_anything_is_written(
    lake: Lake, workspace: Workspace, change: Callable[[Lake], None], problem: str
) -> None:
    lake.create(delta__columnMapping__mode="name")
    captured = on_one_table(lake, workspace, columns=("v",))
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    change(lake)
    end = max(captured.tables[0].captured + 1, lake.version if lake.path.exists() else 0)
    with pytest.raises(WatchedTableChanged, match=problem):
        captured.capture(end)
    assert captured.rows("window") == []
    assert captured.rows() == []
