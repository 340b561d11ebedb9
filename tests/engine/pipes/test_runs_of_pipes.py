"""Runs of a pipe beside others, over odd files, and after their statement failed: each file once, with its report."""

from __future__ import annotations

import gzip
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.guarantees.load_world import LoadWorld, copy_spec, load_of, pipe_spec, run_request
from tidemark.jobs.run import run
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import list_files
from tidemark.pipes.model.copying import Load, MatchBy
from tidemark.pipes.model.events import COPY_SUFFIX, KEPT, Batch
from tidemark.pipes.planning.formats import file_format

pytestmark = pytest.mark.spark


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> LoadWorld:
    return LoadWorld(spark, tmp_path)


def queue_of(world: LoadWorld) -> FilesTable:
    return FilesTable.open(world.spark, run_request(world.home).queue, None, kept=KEPT)


def plan(world: LoadWorld, table: FilesTable, load: Load, by: str, at: datetime | None = None) -> None:
    """A batch of all files that are there, planned and not loaded, as by a run that died."""
    files = pa.Table.from_batches(list_files(load, None).tables)
    version = world.spark.sql(f"DESCRIBE HISTORY delta.`{load.path}`").count() - 1
    assert table.plan(
        Batch(table.next_number(), load, version, by), files, None, at or datetime.now(UTC), partial=False
    )


def assert_whole(world: LoadWorld) -> None:
    assert world.rows() == world.expected_rows()
    assert world.reports() == world.expected_reports()


def test_two_runs_at_once_load_each_file_once(world: LoadWorld) -> None:
    for number in range(6):
        world.put(f"f{number}.csv", [str(number * 10 + n) for n in range(5)])
    world.note()

    def one(_: int) -> Any:
        return run(world.spark.newSession(), pipe_spec(world.home, max_files=2), say=lambda text: None)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, range(2)))
    assert [result.error for result in results] == [None, None]
    world.run(pipe_spec(world.home))
    assert_whole(world)


def test_a_late_file_with_an_old_time_is_loaded(world: LoadWorld) -> None:
    """Spark's streaming source leaves out a file that is older than the newest one by maxFileAge, seven days."""
    world.put("new.csv", ["1"])
    world.note()
    world.run(pipe_spec(world.home))
    world.put("a late one.csv", ["2"])
    ten_days_ago = time.time() - 10 * 86_400
    os.utime(world.home / "in" / "a late one.csv", (ten_days_ago, ten_days_ago))
    world.note()
    world.run(pipe_spec(world.home))
    assert_whole(world)


def test_a_file_that_changed_after_it_was_planned_is_reported_and_can_be_asked_for_again(world: LoadWorld) -> None:
    world.put("grows.csv", ["1"])
    world.put("stays.csv", ["2"])
    plan(world, queue_of(world), load_of(world.home), "a run that died")
    world.put("grows.csv", ["1", "3"])
    report = world.run(pipe_spec(world.home))
    assert [(f["file"], f["status"]) for f in report["failed"]] == [("grows.csv", "LOAD_FAILED")]
    assert "changed" in report["failed"][0]["system_error"]
    assert world.rows() == Counter({2: 1})
    world.run(pipe_spec(world.home, prefix="grows"))
    assert world.rows() == Counter({1: 1, 2: 1, 3: 1})


