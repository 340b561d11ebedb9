"""A change stream of a store that was put back from a backup: its log counts, nothing is passed over or comes twice."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.control.change_stream_model import ChangeStreamWorld, CountingTable, captured
from tidemark.change_streams.driver import batch_log
from tidemark.change_streams.model.change_streams import CaptureBatch, CaptureResult
from tidemark.change_streams.worker.capture import capture, close_batch
from tidemark.change_streams.worker.definitions import watch
from tidemark.control.store import ControlStore
from tidemark.errors import BatchBarred, CaptureChanged, DiscardedBatchCaptured, TidemarkError
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

PutBack = Callable[[], None]


@dataclass
class Bench:
    """A change stream whose captures write a log of commits without files; `windows` are the rows that tell batches."""

    world: ChangeStreamWorld
    log: CountingTable
    windows: dict[int, CaptureResult] = field(default_factory=dict)

    def opened_log(self) -> DeltaLog:
        return DeltaLog.open(self.log.root.as_uri())

    def job(self, spec: JobSpec) -> JobResult:
        """As the engine does, but for the rows."""
        batch = from_plain(CaptureBatch, spec.request)
        try:
            return JobResult(to_plain(self._captured(batch)))
        except TidemarkError as error:
            return JobResult(error=error.to_record())

    def _captured(self, batch: CaptureBatch) -> CaptureResult:
        found = batch_log.find_batch(None, self.opened_log(), batch)  # type: ignore[arg-type]
        if found is not None:
            return found
        batch_log._require_none_discarded(self.opened_log(), batch)
        if batch.discarded:
            self.enter(max(batch.discarded), barrier=True)
        result = captured(batch)
        self.windows[batch.number] = replace(result, taken=batch.ranges)
        self.enter(batch.number, digest=batch_log._digest(batch))
        return result

    def enter(self, number: int, **mark: object) -> None:
        said = {"operation": "WRITE", "userMetadata": json.dumps({"tidemark_capture": {"batch": number, **mark}})}
        self.log.commit(self.world.clock.go(), {"txn": {"appId": self.world.stream.uid, "version": number + 1}})
        path = self.log.root / "_delta_log" / f"{self.log.versions - 1:020d}.json"
        first, *rest = path.read_text().splitlines()
        info = json.loads(first)
        info["commitInfo"] |= said
        path.write_text("\n".join([json.dumps(info), *rest]) + "\n")

    def commits(self, count: int = 1) -> None:
        for _ in range(count):
            self.world.table.commit(self.world.clock.go())
            self.world.clock.go()

    def capture(self) -> CaptureResult | None:
        paths = JobPaths("file:///w", "file:///e")
        return capture(Runtime(self.world.store, run=self.job, paths=paths, tables=self.world.tables), "s")

    def captures(self, count: int) -> None:
        for _ in range(count):
            self.commits(2)
            self.capture()

    def discard(self) -> None:
        """Alter the stream while a batch is open."""
        table = self.world.table.watched()
        more = self.world.new_table(f"u{self.log.versions}")
        watch(self.world.store, "s", [table, more.watched()], False, open_log=lambda _: self.opened_log())

    def caught_up(self) -> None:
        """Each version of the table lies in one batch of the log, and the store stands behind the last."""
        for _ in range(20):
            try:
                if self.capture() is None:
                    break
            except (BatchBarred, DiscardedBatchCaptured):
                continue
        taken = [one for window in self.windows.values() for one in window.taken or ()]
        versions = [version for one in taken for version in range(one.start + 1, one.end + 1)]
        head = self.world.table.versions - 1
        assert sorted(versions) == list(range(1, head + 1))
        assert self.world.stream.tables[0].captured == head
        assert self.world.stream.published_until >= max(one.published_until for one in self.windows.values())


@pytest.fixture
def bench(migrated_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    path = tmp_path / "control.db"
    path.write_bytes(migrated_file.read_bytes())
    store = ControlStore(f"sqlite:///{path}")
    store.migrate()
    made = Bench(ChangeStreamWorld(store, tmp_path / "lake"), CountingTable(tmp_path / "log", "log", "id of log"))

    def found(_spark: object, _log: DeltaLog, batch: CaptureBatch) -> CaptureResult | None:
        window = made.windows.get(batch.number)
        return None if window is None else replace(window, found=True)

    monkeypatch.setattr(batch_log, "_found", found)
    return made


def backed_up(bench: Bench, tmp_path: Path) -> PutBack:
    """A backup of the store, and what puts it back."""
    with sqlite3.connect(tmp_path / "control.db") as now, sqlite3.connect(tmp_path / "backup.db") as kept:
        now.backup(kept)
    clock = bench.world.clock
    url = f"sqlite:///{tmp_path}/backup.db"
    return lambda: setattr(bench.world, "store", ControlStore(url, clock=clock))


@pytest.mark.parametrize("since", [0, 1, 3])
@pytest.mark.parametrize("before", [0, 1])
def test_batches_since_the_backup_count_and_nothing_is_passed_over(
    bench: Bench, tmp_path: Path, before: int, since: int
) -> None:
    bench.captures(before)
    put_back = backed_up(bench, tmp_path)
    bench.captures(since)
    stands = bench.world.stream
    bench.commits(4)
    put_back()
    for _ in range(since):
        result = bench.capture()
        assert result is not None
        assert result.taken is not None
    assert bench.world.stream == stands
    bench.caught_up()
    assert bench.capture() is None


def test_a_batch_that_was_open_is_gone_on_with(bench: Bench, tmp_path: Path) -> None:
    bench.captures(1)
    bench.commits(2)
    opened = bench.world.opened()
    put_back = backed_up(bench, tmp_path)
    bench.capture()
    bench.captures(2)
    put_back()
    bench.commits()
    result = bench.capture()
    assert result is not None
    assert (result.number, result.found, result.taken) == (opened.number, True, None)
    bench.caught_up()


@pytest.mark.parametrize("count", [1, 3])
def test_altering_the_stream_first_changes_nothing_of_that(bench: Bench, tmp_path: Path, count: int) -> None:
    bench.captures(1)
    put_back = backed_up(bench, tmp_path)
    bench.captures(count)
    bench.commits(4)
    put_back()
    bench.world.opened()
    bench.discard()
    bench.caught_up()


@pytest.mark.parametrize("discards", [1, 2])
def test_a_number_that_was_discarded_since_is_passed(bench: Bench, tmp_path: Path, discards: int) -> None:
    bench.captures(1)
    put_back = backed_up(bench, tmp_path)
    for _ in range(discards):
        bench.commits()
        bench.world.opened()
        bench.discard()
    bench.captures(2)
    bench.commits()
    put_back()
    with pytest.raises(BatchBarred, match="retry"):
        bench.capture()
    bench.caught_up()


def test_discarded_here_before_the_log_was_looked_at_counts_all_the_same(bench: Bench, tmp_path: Path) -> None:
    """The log could not be opened, say, when the stream was altered."""
    bench.captures(1)
    put_back = backed_up(bench, tmp_path)
    bench.captures(3)
    bench.commits(3)
    put_back()
    empty = CountingTable(tmp_path / "empty", "empty", "empty")
    for name in ("v", "w"):
        bench.world.opened()
        tables = [bench.world.table.watched(), bench.world.new_table(name).watched()]
        watch(bench.world.store, "s", tables, False, open_log=lambda _: DeltaLog.open(empty.root.as_uri()))
    bench.caught_up()


def test_closing_what_the_log_has_a_second_time_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    put_back = backed_up(bench, tmp_path)
    bench.captures(1)
    bench.commits(3)
    put_back()
    batch = bench.world.opened()
    result = bench._captured(batch)
    once = close_batch(bench.world.store, batch, result)
    assert close_batch(bench.world.store, batch, result) == once


def test_records_that_expired_since_are_named(bench: Bench, tmp_path: Path) -> None:
    put_back = backed_up(bench, tmp_path)
    bench.captures(3)
    del bench.windows[0]
    bench.commits(3)
    put_back()
    stands = bench.world.stream
    for _ in range(2):
        with pytest.raises(CaptureChanged, match="expired"):
            bench.capture()
    assert bench.world.stream == stands
