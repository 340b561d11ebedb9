"""Acts that take arguments, and acts on streams, views and replications, in the store alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from tests.airflow.monitored import DAG, Monitored
from tests.control.kept_objects import drifted
from tests.guarantees.view_world import ViewWorld
from tidemark.control.object_acts import Act, ActTools, DoneAct, act_on, newest_acts, offered_now
from tidemark.control.object_list import ObjectsWish, find
from tidemark.control.store import ControlStore
from tidemark.errors import (
    ActFieldsInvalid,
    ActNotOffered,
    InvalidArgument,
    KeptViewSuspended,
    ObjectChanged,
    RebaseRefused,
    TidemarkError,
)
from tidemark.materialized.model.definitions import TargetLag
from tidemark.materialized.worker.views import ask_for_refresh, get_view, suspend_view
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, needs_page
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.streams import get_stream, stream_history

WHY = "the night"


def offers(store: ControlStore, kind: str, name: str) -> Act:
    """The object as it is shown now, for an act."""
    one = store.read(lambda c: find(c, kind, name, now=store.clock()))
    found = store.read(lambda c: offered_now(c, kind, one.uid, store.clock()))
    return Act(kind, one.uid, "", found.revision, "ann", WHY)


def choices(store: ControlStore, name: str) -> list[str]:
    """The windows from which a stream can be delivered again."""
    one = store.read(lambda c: find(c, "stream", name, now=store.clock()))
    found = store.read(lambda c: offered_now(c, "stream", one.uid, store.clock()))
    return [choice.value for choice in found.choices["replay", "window"]]


def do(store: ControlStore, kind: str, name: str, act: str, **values: object) -> None:
    shown = offers(store, kind, name)
    act_on(store, ActTools(open_table), Act(kind, shown.uid, act, shown.revision, shown.who, WHY, values))


def history(store: ControlStore) -> tuple[DoneAct, ...]:
    return store.read(lambda connection: newest_acts(connection, kind=None, uid=None, limit=50))


@pytest.fixture
def made(tmp_path: Path, task_store: str) -> Iterator[Monitored]:
    """`orders` was consumed twice, and is one commit behind."""
    world = Monitored(tmp_path, task_store)
    world._clock(hours=3)
    world._stream("orders")
    for run in ("one", "two"):
        world._commit("orders", times=2)
        world._consume(run, "orders")
    world._commit("orders", times=1)
    yield world
    assert drifted(world.store) == []
    world.store.close()


def test_a_stream_delivers_again_from_a_window_that_was_chosen(made: Monitored) -> None:
    before, head = get_stream(made.store, "orders"), made.tables["orders"].head()
    first, second = sorted(int(one) for one in choices(made.store, "orders"))
    assert second == first + 2
    do(made.store, "stream", "orders", "replay", window=str(second))
    after = get_stream(made.store, "orders")
    assert (after.offset.version, after.source, after.mode) == (second, before.source, before.mode)
    assert after.uid != before.uid  # for targets it is another stream
    (done,) = history(made.store)
    assert (done.act, done.values, done.uid) == ("replay", {"window": str(second)}, before.uid)
    assert stream_history(made.store, "orders")[-1].why.endswith(WHY)
    made._consume("three", "orders")
    assert get_stream(made.store, "orders").offset.version == head
    assert str(first) in choices(made.store, "orders")  # windows from before the replay can be chosen, too


@pytest.mark.parametrize("window", ["", "x", "999", "-1", True, ["1"]])
def test_a_window_that_is_no_choice_is_refused_by_its_field(made: Monitored, window: object) -> None:
    with pytest.raises(ActFieldsInvalid) as refused:
        do(made.store, "stream", "orders", "replay", window=window)
    assert refused.value.facts["problems"].keys() == {"window"}
    assert history(made.store) == ()


def test_every_field_that_is_wrong_is_named(made: Monitored) -> None:
    with pytest.raises(ActFieldsInvalid) as refused:
        do(made.store, "stream", "orders", "rebase", keys="id", force="yes", table="x")
    assert refused.value.facts["problems"].keys() == {"keys", "force", "table"}


def test_a_window_whose_commits_are_gone_is_refused(made: Monitored) -> None:
    (first, *_) = sorted(int(one) for one in choices(made.store, "orders"))
    for file in sorted(made.tables["orders"].log.glob("*.json"))[: first + 2]:
        file.unlink()
    with pytest.raises(TidemarkError):
        do(made.store, "stream", "orders", "replay", window=str(first))
    assert history(made.store) == ()


def test_a_stream_is_recreated_where_it_is_told_to_start(made: Monitored) -> None:
    before = get_stream(made.store, "orders")
    do(made.store, "stream", "orders", "recreate", at="1", show_initial_rows=True)
    after = get_stream(made.store, "orders")
    assert (after.offset.version, after.initial_rows_pending, after.mode) == (1, True, before.mode)
    assert len(stream_history(made.store, "orders")) == 1
    do(made.store, "stream", "orders", "recreate")
    assert get_stream(made.store, "orders").offset.version == made.tables["orders"].head()
    with pytest.raises(InvalidArgument):
        do(made.store, "stream", "orders", "recreate", at="yesterday")


def test_a_stream_whose_table_was_recreated_is_re_based(made: Monitored) -> None:
    with pytest.raises(RebaseRefused):
        do(made.store, "stream", "orders", "rebase")
    made.tables["orders"].replace()
    do(made.store, "stream", "orders", "rebase", show_initial_rows=True)
    after = get_stream(made.store, "orders")
    assert after.source.table_id == made.tables["orders"].table_id
    assert after.initial_rows_pending
    assert [one.act for one in history(made.store)] == ["rebase"]
    assert choices(made.store, "orders") == []  # those are windows of another table


@pytest.mark.parametrize("act", ["replay", "rebase", "recreate"])
def test_a_stream_that_a_person_starts_again_stays_that_of_its_dag(made: Monitored, act: str) -> None:
    before = get_stream(made.store, "orders").uid
    values: dict[str, dict[str, object]] = {
        "replay": {"window": choices(made.store, "orders")[0]},
        "rebase": {"force": True},
    }
    do(made.store, "stream", "orders", act, **values.get(act, {}))
    after = made.store.read(lambda c: find(c, "stream", "orders", now=made.store.clock()))
    assert (after.uid != before, after.owner_dag) == (True, DAG)


def test_a_stream_is_advanced_to_a_version(made: Monitored) -> None:
    version = get_stream(made.store, "orders").offset.version
    made._commit("orders", times=3)
    do(made.store, "stream", "orders", "advance", to=str(version + 2))
    assert get_stream(made.store, "orders").offset.version == version + 2
    with pytest.raises(InvalidArgument):
        do(made.store, "stream", "orders", "advance", to=str(version))


@pytest.fixture
def views(tmp_path: Path, task_store: str) -> Iterator[ViewWorld]:
    """`counts` may be a day old, and was refreshed just now."""
    world = ViewWorld(tmp_path, task_store)
    world.view("counts", "source", lag=TargetLag(timedelta(days=1)))
    world.refresh_due("first")
    yield world
    assert drifted(world.store) == []
    world.store.close()


def test_a_refresh_that_was_asked_for_is_done_by_the_next_run_once(views: ViewWorld) -> None:
    views.sources["source"].append()
    views.clock.now += timedelta(minutes=1)
    assert views.refresh_due("idle") == ()
    do(views.store, "dynamic_table", "counts", "refresh")
    assert get_view(views.store, "counts").asked_at == views.clock.now
    views.clock.now += timedelta(minutes=1)
    assert [one.view for one in views.refresh_due("asked")] == ["counts"]
    assert get_view(views.store, "counts").asked_at is None
    assert views.refresh_due("after") == ()


def test_a_request_during_a_refresh_is_left_to_the_next_one(views: ViewWorld) -> None:
    views.sources["source"].append()
    views.clock.now += timedelta(minutes=1)

    def ask(_: object) -> None:
        views.clock.now += timedelta(seconds=1)
        ask_for_refresh(views.store, "counts", by="ann")

    views.before_job = ask
    views.refresh("counts", "by hand")
    views.before_job = None
    assert get_view(views.store, "counts").asked_at is not None


def test_a_suspended_view_is_asked_for_no_refresh(views: ViewWorld) -> None:
    suspend_view(views.store, "counts", why="it costs too much", by="ann")
    with pytest.raises(KeptViewSuspended):
        ask_for_refresh(views.store, "counts", by="ann")
    with pytest.raises(ActNotOffered):
        do(views.store, "dynamic_table", "counts", "refresh")


def test_a_view_that_a_person_suspended_says_why_and_by_whom(views: ViewWorld) -> None:
    do(views.store, "dynamic_table", "counts", "suspend")
    (found,) = views.store.read(
        lambda c: needs_page(c, NOTHING_KNOWN, ObjectsWish(), after=None, limit=9, now=views.store.clock())
    ).needs
    assert found.reason(found.shown) == f"it is suspended: {WHY}, by ann"


def test_one_revision_does_one_act_even_if_that_changes_no_other_fact(views: ViewWorld) -> None:
    shown = offers(views.store, "dynamic_table", "counts")
    wish = Act(shown.kind, shown.uid, "refresh", shown.revision, "ann", WHY)
    act_on(views.store, ActTools(open_table), wish)
    with pytest.raises(ObjectChanged, match="somebody has acted on it"):
        act_on(views.store, ActTools(open_table), wish)
    assert len(history(views.store)) == 1


def test_an_act_of_an_earlier_release_has_no_values(made: Monitored) -> None:
    found: Mapping[str, object] = {}
    do(made.store, "stream", "orders", "drop")
    assert [one.values for one in history(made.store)] == [found]
