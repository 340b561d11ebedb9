"""A control store that was put back from an older backup: nothing is delivered twice, whatever is tried; it is said."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.errors import (
    JobsMayBeAlive,
    RecoveryRefused,
    SourceRecreated,
    StoreOlderThanLake,
    StreamLocked,
    TidemarkError,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.begin import Opened
from tidemark.streams.worker.recover import Recovered, recover_stream
from tidemark.streams.worker.redo import redo
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.replay import find_run, replay
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import create_stream, get_stream

from .drivers import Driver
from .synthetic_tables import SyntheticTable
from .world import LONG, SHORT, START, World, key_of

PutBack = Callable[[], None]
Act = Callable[[World], object]


@pytest.fixture
def back_up(world: World, request: pytest.FixtureRequest) -> Callable[[], PutBack]:
    """Takes a backup of the world's store and answers how to put it back."""

    def take() -> PutBack:
        world.store.close()  # PostgreSQL copies no database that somebody has open
        if world.url.startswith("sqlite"):
            copy = world.root / "backup.db"
            with sqlite3.connect(world.root / "control.db") as now, sqlite3.connect(copy) as kept:
                now.backup(kept)
            url = f"sqlite:///{copy}"
        else:
            server: PostgresServer = request.getfixturevalue("postgresql")
            url = server.url(server.new_database(template=world.url.rpartition("/")[2]))
        return lambda: setattr(world, "store", ControlStore(url, clock=world.clock, keep_connections=True))

    return take


def windows(world: World, count: int, name: str, *targets: int, streams: tuple[str, ...] = ("s",)) -> None:
    for number in range(count):
        for source in world.sources.values():
            source.append()
        world.consume(f"{name} {number}", *targets, streams=streams)


def since(*targets: int, streams: tuple[str, ...] = ("s",), count: int = 3) -> Act:
    return lambda world: windows(world, count, "since", *targets, streams=streams)


def consuming(*targets: int, streams: tuple[str, ...] = ("s",)) -> Act:
    return lambda world: world.consume("after", *targets, streams=streams)


def begun_and_rolled_back(world: World) -> None:
    for number in range(5):
        world.open(f"tried {number}")
        rollback(world.store, key_of(f"tried {number}"))


def begun_and_left(world: World) -> None:
    for number in range(5):
        world.open(f"tried {number}")
        world.clock.go(SHORT)


def begun_on_another_target(world: World) -> None:
    """Numbers are drawn, and given up, for a target that has none of them."""
    if len(world.targets) == 2:
        world.targets.append(SyntheticTable(world.root / "target2"))
        world.by_uri[world.targets[2].uri] = world.targets[2]
    for number in range(5):
        world.open(f"tried {number}", world.writes(2))
        rollback(world.store, key_of(f"tried {number}"))


def a_new_target(world: World) -> None:
    world.targets.append(SyntheticTable(world.root / "new"))
    world.by_uri[world.targets[2].uri] = world.targets[2]
    for _ in range(3):
        world.source.append()
    world.consume("since", 2)


def its_number_ordered_elsewhere(world: World) -> None:
    """A job that wrote nothing and was fenced orders the number that the new target holds."""
    tried = world.open("tried", world.writes(0))
    world.zombie(tried)
    world.clock.go(LONG)
    replan(world.runtime, key_of("tried"))
    world.consume("after", 2)


def its_number_taken_elsewhere(world: World) -> None:
    """A window that is smaller takes the number that the new target holds."""
    begun = world.begin("taken", world.writes(0), bound=Bound(max_commits=1))
    if isinstance(begun, Opened):
        world.finish(begun.transaction)
    world.consume("after", 2)


def redone(world: World) -> None:
    for _ in range(5):
        for act in (lambda: world.consume("after"), lambda: redo(world.store, key_of("after"))):
            with suppress(TidemarkError):
                act()
            world.clock.go(LONG)


def redone_open(world: World) -> None:
    for _ in range(5):
        world.clock.go(LONG)
        redo(world.store, key_of("open"))
        with suppress(StoreOlderThanLake):
            world.consume("open")


def a_stream_made_since(world: World) -> None:
    world.stream("new", "other")
    windows(world, 3, "since", streams=("new", "s"))


def a_target_made_since(world: World) -> None:
    world.targets[0] = SyntheticTable(world.root / "made since")
    world.by_uri[world.targets[0].uri] = world.targets[0]
    windows(world, 3, "since")


