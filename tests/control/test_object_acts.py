"""Acts in the store: check, step and history are one transaction, on every database and with a task's rights."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted
from tidemark.control.object_acts import Act, ActTools, DoneAct, act_on, acts_part, newest_acts
from tidemark.control.object_revisions import facts_of, token_of
from tidemark.control.objects import touch
from tidemark.control.store import ControlStore
from tidemark.errors import (
    ActNotOffered,
    ActTooLate,
    InvalidArgument,
    ObjectChanged,
    ObjectGone,
    PipeStale,
    TidemarkError,
)
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker.definitions import create_pipe, find_pipe, get_pipe, pause_pipe
from tidemark.streams.worker.opening import open_table

NAME = "shop.orders_pipe"


@pytest.fixture
def store(copied_store: ControlStore) -> Iterator[ControlStore]:
    copied_store.clock = Clock()
    create_pipe(copied_store, NAME, "COPY INTO shop.orders FROM @landing", queue=queue_path("/lake", NAME), by="ann")
    yield copied_store
    assert drifted(copied_store) == []


def wish(store: ControlStore, act: str, *, who: str = "ann", why: str = "the night") -> Act:
    uid = get_pipe(store, NAME).uid
    facts = store.read(lambda connection: facts_of(connection, "pipe", [uid]))
    return Act("pipe", uid, act, token_of(facts[uid]), who, why)


def history(store: ControlStore) -> tuple[DoneAct, ...]:
    return store.read(lambda connection: newest_acts(connection, kind=None, uid=None, limit=50))


def test_of_eight_who_decide_at_once_one_acts_and_the_others_are_told(store: ControlStore) -> None:
    wishes = [wish(store, act, who=f"{act}{number}") for number in range(4) for act in ("pause", "drop")]

    def do(one: Act) -> TidemarkError | None:
        try:
            act_on(store, ActTools(open_table), one)
        except TidemarkError as error:
            return error
        return None

    with ThreadPoolExecutor(8) as people:
        errors = list(people.map(do, wishes))
    assert errors.count(None) == 1
    assert {type(error) for error in errors if error is not None} <= {ObjectChanged, ObjectGone}
    (done,) = history(store)
    assert done.who == wishes[errors.index(None)].who
    found = find_pipe(store, NAME)
    assert (found is None) == (done.act == "drop")
    assert found is None or found.paused_at is not None


def test_parts_that_follow_each_other_are_all_acts(store: ControlStore) -> None:
    for act in ("pause", "resume") * 3:
        act_on(store, ActTools(open_table), wish(store, act, why=f"{act} it"))
    numbers: list[int] = []
    cursor: str | None = None
    for size in (4, 2):
        part = store.read(lambda c, at=cursor: acts_part(c, kind="pipe", uid=None, limit=4, cursor=at))
        assert len(part.acts) == size
        numbers += [one.number for one in part.acts]
        cursor = part.cursor
    assert cursor is None
    assert numbers == [one.number for one in history(store)]
    whole = store.read(lambda c: acts_part(c, kind=None, uid=None, limit=6, cursor=None))
    assert (len(whole.acts), whole.cursor) == (6, None)


@pytest.mark.parametrize(
    "wish", [{"cursor": "x"}, {"cursor": "W10"}, {"cursor": "WyJhY3QiLCAtMV0"}, {"cursor": "é"}, {"limit": 0}]
)
def test_a_bad_question_for_acts_is_refused(store: ControlStore, wish: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        store.read(lambda c: acts_part(c, **{"kind": None, "uid": None, "limit": 1, "cursor": None, **wish}))


def test_a_history_entry_has_the_facts_that_were_shown(store: ControlStore) -> None:
    act_on(store, ActTools(open_table), wish(store, "pause", why=" the disk is full "))
    (done,) = history(store)
    assert (done.name, done.act, done.who, done.why) == (NAME, "pause", "ann", "the disk is full")
    assert done.revision["state"] == "RUNNING"
    assert done.done_at == store.clock()


def test_a_step_that_refuses_leaves_no_history(store: ControlStore) -> None:
    pause_pipe(store, NAME, by="bob")
    assert isinstance(store.clock, Clock)
    store.clock.now += timedelta(days=30)
    with pytest.raises(PipeStale):
        act_on(store, ActTools(open_table), wish(store, "resume"))
    assert history(store) == ()
    assert get_pipe(store, NAME).paused_at is not None


def test_a_change_between_the_check_and_the_write_is_refused_by_the_write(store: ControlStore) -> None:
    """The guard runs in the transaction of the step, so nothing can come between them."""
    seen = wish(store, "pause")
    facts = store.read(lambda connection: facts_of(connection, "pipe", [seen.uid]))[seen.uid]

    def check(connection: object) -> None:
        now = facts_of(connection, "pipe", [seen.uid])[seen.uid]  # type: ignore[arg-type]
        if now != facts:
            raise ObjectChanged(kind="pipe", name=NAME, words="it", changed={}, revision="")

    guarded = store.guarded(check, lambda _: None)
    pause_pipe(store, NAME, by="bob")
    with pytest.raises(ObjectChanged):
        pause_pipe(guarded, NAME, by="ann")


@pytest.mark.parametrize(("why", "act", "error"), [(" ", "pause", InvalidArgument), ("x", "resume", ActNotOffered)])
def test_an_act_without_a_reason_or_out_of_place_is_refused(
    store: ControlStore, why: str, act: str, error: type[TidemarkError]
) -> None:
    with pytest.raises(error):
        act_on(store, ActTools(open_table), wish(store, act, why=why))
    assert history(store) == ()


def test_an_act_that_nobody_waits_for_any_more_is_not_stored(store: ControlStore) -> None:
    with pytest.raises(ActTooLate):
        act_on(store, ActTools(open_table), wish(store, "pause"), in_time=lambda: False)
    assert history(store) == ()
    assert get_pipe(store, NAME).paused_at is None


def test_an_act_in_the_history_has_the_dag_that_owns_its_object(store: ControlStore) -> None:
    act_on(store, ActTools(open_table), wish(store, "pause"))
    (done,) = history(store)
    assert done.owner_dag is None  # no run has made or moved it
    store.write(lambda connection: touch(connection, "pipe", [done.uid], by="loads/r/t/-1"))
    assert [one.owner_dag for one in history(store)] == ["loads"]
