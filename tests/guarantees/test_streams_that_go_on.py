"""A stream whose table was made anew goes on under its name; one whose table was moved goes on as it was."""

from __future__ import annotations

import shutil

import pytest

from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.world import SHORT, World, key_of
from tidemark.errors import (
    InvalidArgument,
    RebaseRefused,
    RelocationRefused,
    SourceRecreated,
    StreamStale,
    TransactionOpen,
    VersionVacuumed,
)
from tidemark.model.streams import BaseOffset, Stream, TableRef
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.outcomes import Opened
from tidemark.streams.worker.rebase import Ground, Rebased, loss_of, rebase_stream, relocate_stream
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.statistics import count_failure, stream_health
from tidemark.streams.worker.streams import get_stream, stream_history, stream_transactions


def ref(table: SyntheticTable, name: str = "source") -> TableRef:
    return TableRef(name, table.uri, table.table_id)


def rebase(world: World, table: SyntheticTable | None = None, **how: object) -> Rebased:
    on = ref(table or world.source)
    how = {"who": "ann", "why": "it was loaded anew", "tables": open_table, **how}
    return rebase_stream(world.store, "s", Ground(on, (BaseOffset(on, open_table(on).head()),)), **how)  # type: ignore[arg-type]


def stream(world: World) -> Stream:
    return get_stream(world.store, "s")


def consumed(world: World, run: str) -> tuple[int, int]:
    (window,) = world.consume(run).result.windows
    return window.from_version, window.to_version


def test_R82_a_stream_on_a_table_made_anew_goes_on_from_its_newest_version(world: World) -> None:
    for _ in range(4):
        world.source.append()
    world.consume("r1")
    old = stream(world)
    world.source.recreate()
    world.source.append()
    with pytest.raises(SourceRecreated):
        world.consume("r2")
    rebased = rebase(world)
    assert (rebased.before, rebased.after) == (old, stream(world))
    new = rebased.after
    assert (new.offset.version, new.source.table_id, new.created_at) == (1, world.source.table_id, old.created_at)
    world.source.append()
    assert consumed(world, "r3") == (1, 2)


def test_its_history_says_who_why_from_where_and_to_where_and_goes_back_to_its_creation(world: World) -> None:
    world.source.append()
    world.consume("r1")
    old = stream(world)
    world.source.replace()
    new = rebase(world).after
    created, first, moved = stream_history(world.store, "s")
    assert (created.why, first.why, created.stream_uid) == ("created", "consumed", old.uid)
    assert (moved.who, moved.from_version, moved.to_version, moved.stream_uid) == ("ann", 1, 2, new.uid)
    assert moved.why == (
        f"re-based from table {old.source.table_id} at version 1 to table {new.source.table_id} at version 2:"
        " it was loaded anew"
    )
    assert [one.key.run_id for one in stream_transactions(world.store, "s")] == ["r1"]
    assert stream_health(world.store, "s").consumptions == 1


def test_it_is_another_stream_for_targets_so_no_mark_or_number_of_before_is_taken_for_its_own(world: World) -> None:
    """The old stream delivered (0, 1] under serial 1; so does the new one, of another table."""
    world.source.append()
    world.consume("r1")
    old = stream(world)
    world.source.recreate()
    new = rebase(world).after
    assert (new.uid != old.uid, new.serial) == (True, 0)
    world.source.append()
    assert consumed(world, "r2") == (0, 1)
    assert world.holds(0) == world.holds(1) == {1: 1}
    applications = {app for app in world.targets[0].transactions()}
    assert len(applications) == 2


def test_a_zombie_of_the_old_stream_writes_nothing_into_the_windows_of_the_new_one(world: World) -> None:
    world.source.append()
    transaction = world.open("r1")
    zombie = world.zombie(transaction)
    world.source.replace()
    with pytest.raises(TransactionOpen):
        rebase(world)
    zombie.run()
    world.clock.go(SHORT)
    world.consume("r1")
    new = rebase(world).after
    assert new.offset.version == 2
    world.source.append()
    assert consumed(world, "r2") == (2, 3)
    assert world.holds(0) == {3: 1}


def test_refused_while_a_transaction_is_open_and_nothing_changes(world: World) -> None:
    world.source.append()
    world.open("r1")
    world.source.replace()
    before = stream(world)
    with pytest.raises(TransactionOpen, match="re-based"):
        rebase(world)
    assert stream(world) == before


def test_a_stream_that_can_be_read_is_re_based_by_force_alone(world: World) -> None:
    world.source.append()
    before = stream(world)
    with pytest.raises(RebaseRefused, match="consume it first, or force it"):
        rebase(world)
    with pytest.raises(RebaseRefused, match="consume it first"):
        rebase(world, world.sources["other"])
    assert stream(world) == before
    assert rebase(world, force=True).after.offset.version == 1
    assert rebase(world, world.sources["other"], force=True).after.offset.version == 0


def test_a_stale_stream_goes_on_on_its_own_table(world: World) -> None:
    for _ in range(5):
        world.source.append()
    world.source.checkpoint()
    world.source.clean_up(before=3)
    found = loss_of(world.store, "s", tables=open_table)
    assert found.problem is not None
    assert "has become stale" in found.problem
    assert found.lost == "changes in (0, 5] of source"
    assert rebase(world).after.offset.version == 5
    assert loss_of(world.store, "s", tables=open_table).problem is None