def entries_expired(world: World) -> None:
    for table in world.targets:
        table.configure(delta__setTransactionRetentionDuration="interval 1 week")
    windows(world, 3, "since")
    for table in world.targets:
        table.expire()
        table.checkpoint()


def replayed_since(world: World) -> None:
    extra = SyntheticTable(world.root / "replayed")
    world.by_uri[extra.uri] = extra
    world.targets.append(extra)
    _replay(world, "since")


def replayed_again(world: World) -> None:
    _replay(world, "after")


def _replay(world: World, name: str) -> None:
    past = find_run(world.store, "s", "before 0")
    replay(
        world.runtime,
        past,
        key=key_of(name),
        writes=world.writes(2),
        owner="me",
    )


PUT_BACK: dict[str, tuple[Act, Act]] = {
    "the same plan": (since(), consuming()),
    "one window only": (since(count=1), consuming()),
    "begins that are rolled back": (since(), begun_and_rolled_back),
    "begins whose lease runs out": (since(), begun_and_left),
    "begins on another target": (since(), begun_on_another_target),
    "another order of targets": (since(), consuming(1, 0)),
    "a removed target": (since(), consuming(1)),
    "the other target removed": (since(1, 0), consuming(0)),
    "another lead stream": (since(streams=("t", "s")), consuming()),
    "it led before": (since(streams=("s", "t")), consuming(streams=("t",))),
    "the lead of another led then": (since(streams=("s", "t")), consuming(streams=("t", "s"))),
    "a lead stream that was made since": (a_stream_made_since, consuming()),
    "a target that was made since": (a_target_made_since, consuming(1, 0)),
    "a new target and its number ordered elsewhere": (
        a_new_target,
        its_number_ordered_elsewhere,
    ),
    "a new target and its number taken elsewhere": (a_new_target, its_number_taken_elsewhere),
    "redo again and again": (since(), redone),
    "entries that have expired": (entries_expired, consuming()),
    "a replay": (replayed_since, replayed_again),
}


@pytest.mark.parametrize("variant", PUT_BACK)
def test_a_store_older_than_the_lake_is_told_and_delivers_nothing_again(
    world: World, back_up: Callable[[], PutBack], variant: str
) -> None:
    meanwhile, afterwards = PUT_BACK[variant]
    world.stream("t", "other")
    windows(world, 1, "before")
    put_back = back_up()
    meanwhile(world)
    put_back()
    for source in world.sources.values():
        source.append()
    with suppress(TidemarkError):
        afterwards(world)
    with pytest.raises(StoreOlderThanLake) as told:
        _and_at_last(world, afterwards)
    assert told.value.facts["target"] in world.by_uri
    assert_each_once(world)


def _and_at_last(world: World, act: Act) -> None:
    act(world)
    world.consume("at last")


def gone_on_with_and_rolled_back(world: World) -> None:
    """What its own key may find is not known to others."""
    with suppress(StreamLocked):
        world.begin("open")
        rollback(world.store, key_of("open"))
    world.consume("after", 1, 0)


OPEN_THEN: dict[str, tuple[int, Act, bool]] = {
    "not submitted, then consumed by another": (0, consuming(), True),
    "not submitted, then in another order": (0, consuming(1, 0), True),
    "not submitted, then gone on with": (0, lambda world: world.consume("open"), False),
    "not submitted, then gone on with and rolled back": (0, gone_on_with_and_rolled_back, True),
    "submitted, then gone on with": (1, lambda world: world.consume("open"), False),
    "submitted, then consumed by another": (1, consuming(), False),
    "submitted, and more since, then gone on with": (2, lambda world: world.consume("open"), True),
    "submitted, and more since, then consumed by another": (2, consuming(), True),
    "submitted, and more since, then redone": (2, redone_open, True),
    "fenced since, and more, in another order": (3, lambda world: world.consume("open"), True),
}


@pytest.mark.parametrize("variant", OPEN_THEN)
def test_a_backup_with_an_open_window_delivers_nothing_again(
    world: World, back_up: Callable[[], PutBack], variant: str
) -> None:
    how, afterwards, told = OPEN_THEN[variant]
    world.stream("t", "other")
    windows(world, 1, "before")
    world.source.append()
    transaction = world.open("open")
    if how:
        world.zombie(transaction, steps=0)
    put_back = back_up()
    world.clock.go(LONG)
    _finish_the_open(world, fence=how == 3)
    if how >= 2:
        windows(world, 3, "since", *((1, 0) if how == 3 else ()))
    put_back()
    world.source.append()
    if told:
        for _ in range(3):
            with pytest.raises(StoreOlderThanLake):
                afterwards(world)
            world.clock.go(LONG)
    else:
        afterwards(world)
        world.consume("next")
        assert world.offset() == world.source.head()
    assert_each_once(world)


