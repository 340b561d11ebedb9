"""A stream follows a table that was renamed or moved, and nothing is delivered twice or lost (R90)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.guarantees.world import SHORT, World, key_of
from tidemark.errors import RelocationRefused, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.moved import beside, open_registered
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import TableRef
from tidemark.operators._jobs import explain
from tidemark.streams.model.transaction_jobs import DRY_RUN, DryRunReport
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.consume import consume, deliver
from tidemark.streams.worker.finish import finish
from tidemark.streams.worker.following import FOLLOWED_BY, followed
from tidemark.streams.worker.has_data import has_data
from tidemark.streams.worker.outcomes import Consumed, Opened
from tidemark.streams.worker.replay import find_run, replay
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import get_stream
from tidemark.streams.worker.submit import submit


def tables(table: TableRef | str) -> DeltaLog:
    return open_registered(table, (beside(),)) if isinstance(table, TableRef) else DeltaLog.open(table)


def following(world: World) -> Runtime:
    return replace(world.runtime, tables=tables)


def take(world: World, run: str) -> Consumed:
    return consume(
        following(world), key=key_of(run), streams=("s",), writes=world.writes(), owner=f"worker of {run}"
    )  # fmt: skip


def rename(world: World, name: str = "renamed") -> Path:
    return Path(shutil.move(world.source.path, world.root / name))


def bounds(consumed: Consumed) -> tuple[int, int]:
    (window,) = consumed.result.windows
    return window.from_version, window.to_version


def test_R90_a_rename_between_two_windows_is_followed_with_uid_offset_and_serial(world: World) -> None:
    world.source.append()
    assert bounds(take(world, "r1")) == (0, 1)
    before = get_stream(world.store, "s")
    world.source.append()
    path = rename(world)
    assert bounds(take(world, "r2")) == (1, 2)
    after = get_stream(world.store, "s")
    assert after.source == TableRef(f"file://{path}", f"file://{path}", before.source.table_id)
    assert (after.uid, after.serial, after.offset.version) == (before.uid, before.serial + 1, 2)
    assert [(move.who, move.why) for move in world.history()][2] == (
        FOLLOWED_BY, f"relocated from source ({before.source.path})",
    )  # fmt: skip
    assert (world.holds(0), world.holds(1)) == ({1: 1, 2: 1}, {1: 1, 2: 1})
    assert len([move for move in world.history() if move.who == FOLLOWED_BY]) == 1


def test_R90_a_window_that_was_open_during_the_rename_is_delivered_once_at_the_new_path(world: World) -> None:
    world.source.append()
    transaction = world.open("r1")
    path = rename(world)
    submit(following(world), transaction)
    assert [driver.windows[0].source.path for driver in world.drivers] == [f"file://{path}"]
    commit(world.store, transaction.key, tables=tables)
    assert (world.offset(), world.holds(0), world.holds(1)) == (1, {1: 1}, {1: 1})


def test_R90_what_one_target_has_of_an_open_window_is_not_delivered_again(world: World) -> None:
    world.source.append()
    world.zombie(world.open("r1"), steps=3)  # the first target has its part
    rename(world)
    world.clock.go(SHORT)
    take(world, "r1")
    assert (world.offset(), world.holds(0), world.holds(1)) == (1, {1: 1}, {1: 1})


def test_R90_another_run_finishes_a_window_that_was_left_before_the_rename(world: World) -> None:
    world.source.append()
    transaction = world.open("r1")
    world.zombie(transaction)
    world.source.append()
    rename(world)
    world.clock.go(SHORT)
    assert bounds(take(world, "r2")) == (1, 2)
    assert (world.holds(0), world.holds(1)) == ({1: 1, 2: 1}, {1: 1, 2: 1})


def test_R90_a_person_finishes_it_too(world: World) -> None:
    world.source.append()
    world.zombie(world.open("r1"))
    rename(world)
    world.clock.go(SHORT)
    finish(following(world), "s", by=TransactionKey("cli", "1", "finish"), owner="ann")
    assert (world.offset(), world.holds(0)) == (1, {1: 1})


def test_a_writer_that_read_its_transaction_before_the_rename_writes_beside_one_that_read_it_after(
    world: World,
) -> None:
    world.source.append()
    early = world.open("r1")
    rename(world)
    late = world.begin("r1", tables=tables)
    assert isinstance(late, Opened)
    submit(following(world), late.transaction, only=[1])
    submit(following(world), early, only=[2])
    commit(world.store, early.key, tables=tables)
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_a_replay_of_a_window_from_before_the_rename_reads_the_new_path(world: World) -> None:
    world.source.append()
    take(world, "r1")
    path = rename(world)
    past = find_run(world.store, "s", "r1")
    write = PlannedWrite(WriteAs.APPEND, world.sources["other"].uri, source="s")
    replay(following(world), past, key=key_of("again"), writes=[write], owner="ann")
    assert world.drivers[-1].windows[0].source.path == f"file://{path}"


def test_observers_see_the_table_at_its_new_path_and_move_nothing(world: World) -> None:
    world.source.append()
    rename(world)
    stream = get_stream(world.store, "s")
    assert (status_of(stream, tables).behind, get_stream(world.store, "s")) == (1, stream)
    assert has_data(world.store, "s", tables=tables)
    assert get_stream(world.store, "s").source != stream.source


def test_a_dry_run_reads_the_table_at_its_new_path_and_moves_nothing(world: World) -> None:
    world.source.append()
    path = rename(world)
    before, asked = get_stream(world.store, "s"), []

    def run(spec: JobSpec) -> JobResult:
        asked.extend(DRY_RUN.requested(spec).windows)
        return JobResult(to_plain(DryRunReport({"s": {}})))

    told = explain(replace(following(world), run=run), ["s"], key=key_of("dry"), bound=UNBOUNDED)
    assert [(one["from"], one["to"]) for one in told["windows"]] == [(0, 1)]
    assert [window.source.path for window in asked] == [f"file://{path}"]
    assert get_stream(world.store, "s") == before


def test_two_copies_of_the_table_are_not_chosen_between(world: World) -> None:
    world.source.append()
    path = rename(world)
    shutil.copytree(path, world.root / "copied")
    before = get_stream(world.store, "s")
    with pytest.raises(TableNotFound, match=r"copied, .*renamed: choose one\. .*relocate STREAM --to"):
        take(world, "r1")
    assert get_stream(world.store, "s") == before


def test_a_copy_that_is_older_than_the_offset_is_not_followed(world: World) -> None:
    world.source.append()
    shutil.copytree(world.source.path, world.root / "backup")
    world.source.append()
    take(world, "r1")
    shutil.rmtree(world.source.path)
    before = get_stream(world.store, "s")
    with pytest.raises(RelocationRefused, match="only up to version 1, and version 2 is needed"):
        take(world, "r2")
    assert get_stream(world.store, "s") == before


def test_another_table_beside_the_old_path_is_not_taken_for_it(world: World) -> None:
    shutil.rmtree(world.source.path)
    with pytest.raises(TableNotFound):
        followed(world.store, "s", tables)
    assert get_stream(world.store, "s").source.path == world.source.uri


def test_a_table_that_is_renamed_again_and_back_is_followed_each_time(world: World) -> None:
    for number, name in enumerate(("renamed", "again", "source"), start=1):
        world.source.append()
        shutil.move(Path(get_stream(world.store, "s").source.path.removeprefix("file://")), world.root / name)
        assert bounds(take(world, f"r{number}")) == (number - 1, number)
        if name != "source":
            world.source.path, world.source.log = world.root / name, world.root / name / "_delta_log"
    assert world.holds(0) == {1: 1, 2: 1, 3: 1}


def test_deliver_continues_what_was_begun_before_the_rename(world: World) -> None:
    world.source.append()
    begun = world.begin("r1")
    rename(world)
    assert bounds(deliver(following(world), begun)) == (0, 1)
