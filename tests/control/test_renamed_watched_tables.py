"""A change stream follows its tables by id when they are renamed: nothing is captured twice or left out (R90)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.control.change_stream_model import captured
from tests.unit.lake.delta_directories import commit, singers
from tidemark.change_streams.model.change_streams import CaptureBatch, ChangeStream, WatchedTable
from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
from tidemark.change_streams.store.old_batches import forget_old, read_by_all
from tidemark.change_streams.store.schema import capture_batches
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.capture import capture, open_batch
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.change_streams.worker.discovery import where_it_is
from tidemark.change_streams.worker.watching import LakeTables, find_new_tables
from tidemark.control.store import ControlStore
from tidemark.errors import WatchedTableChanged
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.listing import table_names
from tidemark.lake.moved import below_the_root, beside, open_registered
from tidemark.lake.tables import table_ref
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.streams import TableRef
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

ALL, NAMED = "ALL", ["music.singers", "music.albums"]
KEYS = {"music.albums": ["SingerId"]}


@dataclass
class Music:
    """A lake with singers, whose key is a property, and albums, whose key the change stream `s` was given."""

    store: ControlStore
    root: Path
    jobs: list[CaptureBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        singers(self.root, "music.singers", key="SingerId", versions=3)
        singers(self.root, "music.albums", versions=3)

    def tables(self, table: TableRef | str) -> DeltaLog:
        if isinstance(table, TableRef):
            return open_registered(table, (beside(), below_the_root(str(self.root))))
        return DeltaLog.open(table)

    @property
    def found(self) -> LakeTables:
        root = str(self.root)
        return LakeTables(lambda name: table_ref(name, root), self.tables, lambda: table_names(root))

    def create(self, watch: Any) -> None:
        made = {"options": {}, "tables": self.found, "logs": f"file://{self.root}/_tidemark"}
        defining.create(self.store, "s", watch=watch, keys=KEYS, **made)

    def alter(self, watch: Any) -> ChangeStream:
        return defining.alter(self.store, "s", watch=watch, options={}, tables=self.found)

    def new_tables(self, stream: ChangeStream, lost: Sequence[WatchedTable]) -> Sequence[WatchedTable]:
        return find_new_tables(self.store, stream, self.found, lost=lost)

    def place(self, name: str) -> Path:
        return self.root / "music" / name

    def write(self, name: str, version: int) -> None:
        commit(self.place(name), version)

    def rename(self, old: str, new: str) -> None:
        shutil.move(self.place(old), self.place(new))

    def open(self) -> CaptureBatch | None:
        return open_batch(self.store, "s", tables=self.tables, new_tables=self.new_tables)

    def capture(self) -> list[tuple[str, int, int]]:
        """The ranges that a job took, under the names and at the paths that its tables have."""
        runtime = Runtime(self.store, run=self.run, paths=JobPaths("file:///w", "file:///e"), tables=self.tables)
        if capture(runtime, "s", new_tables=self.new_tables) is None:
            return []
        for taken in self.jobs[-1].ranges:
            assert DeltaLog.open(taken.watched.table.path).state(0).table_id == taken.watched.table.table_id
        return [(one.watched.table.name, one.start, one.end) for one in self.jobs[-1].ranges]

    def run(self, spec: JobSpec) -> JobResult:
        self.jobs.append(CAPTURE_CHANGES.requested(spec))
        return JobResult(to_plain(captured(self.jobs[-1])))

    def forget_batches(self) -> None:
        """As after the retention: all batches go but the newest one."""
        stream = get_change_stream(self.store, "s")
        before = self.store.read(lambda c: read_by_all(c, stream, stream.published_until))
        assert before is not None
        self.store.write(lambda c: forget_old(c, stream, before))

    def batches(self) -> list[int]:
        query = sa.select(capture_batches.c.number).order_by(capture_batches.c.number)
        return list(self.store.read(lambda c: c.execute(query).scalars().all()))

    def watched(self) -> dict[str, tuple[str, int]]:
        stream = get_change_stream(self.store, "s")
        return {one.table.name: (", ".join(one.keys), one.captured) for one in stream.tables}


@pytest.fixture
def music(copied_store: ControlStore, tmp_path: Path) -> Music:
    return Music(copied_store, tmp_path / "lake")


@pytest.mark.parametrize("captured_since", [True, False])
def test_a_table_that_all_has_missed_for_a_while_goes_on_where_it_was_captured(
    music: Music, captured_since: bool, caplog: pytest.LogCaptureFixture
) -> None:
    music.create(ALL)
    table = "singers" if captured_since else "albums"
    music.write(table, 3)
    assert music.capture() == [(f"music.{table}", 2, 3)]
    for name in ("singers", "albums"):
        music.rename(name, f"../../{name}")
    assert (music.capture(), music.watched()) == ([], {})
    for name in ("singers", "albums"):
        music.rename(f"../../{name}", name)
    music.write("singers", 3 + captured_since)
    assert music.capture() == [("music.singers", 2 + captured_since, 3 + captured_since)]
    assert "have no record" not in caplog.text


@pytest.mark.parametrize("batch_without_it", [True, False])
def test_a_table_that_comes_back_after_its_batches_were_forgotten_is_not_captured_again(
    music: Music, batch_without_it: bool
) -> None:
    music.create(ALL)
    music.write("singers", 3)
    assert music.capture() == [("music.singers", 2, 3)]
    music.rename("singers", "../../singers")
    assert music.capture() == []  # no batch has it that it left
    for version in range(3, 6 if batch_without_it else 3):
        music.write("albums", version)
        assert music.capture() == [("music.albums", version - 1, version)]
    music.forget_batches()
    assert music.batches() == ([3] if batch_without_it else [0])
    music.rename("../../singers", "singers")
    music.write("singers", 4)
    assert music.capture() == [("music.singers", 3, 4)]
    assert music.jobs[-1].left == ()


def test_too_many_tables_that_were_left_are_forgotten_with_a_warning(
    music: Music, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidemark.change_streams.worker.capture.MOST_LEFT", 1)
    music.create(ALL)
    singers(music.root, "music.concerts", key="SingerId")
    assert music.capture() == [("music.concerts", -1, 0)]
    for name in ("singers", "concerts"):
        music.rename(name, f"../../{name}")
    music.write("albums", 3)
    music.capture()
    assert [one.captured for one in music.jobs[-1].left] == [0]
    assert "forgets up to which version 1 tables are captured" in caplog.text


@pytest.mark.parametrize("watch", [ALL, NAMED], ids=["all", "named"])
@pytest.mark.parametrize("table", ["singers", "albums"])
def test_R90_a_renamed_table_goes_on_where_it_was_captured(music: Music, watch: Any, table: str) -> None:
    music.create(watch)
    music.write(table, 3)
    assert music.capture() == [(f"music.{table}", 2, 3)]
    music.write(table, 4)
    music.rename(table, "renamed")
    assert music.capture() == [("music.renamed", 3, 4)]
    assert music.watched()["music.renamed"] == ("SingerId", 4)
    assert (music.capture(), len(music.watched())) == ([], 2)
    music.rename("renamed", table)
    music.write(table, 5)
    assert music.capture() == [(f"music.{table}", 4, 5)]


@pytest.mark.parametrize("watch", [ALL, NAMED], ids=["all", "named"])
def test_R90_a_rename_without_a_new_commit_is_kept_too(music: Music, watch: Any) -> None:
    music.create(watch)
    music.rename("albums", "renamed")
    assert music.capture() == []
    assert music.watched() == {"music.singers": ("SingerId", 2), "music.renamed": ("SingerId", 2)}


@pytest.mark.parametrize("watch", [ALL, NAMED], ids=["all", "named"])
def test_R90_a_batch_that_was_open_during_the_rename_is_captured_at_the_new_place(music: Music, watch: Any) -> None:
    music.create(watch)
    music.write("albums", 3)
    opened = music.open()
    music.rename("albums", "renamed")
    music.write("renamed", 4)
    assert music.open() == opened
    assert music.capture() == [("music.renamed", 2, 3)]
    assert music.capture() == [("music.renamed", 3, 4)]
    assert music.capture() == []


def test_all_follows_a_table_whose_old_name_another_table_has_taken(music: Music) -> None:
    music.create(ALL)
    music.write("albums", 3)
    music.rename("albums", "albums_2025")
    singers(music.root, "music.albums", key="SingerId")
    assert music.capture() == [("music.albums_2025", 2, 3), ("music.albums", -1, 0)]
    assert music.watched()["music.albums_2025"] == ("SingerId", 3)
    assert music.capture() == []


def test_a_named_table_whose_old_name_another_table_has_taken_goes_on_under_its_new_name(music: Music) -> None:
    music.create(NAMED)
    music.write("albums", 3)
    music.rename("albums", "albums_2025")
    singers(music.root, "music.albums", key="SingerId")
    with pytest.raises(WatchedTableChanged, match=r"its path now has another table.*give its new name"):
        music.capture()
    music.alter(["music.singers", "music.albums_2025"])
    assert music.capture() == [("music.albums_2025", 2, 3)]


def test_all_that_is_named_again_after_a_rename_keeps_the_place_of_the_table(music: Music) -> None:
    music.create(ALL)
    music.rename("albums", "renamed")
    music.alter(ALL)
    assert music.watched()["music.renamed"] == ("SingerId", 2)
    music.write("renamed", 3)
    assert music.capture() == [("music.renamed", 2, 3)]


@pytest.mark.parametrize("watch", [ALL, NAMED], ids=["all", "named"])
def test_copies_of_a_table_that_is_gone_are_not_chosen_between(music: Music, watch: Any) -> None:
    music.create(watch)
    music.rename("albums", "renamed")
    shutil.copytree(music.place("renamed"), music.place("copied"))
    before = music.watched()
    with pytest.raises(WatchedTableChanged, match=r"music/copied, .*music/renamed: choose one"):
        music.capture()
    assert music.watched() == before
    shutil.rmtree(music.place("copied"))
    music.write("renamed", 3)
    assert music.capture() == [("music.renamed", 2, 3)]


@pytest.mark.parametrize("watch", [ALL, NAMED], ids=["all", "named"])
def test_a_copy_that_is_older_than_what_was_captured_is_not_followed(music: Music, watch: Any) -> None:
    music.create(watch)
    shutil.copytree(music.place("albums"), music.place("backup"))
    music.write("albums", 3)
    assert music.capture() == [("music.albums", 2, 3)]
    shutil.rmtree(music.place("albums"))
    before = music.watched()
    with pytest.raises(WatchedTableChanged, match="set back to version 2"):
        music.capture()
    assert music.watched() == before


def test_a_backfill_reads_a_renamed_table_before_the_next_capture_too(music: Music) -> None:
    music.create(NAMED)
    (watched, _) = get_change_stream(music.store, "s").tables
    assert where_it_is(watched, music.tables) == watched
    music.rename("singers", "renamed")
    moved = where_it_is(watched, music.tables)
    assert (moved.table.path, moved.captured) == (f"file://{music.place('renamed')}", 2)