def _finish_the_open(world: World, *, fence: bool) -> None:
    if fence:
        replan(world.runtime, key_of("open"))
    else:
        world.consume("open")


def assert_each_once(world: World) -> None:
    for table in world.targets:
        twice = {change: count for change, count in table.contents().items() if count > 1}
        assert not twice, f"{twice} in {table.uri}"


def test_what_the_message_says(world: World, back_up: Callable[[], PutBack]) -> None:
    windows(world, 1, "before")
    put_back = back_up()
    windows(world, 3, "since")
    put_back()
    with pytest.raises(StoreOlderThanLake) as told:
        world.consume("after")
    assert told.value.facts["target"] == world.targets[0].uri
    assert told.value.facts["streams"] == "s (to version 4)"
    assert "restored from an older backup" in str(told.value)
    assert world.offset() == 1


def test_a_target_that_another_store_writes_too_is_no_sign(world: World) -> None:
    other = World.__new__(World)
    other.__dict__.update(world.__dict__)
    other.store = ControlStore(f"sqlite:///{world.root}/other.db", clock=world.clock)
    other.stream()
    for number in range(3):
        windows(world, 1, f"one {number}")
        windows(other, 1, f"other {number}")
    assert_each_once(world)


def test_a_replaced_a_moved_and_a_new_target_are_no_sign(world: World) -> None:
    windows(world, 2, "before")
    world.targets[0].replace()  # another id, the entries stay
    windows(world, 2, "replaced")
    moved = world.root / "moved"
    world.targets[0].path.rename(moved)
    world.targets[0].path, world.targets[0].log = moved, moved / "_delta_log"
    world.by_uri[world.targets[0].uri] = world.targets[0]
    windows(world, 2, "moved")
    world.targets[1].recreate()
    windows(world, 2, "recreated")
    assert_each_once(world)


def test_an_ordinary_begin_reads_no_more_of_the_targets_log_than_before(world: World) -> None:
    """Neither with many commits of others since, nor with entries of streams that are gone."""
    from tidemark.lake.delta_log import DeltaLog

    windows(world, 2, "before")
    world.stream(or_replace=True)
    windows(world, 1, "replaced")
    for _ in range(20):
        world.targets[0].append()
    read: list[int] = []
    original = DeltaLog.user_metadata

    def counting(log: DeltaLog, after: int, through: int) -> object:
        read.append(through - after)
        return original(log, after, through)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaLog, "user_metadata", counting)
        windows(world, 2, "after")
    assert read == []


def recovered(world: World, name: str = "s", **more: object) -> Recovered:
    return recover_stream(world.store, name, who="ann", tables=open_table, **more)  # type: ignore[arg-type]


def everything_once(world: World, uids: set[str]) -> None:
    """Each change of the source stands in each target once, under whatever identity the stream had."""
    for table in world.targets[:2]:
        found = sorted(version for (uid, version), n in table.contents().items() for _ in range(n) if uid in uids)
        assert found == list(range(1, world.source.head() + 1)), table.uri


def test_a_recovered_stream_goes_on_and_loses_and_doubles_nothing(world: World, back_up: Callable[[], PutBack]) -> None:
    windows(world, 1, "before")
    put_back = back_up()
    windows(world, 3, "since")
    put_back()
    world.source.append()
    looked = recovered(world, dry_run=True)
    assert looked.ends == {table.uri: 4 for table in world.targets}
    with pytest.raises(StoreOlderThanLake):
        world.consume("too soon")
    done = recovered(world)
    assert (done.before.offset.version, done.after.offset.version, world.offset()) == (1, 4, 4)
    world.consume("after")
    everything_once(world, {done.before.uid, done.after.uid})
    with pytest.raises(RecoveryRefused, match="none holds more"):
        recovered(world)
    assert [move.to_version for move in world.history()] == [0, 1, 4, 5]


def test_every_stream_of_a_transaction_is_recovered_one_by_one(world: World, back_up: Callable[[], PutBack]) -> None:
    world.stream("t", "other")
    windows(world, 1, "before", streams=("t", "s"))
    put_back = back_up()
    windows(world, 3, "since", streams=("t", "s"))
    put_back()
    lead = recovered(world, "t")
    with pytest.raises(StoreOlderThanLake) as told:  # the lead's numbers are gone, its windows of s are not
        world.consume("too soon")
    assert told.value.facts["streams"] == "s (to version 4)"
    done = recovered(world, "s")
    windows(world, 2, "after", streams=("t", "s"))
    everything_once(world, {done.before.uid, done.after.uid})
    assert lead.after.offset.version == 4


