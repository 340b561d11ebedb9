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
from tidemark.jobs.workspace import Workspace
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobSpec
from tidemark.pipes.driver.batches import BatchRunner
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import list_files
from tidemark.pipes.model.copying import Load, MatchBy
from tidemark.pipes.model.events import COPY_KEPT, COPY_SUFFIX, KEPT, Batch
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.model.jobs import QUEUE_FILES, QueueFiles
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
    number = table.numbers()[0] + 1
    assert table.plan(Batch(number, load, version, by), files, None, at or datetime.now(UTC), partial=False)


def refresh(world: LoadWorld) -> JobSpec:
    """The job of ALTER PIPE … REFRESH."""
    own = run_request(world.home)
    request = QueueFiles(own.pipe, own.uid, own.queue, own.load, FileSource.REFRESH)
    return replace(pipe_spec(world.home), kind=QUEUE_FILES.name, entry=QUEUE_FILES.entry, request=to_plain(request))


def elsewhere(world: LoadWorld) -> Path:
    """Another directory of files."""
    place = world.home / "elsewhere"
    place.mkdir(exist_ok=True)
    return place


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
    report = world.run(replace(pipe_spec(world.home), request=to_plain(replace(run_request(world.home), load=by_name))))
    assert sorted(f["file"] for f in report["failed"]) == ["cut.csv.gz", "gone.csv"]
    assert world.rows() == Counter([7])


def test_a_pipe_whose_statement_fails_continues_once_it_is_corrected(world: LoadWorld) -> None:
    world.put("f.csv", ["1"])
    world.note()
    wrong = replace(run_request(world.home), load=replace(load_of(world.home), columns=("nothing",)))
    failed = run(world.spark, replace(pipe_spec(world.home), request=to_plain(wrong)), say=lambda text: None)
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


def test_a_pipe_gives_up_the_batch_of_an_earlier_statement_that_can_never_be_loaded(world: LoadWorld) -> None:
    """Its table is gone, or its columns; the pipe's statement is another one by now."""
    world.put("f.csv", ["1"])
    queue, load = queue_of(world), load_of(world.home)
    (elsewhere(world) / "old.csv").write_text("5\n")
    old = replace(load, location=elsewhere(world).as_uri())
    plan(world, queue, replace(old, columns=("nothing",)), "a run that died")
    assert world.run(pipe_spec(world.home))["files_loaded"] == 1
    files = list_files(old, None).table
    gone = Batch(queue.numbers()[0] + 1, replace(old, path=f"{load.path}_gone"), 0, "a run that died")
    assert queue.plan(gone, files, None, datetime.now(UTC), partial=False)
    world.put("g.csv", ["2"])
    assert world.run(pipe_spec(world.home))["files_loaded"] == 1
    assert world.rows() == Counter({1: 1, 2: 1})


def test_files_of_a_batch_that_is_given_up_are_loaded_by_the_statement_of_the_pipe(world: LoadWorld) -> None:
    """Its table was dropped, and made again elsewhere, while the location is the same."""
    world.put("f.csv", ["1"])
    world.put("other.txt", ["2"])
    queue, load = queue_of(world), load_of(world.home)
    files = list_files(load, None).table
    gone = Batch(1, replace(load, path=f"{load.path}_gone"), 0, "a run that died")
    assert queue.plan(gone, files, None, datetime.now(UTC), partial=False)
    only = replace(run_request(world.home), load=replace(load, pattern=r".*\.csv"))
    report = world.run(replace(pipe_spec(world.home), request=to_plain(only)))
    assert (report["files"], report["files_loaded"], report["pending"]) == (1, 1, 0)
    assert world.rows() == Counter({1: 1})
    assert world.run(replace(pipe_spec(world.home), request=to_plain(only)))["files"] == 0


def test_a_run_that_dies_while_it_gives_up_a_batch_loses_none_of_its_files(world: LoadWorld, tmp_path: Path) -> None:
    """The batch has an empty commit in its own table by then."""
    world.put("f.csv", ["1"])
    queue, load = queue_of(world), load_of(world.home)
    old = f"{tmp_path.as_uri()}/old"
    world.spark.sql(f"CREATE TABLE delta.`{old}` (v INT) USING delta")
    plan(world, queue, replace(load, path=old, columns=("nothing",)), "a run that died")

    def dies(batch: Batch) -> None:
        raise KeyboardInterrupt

    def ignore(*_: str) -> None:
        pass

    with Workspace(f"{tmp_path.as_uri()}/work", "w") as workspace:
        left, _ = queue.turn()
        assert left is not None
        runner = BatchRunner(
            world.spark, queue, {}, workspace, lambda: datetime.now(UTC), ignore, ignore, given_up=dies
        )
        with pytest.raises(KeyboardInterrupt):
            runner.finish(left)
    assert world.run(pipe_spec(world.home))["files_loaded"] == 1
    assert world.rows() == Counter({1: 1})


