"""What the store keeps of a backfill: its version and target for ever, and that the group waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.control.change_stream_model import ChangeStreamWorld, segment
from tidemark.change_streams.worker.backfill import BackfillPoint, begin_backfill, finish_backfill
from tidemark.change_streams.worker.definitions import watch
from tidemark.change_streams.worker.groups import create_group, group_status, list_groups, reset_group
from tidemark.change_streams.worker.retention import expire_before, forget
from tidemark.change_streams.worker.waves import chunk_written, commit_wave, plan_wave
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.model.streams import TableRef

MIRROR = TableRef("db.mirror", "file:///mirror", "mirror-1")


@dataclass
class Mirrored:
    """A change stream whose group `g` begins with a backfill."""

    world: ChangeStreamWorld

    @property
    def store(self) -> ControlStore:
        return self.world.store

    def begin(self, group: str = "g", target: TableRef = MIRROR) -> BackfillPoint:
        return begin_backfill(self.store, "s", group, "db.t", target)

    def capture(self) -> None:
        at = self.world.clock.go()
        self.world.batch(*(segment(one.token, at, 5) for one in self.world.active()))

    def wave(self, run: str) -> int:
        chunks = plan_wave(self.store, "s", "g", run=run, max_chunks=9, max_rows=9).chunks
        for chunk in chunks:
            chunk_written(self.store, chunk, 5, {})
        commit_wave(self.store, "s", "g", run=run)
        return len(chunks)


@pytest.fixture
def mirrored(world: ChangeStreamWorld) -> Mirrored:
    return Mirrored(world)


def test_a_new_group_is_handed_out_nothing_before_its_backfill_is_done(mirrored: Mirrored) -> None:
    point = mirrored.begin()
    mirrored.capture()
    assert (mirrored.wave("failed"), group_status(mirrored.store, "s", "g").backfilling) == (0, True)
    finish_backfill(mirrored.store, point, 7)
    assert group_status(mirrored.store, "s", "g").backfilling is False
    assert mirrored.wave("next") > 0


def test_a_group_that_has_read_something_goes_on_whatever_becomes_of_a_backfill(mirrored: Mirrored) -> None:
    create_group(mirrored.store, "s", "g", "now")
    mirrored.capture()
    assert mirrored.wave("first") > 0
    mirrored.begin()
    mirrored.capture()
    assert mirrored.wave("second") > 0


def test_the_rows_of_a_group_that_has_read_are_those_behind_which_it_has_got_no_record(mirrored: Mirrored) -> None:
    create_group(mirrored.store, "s", "g", "now")
    mirrored.capture()
    mirrored.wave("first")
    mirrored.capture()
    mirrored.capture()
    assert [one.captured for one in mirrored.world.stream.tables] == [3]
    assert mirrored.begin().version == 1, "nothing of the second batch was handed out"


def test_a_group_that_has_got_a_part_of_a_tables_changes_gets_the_rest_before_its_backfill(mirrored: Mirrored) -> None:
    create_group(mirrored.store, "s", "g", "now")
    mirrored.capture()
    first, _ = plan_wave(mirrored.store, "s", "g", run="first", max_chunks=9, max_rows=9).chunks
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=r"a part of the changes after version 0.*reset it to 'now'"):
            mirrored.begin()
        chunk_written(mirrored.store, first, 5, {})
        commit_wave(mirrored.store, "s", "g", run="first")
    mirrored.wave("second")
    assert mirrored.begin().version == 1


def test_after_a_restart_of_its_table_a_group_that_is_reset_gets_the_rows_of_that_version(mirrored: Mirrored) -> None:
    finish_backfill(mirrored.store, mirrored.begin(), 7)
    table = mirrored.world.table
    for _ in range(2):
        table.commit(mirrored.world.clock.go())
    watch(mirrored.store, "s", [table.watched(captured=2)], everything=False, restarted={table.table_id})
    assert (mirrored.begin().version, mirrored.begin().rows) == (0, 7), "a backfill that is done is found"
    reset_group(mirrored.store, "s", "g", "now")
    assert (mirrored.begin().version, mirrored.begin().rows) == (2, None)


def test_the_version_stays_when_the_batches_that_told_it_are_forgotten(mirrored: Mirrored) -> None:
    point = mirrored.begin()
    finish_backfill(mirrored.store, point, 7)
    for run in ("one", "two", "three"):
        mirrored.capture()
        mirrored.wave(run)
    mirrored.world.clock.go(timedelta(days=9))
    mirrored.capture()
    mirrored.wave("late")
    expire_before(mirrored.store, "s")
    assert forget(mirrored.store, "s").batches > 0
    again = mirrored.begin()
    assert (again.version, again.rows) == (point.version, 7)


def test_the_rows_of_a_group_are_in_one_target_and_a_reset_begins_anew(mirrored: Mirrored) -> None:
    other = TableRef("db.other", "file:///other", "other-1")
    mirrored.begin(target=other)
    finish_backfill(mirrored.store, mirrored.begin(), 7)
    with pytest.raises(InvalidArgument, match="in another table already"):
        mirrored.begin(target=other)
    reset_group(mirrored.store, "s", "g", "now")
    assert mirrored.begin(target=other).rows is None


def test_a_backfill_that_is_refused_creates_no_group(mirrored: Mirrored) -> None:
    with pytest.raises(InvalidArgument, match="does not watch it"):
        begin_backfill(mirrored.store, "s", "g", "db.other", MIRROR)
    for table in (mirrored.world.table.ref, TableRef("log", mirrored.world.stream.log_path, "log-1")):
        with pytest.raises(InvalidArgument, match=r"whose records are read|is the log of change stream s"):
            mirrored.begin(target=table)
    create_group(mirrored.store, "s", "g", "now")


def test_a_target_that_is_watched_is_refused_or_with_all_watched_no_longer(mirrored: Mirrored) -> None:
    target = mirrored.world.new_table("mirror")
    both = [mirrored.world.table.watched(), target.watched()]
    watch(mirrored.store, "s", both, everything=False)
    with pytest.raises(InvalidArgument, match="without end"):
        mirrored.begin(target=target.ref)
    assert list_groups(mirrored.store, "s") == ()
    watch(mirrored.store, "s", both, everything=True)
    for _ in range(2):
        mirrored.begin(target=target.ref)
    assert [one.table.name for one in mirrored.world.stream.tables] == ["db.t"]