def test_what_only_a_consumption_could_meet_is_a_reason_too(world: World) -> None:
    world.source.append()
    gone = VersionVacuumed(table="source", start=0, end=1, count=1, first="part-0")
    count_failure(world.store, ["s"], gone, run=key_of("r"))
    assert loss_of(world.store, "s", tables=open_table).problem == str(gone)
    rebase(world)
    assert stream_health(world.store, "s").failures_in_row == 0
    with pytest.raises(RebaseRefused):
        rebase(world)


def test_rows_of_the_new_table_come_first_if_wished(world: World) -> None:
    world.source.recreate()
    world.source.append()
    assert rebase(world, show_initial_rows=True).after.initial_rows_pending
    (window,) = world.consume("r1").result.windows
    assert (window.initial_rows, window.from_version, window.to_version) == (True, 1, 1)


def test_rows_that_were_still_owed_are_owed_of_the_new_table(world: World) -> None:
    world.stream(or_replace=True, initial_rows=True)
    world.source.replace()
    assert rebase(world).after.initial_rows_pending


def test_by_key_the_next_window_spans_old_and_new_table(world: World) -> None:
    world.source.append()
    world.consume("r1")
    world.source.append()
    world.source.replace()
    world.source.append()
    new = rebase(world, keys=("id",)).after
    assert (new.offset.version, new.keys, new.source.table_id) == (1, ("id",), world.source.table_id)
    assert consumed(world, "r2") == (1, 4)


def test_by_key_is_refused_where_the_old_state_is_gone(world: World) -> None:
    world.source.append()
    world.consume("r1")
    world.source.recreate()
    with pytest.raises(RebaseRefused, match=r"[Uu]se show_initial_rows"):
        rebase(world, keys=("id",))
    with pytest.raises(InvalidArgument, match="show_initial_rows"):
        rebase(world, keys=("id",), show_initial_rows=True)
    with pytest.raises(InvalidArgument, match="why"):
        rebase(world, why=" ")


def test_a_second_run_of_the_same_task_changes_nothing(world: World) -> None:
    world.source.replace()
    first = rebase(world, who="dag/r/t/-1", repeatable=True, show_initial_rows=True)
    second = rebase(world, who="dag/r/t/-1", repeatable=True, show_initial_rows=True)
    assert second == Rebased(first.after, first.after)
    with pytest.raises(RebaseRefused):
        rebase(world, who="dag/r2/t/-1", repeatable=True)


@pytest.mark.parametrize("force", [False, True])
def test_a_second_run_changes_nothing_after_a_consumption_either(world: World, force: bool) -> None:
    world.source.replace()
    rebase(world, who="dag/r/t/-1", repeatable=True, force=force)
    world.source.append()
    world.consume("r1")
    world.source.append()
    before = stream(world)
    assert rebase(world, who="dag/r/t/-1", repeatable=True, force=force) == Rebased(before, before)
    assert stream(world) == before


def test_R90_a_moved_table_is_followed_with_uid_place_and_all(world: World) -> None:
    world.source.append()
    before = stream(world)
    moved = world.source.path.with_name("renamed")
    shutil.move(world.source.path, moved)
    to = TableRef("db.renamed", f"file://{moved}", world.source.table_id)
    with pytest.raises(RebaseRefused, match="relocate"):
        rebase_stream(
            world.store, "s", Ground(to, (BaseOffset(to, 1),)), who="ann", why="w", tables=open_table
        )  # fmt: skip
    for _ in range(2):
        after = relocate_stream(world.store, "s", to, who="ann", why="renamed")
    assert (after.uid, after.offset, after.anchor) == (before.uid, before.offset, before.anchor)
    assert after == stream(world)
    assert [move.why for move in stream_history(world.store, "s")] == [
        "created", f"relocated from source ({before.source.path}): renamed",
    ]  # fmt: skip
    assert open_table(after.source).head() == 1


def test_another_table_is_no_place_to_relocate_to(world: World) -> None:
    with pytest.raises(RelocationRefused, match="re-base it"):
        relocate_stream(world.store, "s", ref(world.sources["other"], "other"), who="ann")


def test_a_window_that_is_open_is_read_at_the_new_place_by_what_was_under_way_too(world: World) -> None:
    world.source.append()
    transaction = world.open("r1")
    to = TableRef("db.renamed", "file:///elsewhere/renamed", world.source.table_id)
    relocate_stream(world.store, "s", to, who="ann")
    world.submit(transaction)
    (window,) = world.drivers[-1].windows
    assert (window.source, window.start, window.end) == (to, 0, 1)
    again = world.begin("r1")
    assert isinstance(again, Opened)
    assert again.transaction.windows == (window,)
    commit(world.store, again.transaction.key)
    assert stream(world).offset.version == 1
    assert world.holds(0) == {1: 1}


def test_stale_is_still_what_reading_says_until_it_is_re_based(world: World) -> None:
    for _ in range(3):
        world.source.append()
    world.source.checkpoint()
    world.source.clean_up(before=2)
    with pytest.raises(StreamStale, match="Re-base"):
        world.consume("r1")