def test_a_retry_of_a_copy_gives_up_its_own_batch_that_can_never_be_loaded(world: LoadWorld) -> None:
    """The first attempt had another statement."""
    world.put("f.csv", ["1"])
    load = load_of(world.home)
    table = FilesTable.open(world.spark, load.path + COPY_SUFFIX, None, kept=COPY_KEPT)
    plan(world, table, replace(load, columns=("nothing",)), "k")
    assert [file["status"] for file in world.run(copy_spec(world.home, "k"))["files"]] == ["LOADED"]
    assert world.rows() == Counter({1: 1})


def test_a_refresh_while_a_batch_is_open_asks_for_none_of_its_files(world: LoadWorld) -> None:
    world.put("a.csv", ["1"])
    plan(world, queue_of(world), load_of(world.home), "a run that died")
    world.put("b.csv", ["2"])
    assert world.run(refresh(world))["queued"] == 1
    report = world.run(pipe_spec(world.home, batches=1))
    assert (report["files"], report["pending"]) == (1, 1)
    world.run(pipe_spec(world.home))
    assert world.rows() == Counter({1: 1, 2: 1})


def test_a_refresh_from_a_host_whose_clock_is_behind_gets_its_files_loaded(world: LoadWorld) -> None:
    world.put("a.csv", ["x"])
    assert world.run(pipe_spec(world.home))["files_with_errors"] == 1
    world.put("a.csv", ["1"])
    table, behind = queue_of(world), datetime.now(UTC) - timedelta(hours=1)
    files = list_files(load_of(world.home), None).table
    table.queue(files, FileSource.REFRESH, table.numbers()[0], behind)
    world.run(pipe_spec(world.home))
    assert world.rows() == Counter({1: 1})
    assert world.run(pipe_spec(world.home))["files"] == 0


def test_a_pipe_that_moved_loads_files_whose_names_copy_into_had_loaded_at_the_old_place(world: LoadWorld) -> None:
    world.put("a.csv", ["1"])
    world.run(copy_spec(world.home, "k"))
    assert world.run(pipe_spec(world.home))["files"] == 0
    assert world.run(pipe_spec(world.home))["files"] == 0
    (elsewhere(world) / "a.csv").write_text("2\n")
    moved = replace(load_of(world.home), location=elsewhere(world).as_uri())
    spec = replace(pipe_spec(world.home), request=to_plain(replace(run_request(world.home), load=moved)))
    assert world.run(spec)["files_loaded"] == 1
    assert world.rows() == Counter({1: 1, 2: 1})


def test_a_batch_that_a_later_one_has_overtaken_is_an_error_and_its_files_are_loaded_again(world: LoadWorld) -> None:
    """Delta refuses it from then on."""
    world.put("a.csv", ["1"])
    load = load_of(world.home)
    table = FilesTable.open(world.spark, load.path + COPY_SUFFIX, None, kept=COPY_KEPT)
    plan(world, table, load, "first")
    world.remove("a.csv")
    world.put("b.csv", ["2"])
    plan(world, table, load, "second")
    assert table.turn()[1] == 3
    world.run(copy_spec(world.home, "second"))
    world.put("a.csv", ["1"])
    failed = run(world.spark, copy_spec(world.home, "first"), say=lambda text: None)
    assert failed.error is not None
    assert failed.error.error == "BatchMissing"
    assert world.rows() == Counter({2: 1})
    world.run(copy_spec(world.home, "third"))
    assert world.rows() == Counter({1: 1, 2: 1})


def test_the_files_of_a_batch_that_another_run_finishes_are_removed_with_purge(world: LoadWorld) -> None:
    world.put("a.csv", ["1"])
    load = load_of(world.home)
    table = FilesTable.open(world.spark, load.path + COPY_SUFFIX, None, kept=COPY_KEPT)
    purging = replace(load, options=replace(load.options, purge=True))
    plan(world, table, purging, "a run that died")
    world.run(copy_spec(world.home, "another run"))
    assert [*(world.home / "in").iterdir()] == []
    assert world.rows() == Counter({1: 1})


def test_a_directory_that_somebody_names_is_no_file(world: LoadWorld) -> None:
    world.put("d/a.csv", ["1"])
    own = run_request(world.home)
    request = QueueFiles(own.pipe, own.uid, own.queue, own.load, FileSource.INSERT_FILES, ("d", "d/a.csv"))
    assert world.run(replace(refresh(world), request=to_plain(request)))["queued"] == 1


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
    os.utime(world.home / "lake/db/p__files/_delta_log/00000000000000000000.json", (old.timestamp(), old.timestamp()))
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