def test_an_open_window_that_was_finished_in_the_lost_time_is_released(
    world: World, back_up: Callable[[], PutBack]
) -> None:
    world.source.append()
    world.zombie(world.open("open"))
    put_back = back_up()
    world.clock.go(LONG)
    world.consume("open")
    windows(world, 2, "since")
    put_back()
    done = recovered(world)
    assert done.released == key_of("open")
    windows(world, 2, "after")
    everything_once(world, {done.before.uid, done.after.uid})


def test_a_window_that_one_target_has_and_another_lacks_is_for_a_person_to_decide(
    world: World, back_up: Callable[[], PutBack]
) -> None:
    windows(world, 1, "before")
    put_back = back_up()
    windows(world, 1, "since")
    world.source.append()
    world.zombie(world.open("half"), steps=2)
    put_back()
    world.clock.go(LONG)
    with pytest.raises(RecoveryRefused, match=r"to 3.*to 2") as told:
        recovered(world)
    assert "--to" in str(told.value)
    assert recovered(world, to_version=3).after.offset.version == 3
    assert_each_once(world)


def test_a_target_that_the_store_does_not_know_is_named(world: World, back_up: Callable[[], PutBack]) -> None:
    put_back = back_up()
    windows(world, 2, "since")
    put_back()
    with pytest.raises(StoreOlderThanLake):
        world.consume("after")
    with pytest.raises(RecoveryRefused, match="--target"):
        recovered(world)
    assert recovered(world, targets=[table.uri for table in world.targets]).after.offset.version == 2


def test_a_stream_of_an_earlier_release_is_known_as_far_as_it_was(world: World) -> None:
    from alembic import command

    from tidemark.control import migrate

    windows(world, 2, "before")
    world.stream("t", "other")
    windows(world, 1, "both", streams=("t",))

    def back_and_forth(connection: object) -> None:
        command.downgrade(migrate.configuration(connection), "0007")  # type: ignore[arg-type]
        migrate.upgrade(connection)  # type: ignore[arg-type]

    owner = re.sub(r"://tidemark(?=[:@])", "://tidemark_owner", world.url)
    ControlStore(owner).write(back_and_forth)  # type: ignore[arg-type]
    windows(world, 2, "after")
    assert_each_once(world)


def test_a_window_that_was_open_before_the_migration_is_not_taken_for_known(
    world: World, back_up: Callable[[], PutBack]
) -> None:
    from alembic import command

    from tidemark.control import migrate

    windows(world, 1, "before")
    world.source.append()
    world.open("open")
    put_back = back_up()
    world.consume("open")
    put_back()

    def back_and_forth(connection: object) -> None:
        command.downgrade(migrate.configuration(connection), "0007")  # type: ignore[arg-type]
        migrate.upgrade(connection)  # type: ignore[arg-type]

    owner = re.sub(r"://tidemark(?=[:@])", "://tidemark_owner", world.url)
    ControlStore(owner).write(back_and_forth)  # type: ignore[arg-type]
    world.clock.go(SHORT)
    with pytest.raises(StoreOlderThanLake):
        world.consume("after", 1, 0)
    assert_each_once(world)


BOTH = ("source", "other")


def view_stream(world: World, name: str = "v") -> None:
    """A stream on a view of both sources, from the versions of now."""
    query = ViewQuery(name=name, text="…", schema_json="{}", bases=BOTH, settings={}, digest="d1")
    tables = [TableRef(table, world.sources[table].uri, world.sources[table].table_id) for table in BOTH]
    bases = [BaseOffset(table, world.sources[table.name].head()) for table in tables]
    create_stream(
        world.store,
        name=name,
        source=TableRef(name, "", query.digest),
        mode=StreamMode.STANDARD,
        at_version=sum(base.version for base in bases),
        who="test",
        view=query,
        view_bases=bases,
    )


def of_view(world: World, run: str, source: int, other: int, *targets: int) -> None:
    """A window with so many commits of each table."""
    for name, count in zip(BOTH, (source, other), strict=True):
        for _ in range(count):
            world.sources[name].append()
    world.consume(run, *targets, streams=("v",))