def test_files_that_are_cut_off_or_gone_are_reported_and_the_others_loaded(world: LoadWorld) -> None:
    whole = gzip.compress("".join(f"{number}\n" for number in range(5_000)).encode())
    for number in range(4):
        (world.home / "in" / f"cut {number}.csv.gz").write_bytes(whole[: len(whole) // 2])
    (world.home / "in" / "whole.csv.gz").write_bytes(whole)
    world.put("plain.csv", ["7"])
    world.put("gone.csv", ["8"])
    plan(world, queue_of(world), load_of(world.home), "a run that died")
    world.remove("gone.csv")
    report = world.run(pipe_spec(world.home))
    failed = {f["file"]: f["system_error"] for f in report["failed"]}
    assert sorted(failed) == ["cut 0.csv.gz", "cut 1.csv.gz", "cut 2.csv.gz", "cut 3.csv.gz", "gone.csv"]
    assert "no longer exists" in failed["gone.csv"]
    assert world.rows() == Counter([*range(5_000), 7])


def test_files_without_a_readable_header_are_reported_and_the_others_loaded(world: LoadWorld) -> None:
    by_name = replace(
        load_of(world.home),
        format=file_format("CSV", {"PARSE_HEADER": True}),
        options=replace(load_of(world.home).options, match_by=MatchBy.CASE_INSENSITIVE),
    )
    whole = gzip.compress(b"v\n" + b"".join(b"%d\n" % number for number in range(5_000)))
    (world.home / "in" / "cut.csv.gz").write_bytes(whole[:12])
    world.put("whole.csv", ["v", "7"])
    world.put("gone.csv", ["v", "8"])
    plan(world, queue_of(world), by_name, "a run that died")
    world.remove("gone.csv")
    report = world.run(replace(pipe_spec(world.home), request=_plain(replace(run_request(world.home), load=by_name))))
    assert sorted(f["file"] for f in report["failed"]) == ["cut.csv.gz", "gone.csv"]
    assert world.rows() == Counter([7])


def test_a_pipe_whose_statement_fails_continues_once_it_is_corrected(world: LoadWorld) -> None:
    world.put("f.csv", ["1"])
    world.note()
    wrong = replace(run_request(world.home), load=replace(load_of(world.home), columns=("nothing",)))
    failed = run(world.spark, replace(pipe_spec(world.home), request=_plain(wrong)), say=lambda text: None)
    assert failed.error is not None
    assert failed.error.error == "CopyRefused"
    assert "no column nothing" in failed.error.message
    assert world.rows() == Counter()
    world.run(pipe_spec(world.home))
    assert_whole(world)


def test_a_copy_gives_up_the_batch_of_another_run_that_can_never_be_loaded(world: LoadWorld) -> None:
    world.put("f.csv", ["1"])
    load = load_of(world.home)
    table = FilesTable.open(world.spark, load.path + COPY_SUFFIX, None, kept=KEPT)
    plan(world, table, replace(load, columns=("nothing",)), "a run that died")
    report = world.run(copy_spec(world.home, "another run"))
    assert [file["status"] for file in report["files"]] == ["LOADED"]
    assert world.rows() == Counter({1: 1})


def test_a_file_of_a_million_rows_and_values_of_five_megabytes_beside_small_files(world: LoadWorld) -> None:
    (world.home / "in" / "large.csv").write_text("\n".join(map(str, range(1_000_000))) + "\nx\n")
    world.put("small.csv", ["-1"])
    world.put("wide.csv", ["9" * 5_000_000])
    report = world.run(pipe_spec(world.home))
    failed = {file["file"]: file for file in report["failed"]}
    assert (failed["large.csv"]["rows_parsed"], failed["large.csv"]["first_error_line"]) == (1_000_001, 1_000_001)
    assert failed["wide.csv"]["first_error"].startswith("Numeric value '999")
    assert len(failed["wide.csv"]["first_error"]) < 300
    assert world.rows() == Counter({-1: 1})


def _plain(request: Any) -> Any:
    from tidemark.model.codec import to_plain

    return to_plain(request)


def test_a_file_that_is_older_than_the_history_is_not_loaded_again_once_the_pipe_has_forgotten_it(
    world: LoadWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty days later its name is gone from the queue, and the file is where it was."""
    world.put("stays.csv", ["1"])
    world.run(pipe_spec(world.home))
    later = datetime.now(UTC) + timedelta(days=20)
    monkeypatch.setattr("tidemark.pipes.driver.job_run_pipe.utc_now", lambda: later)
    world.put("new.csv", ["2"])
    os.utime(world.home / "in" / "new.csv", (later.timestamp(), later.timestamp()))
    report = world.run(pipe_spec(world.home))
    assert (report["files"], report["left_out"]) == (1, 0)
    assert world.run(pipe_spec(world.home, prefix="stays"))["files"] == 0
    assert world.rows() == Counter({1: 1, 2: 1})
    assert world.run(pipe_spec(world.home, prefix="stays", force=True))["files"] == 1


def test_a_batch_that_stayed_open_for_longer_than_the_history_is_loaded_all_the_same(world: LoadWorld) -> None:
    """Its pipe could not run for weeks, as without its table."""
    world.put("a.csv", ["1"])
    old = datetime.now(UTC) - KEPT - timedelta(days=6)
    os.utime(world.home / "in" / "a.csv", (old.timestamp(), old.timestamp()))
    plan(world, queue_of(world), load_of(world.home), "a run that died", old)
    assert world.run(pipe_spec(world.home))["files_loaded"] == 1
    assert world.run(pipe_spec(world.home))["files"] == 0
    assert world.rows() == Counter({1: 1})


def test_days_that_are_forgotten_are_removed_by_whichever_run_ends_first(world: LoadWorld) -> None:
    today = datetime.now(UTC)
    path = run_request(world.home).queue
    table = FilesTable.open(world.spark, path, None, kept=KEPT)
    assert table.is_new
    table.append([{"event": "listed", "file": "old.csv"}], today - KEPT - timedelta(days=3))
    table.append([{"event": "listed", "file": "new.csv"}], today)
    assert not table.is_new

    def left(at: datetime) -> list[str]:
        found = FilesTable.open(world.spark, path, None, kept=KEPT)
        found.trim(at)
        return sorted(row.file for row in found.events(today - timedelta(days=900)).collect())

    assert left(today - timedelta(days=5)) == ["new.csv", "old.csv"]
    assert left(today) == left(today) == ["new.csv"]


def test_a_retry_of_a_forced_run_loads_each_file_once(world: LoadWorld) -> None:
    """It was killed behind its first batch; the rest is in the queue."""
    world.put("a.csv", ["1"])
    world.put("b.csv", ["2"])
    world.run(pipe_spec(world.home))
    assert world.run(pipe_spec(world.home, force=True, run="k", max_files=1, batches=1))["files"] == 1
    assert world.run(pipe_spec(world.home, force=True, run="k"))["files"] == 1
    assert world.rows() == Counter({1: 2, 2: 2})
    assert world.run(pipe_spec(world.home, force=True, run="k"))["files"] == 0
    assert world.run(pipe_spec(world.home, force=True, run="another"))["files"] == 2
