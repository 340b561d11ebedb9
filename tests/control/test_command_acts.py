"""Acts by commands in the history: in the transaction of the act, once, and only of what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted
from tests.control.rights import let_prune
from tidemark.control.command_acts import CommandAct, note_act, noting
from tidemark.control.history import Step, drop_step
from tidemark.control.object_acts import Act, ActTools, DoneAct, act_on, newest_acts
from tidemark.control.object_revisions import facts_of, token_of
from tidemark.control.objects import touch
from tidemark.control.schema import acts
from tidemark.control.store import ControlStore
from tidemark.errors import ObjectChanged, PipeNotFound
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker.definitions import create_pipe, drop_pipe, get_pipe, pause_pipe
from tidemark.streams.worker.opening import open_table

NAME = "shop.orders_pipe"
STATEMENT = "COPY INTO shop.orders FROM @landing"
PAUSE = CommandAct("pipe", "pause", "ann", "it's late", {"force": True})


@pytest.fixture
def store(copied_store: ControlStore) -> Iterator[ControlStore]:
    copied_store.clock = Clock()
    create(copied_store, NAME)
    yield copied_store
    assert drifted(copied_store) == []


def create(store: ControlStore, name: str) -> None:
    create_pipe(store, name, STATEMENT, queue=queue_path("/lake", name), by="ann")


def history(store: ControlStore) -> list[DoneAct]:
    return list(store.read(lambda connection: newest_acts(connection, kind=None, uid=None, limit=50)))


def test_an_act_by_a_command_has_who_why_and_values_and_no_facts_that_were_shown(store: ControlStore) -> None:
    pause_pipe(noting(store, PAUSE), NAME, by="ann")
    (kept,) = history(store)
    assert (kept.kind, kept.uid, kept.name, kept.act) == ("pipe", get_pipe(store, NAME).uid, NAME, "pause")
    assert (kept.who, kept.why, kept.values, kept.by_command) == ("ann", "it's late", {"force": True}, True)
    assert kept.done_at == store.clock()


def test_a_second_run_that_changes_nothing_keeps_nothing(store: ControlStore) -> None:
    for _ in range(2):
        pause_pipe(noting(store, PAUSE), NAME, by="ann")
    assert len(history(store)) == 1


def test_a_rehearsal_and_an_act_that_is_refused_keep_nothing(store: ControlStore) -> None:
    pause_pipe(noting(store, PAUSE).rehearsal(), NAME, by="ann")
    with pytest.raises(PipeNotFound):
        pause_pipe(noting(store, PAUSE), "shop.nowhere", by="ann")
    assert history(store) == []


def test_an_act_of_several_writes_is_kept_once_and_each_object_that_they_touch(store: ControlStore) -> None:
    create(store, "shop.other")
    uids = [get_pipe(store, name).uid for name in (NAME, "shop.other")]
    kept = noting(store, PAUSE)
    for uid in (*uids, *uids):
        kept.write(partial(touch, kind="pipe", uids=[uid]))
    assert sorted(one.uid for one in history(store)) == sorted(uids)


def test_what_touches_objects_of_other_kinds_alone_is_kept_of_the_one_that_is_named(store: ControlStore) -> None:
    create(store, "shop.other")
    other = get_pipe(store, "shop.other").uid
    kept = noting(store, CommandAct("pipe", "load", "ann", "", name=NAME.upper()))
    kept.write(lambda connection: None)
    assert history(store) == []
    kept.write(partial(touch, kind="pipe", uids=[other]))
    assert [(one.name, one.why) for one in history(store)] == [(NAME, "")]


def test_an_object_that_replaces_one_of_its_name_is_one_row_and_a_new_one_is_known_by_its_name(
    store: ControlStore,
) -> None:
    old = get_pipe(store, NAME).uid

    def replace(connection: sa.Connection) -> None:
        drop_pipe_in(connection)
        create_in(connection, NAME.upper())
        create_in(connection, "shop.new")

    drop_pipe_in, create_in = moves(store)
    noting(store, CommandAct("pipe", "replace", "ann", "")).write(replace)
    assert {(one.name, one.uid == old) for one in history(store)} == {(NAME, True), ("shop.new", False)}


def moves(store: ControlStore):  # type: ignore[no-untyped-def]
    """The end of the pipe and the creation of another one, in the transaction of the caller."""
    from dataclasses import replace

    from tidemark.pipes.store import pipes

    found = get_pipe(store, NAME)

    def create_in(connection: sa.Connection, name: str) -> None:
        wanted = replace(found, uid=store.new_id(), name=name, queue=f"file:///lake/{store.new_id()}")
        pipes.create_pipe(connection, wanted, by="ann")

    return lambda c: pipes.end_pipe(c, found.uid, at=store.clock(), by="ann"), create_in


def test_of_eight_commands_at_once_that_pause_it_one_keeps_its_act(store: ControlStore) -> None:
    def pause(number: int) -> None:
        act = CommandAct("pipe", "pause", f"user{number}", "all at once")
        pause_pipe(noting(store, act), NAME, by=f"user{number}")

    with ThreadPoolExecutor(8) as people:
        list(people.map(pause, range(8)))
    assert len(history(store)) == 1


def test_a_person_at_the_page_is_told_of_a_command_that_came_first(store: ControlStore) -> None:
    uid = get_pipe(store, NAME).uid
    shown = token_of(store.read(lambda connection: facts_of(connection, "pipe", [uid]))[uid])
    note_act(store, CommandAct("pipe", "refresh", "ann", "by a job"), uid, NAME)
    with pytest.raises(ObjectChanged, match="somebody has acted on it"):
        act_on(store, ActTools(open_table), Act("pipe", uid, "drop", shown, "bob", "the night"))


def test_old_acts_of_commands_that_were_done_again_are_dropped_and_no_other_act(
    store: ControlStore, request: pytest.FixtureRequest
) -> None:
    """A pause may hold for years, and its reason with it. An act on the page stays at any age."""
    let_prune(store, request)
    assert isinstance(store.clock, Clock)
    create(store, "shop.other")
    uids = {name: get_pipe(store, name).uid for name in (NAME, "shop.other")}
    shown = token_of(store.read(lambda connection: facts_of(connection, "pipe", [uids[NAME]]))[uids[NAME]])
    act_on(store, ActTools(open_table), Act("pipe", uids[NAME], "pause", shown, "bob", "on the page"))
    for act, name in (
        ("pause", NAME), ("refresh", NAME), ("refresh", NAME), ("refresh", NAME), ("pause", NAME),
        ("refresh", "shop.other"),
    ):  # fmt: skip
        store.clock.go(timedelta(days=30))
        note_act(store, CommandAct("pipe", act, "cron", ""), uids[name], name)

    def dropped(most: int) -> int:
        count, step, before = 0, Step(0, (0,)), store.clock() - timedelta(days=45)
        drop = partial(drop_step, kind="acts of commands", before=before, most=most)
        while step.cursor is not None:
            step = store.write(partial(drop, after=step.cursor))
            count += step.dropped
        return count

    assert dropped(most=2) == 3
    assert [(one.act, one.name, one.by_command) for one in reversed(history(store))] == [
        ("pause", NAME, False), ("refresh", NAME, True), ("pause", NAME, True), ("refresh", "shop.other", True),
    ]  # fmt: skip
    assert dropped(most=100) == 0


def test_the_end_of_an_object_keeps_its_name_in_the_history(store: ControlStore) -> None:
    drop_pipe(noting(store, CommandAct("pipe", "drop", "ann", "")), NAME, by="ann")
    assert [(one.name, one.act) for one in history(store)] == [(NAME, "drop")]
    assert store.read(lambda c: c.execute(sa.select(acts.c.arguments)).scalar_one()) is None