def place(world: World) -> tuple[int, ...]:
    return tuple(base.version for base in get_stream(world.store, "v").bases)


def test_a_stream_on_a_view_goes_on_at_the_version_of_each_table(world: World, back_up: Callable[[], PutBack]) -> None:
    view_stream(world)
    of_view(world, "before", 1, 1)
    put_back = back_up()
    of_view(world, "since 1", 3, 0)
    of_view(world, "since 2", 1, 2)
    put_back()
    assert place(world) == (1, 1)
    with pytest.raises(StoreOlderThanLake):
        world.consume("too soon", streams=("v",))
    assert recovered(world, "v", dry_run=True).after.offset.version == 8
    done = recovered(world, "v")
    assert (place(world), done.after.offset.version) == ((5, 3), 8)
    of_view(world, "after", 0, 1)
    assert place(world) == (5, 4)
    uids = {done.before.uid, done.after.uid}
    for table in world.targets:
        found = sorted(version for (uid, version), n in table.contents().items() for _ in range(n) if uid in uids)
        assert found == list(range(1, 10))
    with pytest.raises(RecoveryRefused, match="none holds more"):
        recovered(world, "v")


def test_of_targets_that_differ_a_person_says_the_sum_and_the_marks_have_the_tables(
    world: World, back_up: Callable[[], PutBack]
) -> None:
    view_stream(world)
    of_view(world, "before", 1, 0)
    put_back = back_up()
    of_view(world, "since", 1, 1)
    world.sources["other"].append()
    world.zombie(world.open("half", streams=("v",)), steps=2)
    put_back()
    world.clock.go(LONG)
    with pytest.raises(RecoveryRefused, match=r"to 4.*to 3"):
        recovered(world, "v")
    with pytest.raises(RecoveryRefused, match="do not tell its tables at 2"):
        recovered(world, "v", to_version=2)
    assert place(world) == (1, 0)
    recovered(world, "v", to_version=3)
    assert place(world) == (2, 1)


def test_marks_of_an_earlier_release_tell_no_tables_of_a_view(
    world: World, back_up: Callable[[], PutBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Driver, "says_ends", False)
    view_stream(world)
    of_view(world, "before", 1, 0)
    put_back = back_up()
    of_view(world, "since", 1, 1)
    put_back()
    with pytest.raises(RecoveryRefused, match="do not tell its tables at 3"):
        recovered(world, "v")
    assert place(world) == (1, 0)


def test_a_view_whose_table_was_recreated_since_is_not_recovered(world: World, back_up: Callable[[], PutBack]) -> None:
    view_stream(world)
    of_view(world, "before", 1, 0)
    put_back = back_up()
    of_view(world, "since", 1, 1)
    put_back()
    world.sources["other"].recreate()
    with pytest.raises(SourceRecreated):
        recovered(world, "v")
    assert place(world) == (1, 0)


@pytest.mark.parametrize("name", ["s", "v"])
def test_of_two_recoveries_at_once_one_moves_the_stream(
    world: World, back_up: Callable[[], PutBack], name: str
) -> None:
    view_stream(world)
    windows(world, 1, "before", streams=(name,))
    put_back = back_up()
    windows(world, 2, "since", streams=(name,))
    put_back()
    done: list[Recovered] = []

    def looking(table: TableRef | str) -> DeltaLog:
        """Another person recovers the stream when this one looks at the source."""
        if not done and isinstance(table, TableRef) and table.name in BOTH:
            done.append(recover_stream(world.store, name, who="bob", tables=open_table))
        return open_table(table)

    with pytest.raises(RecoveryRefused, match="moved at the same time"):
        recover_stream(world.store, name, who="ann", tables=looking)
    assert get_stream(world.store, name).uid == done[0].after.uid
    assert [move.who for move in world.history(name)][-1] == "bob"
    assert len(world.history(name)) == 3


def test_a_consumer_that_runs_keeps_a_recovery_out_until_its_job_has_ended(
    world: World, back_up: Callable[[], PutBack]
) -> None:
    view_stream(world)
    world.sources["other"].append()
    world.zombie(world.open("open", streams=("v",)), steps=1)
    put_back = back_up()
    world.clock.go(LONG)
    world.consume("open", streams=("v",))
    of_view(world, "since", 1, 1)
    put_back()
    world.clock.now = START
    with pytest.raises(JobsMayBeAlive):
        recovered(world, "v")
    assert place(world) == (0, 0)
    world.clock.go(LONG)
    assert recovered(world, "v").released == key_of("open")
    assert place(world) == (1, 2)
