"""Views in the store: what cannot be kept is refused before anything is stored, and old refreshes leave the history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted, rows_of
from tests.control.rights import let_prune
from tests.guarantees.drivers import WorkerDied
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.view_world import ViewWorld
from tests.guarantees.world import key_of
from tidemark.control.object_list import ObjectsWish
from tidemark.errors import (
    InvalidArgument,
    KeptViewExists,
    KeptViewNotFound,
    KeptViewRefused,
    KeptViewSuspended,
    StatementRefused,
    TidemarkError,
    TransactionOpen,
)
from tidemark.materialized.model.definitions import KeptKind, RefreshMode, TargetLag
from tidemark.materialized.model.jobs import Resolved, ResolveRequest
from tidemark.materialized.planning.shape import plain_shape, rows_shape
from tidemark.materialized.worker.defining import Lakes, ViewRequest, create_view
from tidemark.materialized.worker.lags import view_lag
from tidemark.materialized.worker.refresh import refresh_view, refresh_wave
from tidemark.materialized.worker.statements import words_of_shape
from tidemark.materialized.worker.views import drop_view, list_views, resume_view, set_lag, suspend_view, view_history
from tidemark.materialized.worker.waves import plan_due
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.views import ViewQuery
from tidemark.streams.worker.object_states import list_objects
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.pruning import prune

MINUTE = timedelta(minutes=1)


@pytest.fixture
def world(tmp_path: Path, task_store: str) -> Iterator[ViewWorld]:
    made = ViewWorld(tmp_path, task_store)
    yield made
    assert drifted(made.store) == []
    made.store.close()


def asked(world: ViewWorld, **more: object) -> ViewRequest:
    wanted = ViewRequest("v", KeptKind.DYNAMIC_TABLE, "SELECT 1", f"{world.root}/kept_v", TargetLag(MINUTE))
    return replace(wanted, **more)  # type: ignore[arg-type]


def refusal(world: ViewWorld, request: ViewRequest, *reads: str, plain: str | None = None) -> TidemarkError:
    """The error of a view that cannot be made; nothing is stored."""

    def resolve(said: ResolveRequest) -> Resolved:
        found = world._resolved(said, request.name, reads or ("source",))
        if not reads:
            return found
        return found if plain is None else replace(found, shape=plain_shape(found.shape.followed, plain))

    before = list_views(world.store)
    with pytest.raises(TidemarkError) as refused:
        create_view(world.store, request, by="ann", lakes=Lakes(resolve, lambda _: None, open_table))
    assert list_views(world.store) == before
    return refused.value


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"name": "tidemark$view$x"}, InvalidArgument, "names that begin with tidemark$view$"),
        ({"name": " "}, InvalidArgument, "give a name"),
        ({"or_replace": True, "if_not_exists": True}, InvalidArgument, "it contradicts if_not_exists"),
        ({"target_lag": None}, InvalidArgument, "a dynamic table needs a target lag, or DOWNSTREAM"),
        ({"kind": KeptKind.MATERIALIZED_VIEW}, InvalidArgument, "always answers for its newest bases"),
        ({"text": "DELETE FROM t"}, StatementRefused, "a view keeps the rows of a query"),
    ],
)
def test_a_request_that_contradicts_itself_is_refused(
    world: ViewWorld, more: dict[str, object], error: type[TidemarkError], words: str
) -> None:
    found = refusal(world, asked(world, **more))
    assert isinstance(found, error)
    assert words in str(found)


def test_a_query_that_cannot_be_kept_as_it_is_asked_for_is_refused(world: ViewWorld) -> None:
    found = refusal(world, asked(world, mode=RefreshMode.INCREMENTAL), "source", plain="windows have no changes.")
    assert isinstance(found, KeptViewRefused)
    assert "INCREMENTAL is not possible. windows have no changes." in str(found)


def test_a_table_of_others_at_the_path_is_left_alone(world: ViewWorld) -> None:
    SyntheticTable(world.root / "kept_w")
    found = refusal(world, asked(world, name="w", path=f"{world.root}/kept_w"))
    assert isinstance(found, KeptViewRefused)
    assert "that no view keeps" in str(found)


def test_a_view_that_would_read_itself_is_refused(world: ViewWorld) -> None:
    world.view("v", "source")
    world.view("of_v", "v")
    found = refusal(world, asked(world, or_replace=True), "of_v")
    assert isinstance(found, KeptViewRefused)
    assert "reads the view itself" in str(found)
    with pytest.raises(KeptViewExists):
        world.view("v", "source")


@pytest.mark.parametrize("case", ["a query without changes", "its own rows", "a refresh that is under way"])
def test_a_refused_replacement_leaves_the_table_of_the_view_alone(world: ViewWorld, case: str) -> None:
    world.view("v", "source")
    world.view("of_v", "v")
    world.source.append()

    def resolve(said: ResolveRequest) -> Resolved:
        assert said.kept is None, "the table would get the columns of the new query"
        found = world._resolved(said, "v", ("of_v" if case == "its own rows" else "source",))
        plain = plain_shape(found.shape.followed, "windows have no changes.")
        return replace(found, shape=plain) if case == "a query without changes" else found

    def die(spec: JobSpec) -> JobResult:
        world.driver(spec)
        raise WorkerDied

    if case == "a refresh that is under way":
        with pytest.raises(WorkerDied):
            refresh_view(world.with_job(die), "v", key=key_of("one"))
    wanted = asked(world, or_replace=True, mode=RefreshMode.INCREMENTAL)
    with pytest.raises((KeptViewRefused, TransactionOpen)):
        create_view(world.store, wanted, by="ann", lakes=Lakes(resolve, lambda _: None, open_table))


def test_a_view_is_among_all_objects_with_its_state_and_lag(world: ViewWorld) -> None:
    world.view("v", "source", lag=TargetLag(MINUTE))
    assert rows_of(world.store)["dynamic_table v"]["state"] == "initializing"
    world.source.append()
    world.refresh("v")
    world.clock.go(2 * MINUTE)
    (shown,) = list_objects(world.store, open_table, ObjectsWish(kind="dynamic_table"))
    assert (shown.name, shown.state, shown.lag_seconds) == ("v", "active", 120.0)
    assert "behind its target lag of 1 minute" in str(shown.notice)
    suspend_view(world.store, "v", by="ann")
    assert rows_of(world.store)["dynamic_table v"]["state"] == "suspended"
    set_lag(world.store, "V", TargetLag(), by="ann")
    drop_view(world.store, "v", by="ann")
    assert "dynamic_table v" not in rows_of(world.store)
    with pytest.raises(KeptViewNotFound):
        drop_view(world.store, "v", by="ann")


def test_a_materialized_view_is_fresh_while_its_bases_stand_still(world: ViewWorld) -> None:
    world.view("m", "source", kind=KeptKind.MATERIALIZED_VIEW)
    world.view("off", "source", kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    assert {one.view for one in world.refresh_due("first")} == {"m", "off"}
    suspend_view(world.store, "off", by="ann")
    version = world.stored("m").kept_version
    world.clock.go(3 * MINUTE)
    assert world.refresh_due("quiet") == ()
    assert view_lag(world.store, "m").within(0)
    assert world.stored("off").fresh_at == world.clock.now - 3 * MINUTE
    assert len(view_history(world.store, "m")) == 1
    world.clock.go(MINUTE)
    world.refresh_due("soon")
    assert not view_lag(world.store, "m").within(0)  # noted each few minutes
    world.source.append()
    world.clock.go(3 * MINUTE)
    wave = plan_due(world.store, open_table, "changed")
    assert not view_lag(world.store, "m").within(0)
    refresh_wave(world.runtime, wave, key=key_of("changed"))
    assert view_lag(world.store, "m").within(0)
    assert world.stored("m").kept_version == (version or 0) + 1


def test_a_materialized_view_refreshes_the_tables_that_wait_for_it(world: ViewWorld) -> None:
    world.view("waiting", "source", lag=TargetLag())
    world.view("m", "waiting", kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    assert [one.view for one in world.refresh("m")] == ["waiting", "m"]
    assert world.refresh_due("quiet") == ()
    version = world.source.append()
    assert [one.view for one in world.refresh_due("later")] == ["waiting", "m"]
    assert ("0", version) in world.rows("waiting")


def test_a_suspended_view_is_not_refreshed_until_it_is_resumed(world: ViewWorld) -> None:
    world.view("v", "source", lag=TargetLag(MINUTE))
    world.refresh("v")
    suspend_view(world.store, "v", by="ann")
    version = world.source.append()
    world.clock.go(2 * MINUTE)
    assert world.refresh_due("early") == ()
    with pytest.raises(KeptViewSuspended, match="DYNAMIC TABLE v RESUME"):
        world.refresh("v", "early")
    assert ("0", version) not in world.rows("v")
    resume_view(world.store, "v", by="ann")
    assert [one.view for one in world.refresh_due("later")] == ["v"]
    assert ("0", version) in world.rows("v")


def test_the_answer_to_create_says_in_full_only_of_views_that_are() -> None:
    query = ViewQuery("v", "SELECT 1", '{"type": "struct", "fields": []}', (), {}, "d")
    plain, rows = plain_shape(query, "windows have no changes."), rows_shape(query, "groups are computed")
    assert words_of_shape(plain) == " It is refreshed in full: windows have no changes."
    assert words_of_shape(rows) == " Note: groups are computed."
    assert words_of_shape(rows_shape(query)) == ""


def test_old_refreshes_leave_the_history_but_for_the_last(world: ViewWorld, request: pytest.FixtureRequest) -> None:
    let_prune(world.store, request)
    world.view("v", "source")
    for run in ("one", "two", "three"):
        world.source.append()
        world.refresh("v", run)
        world.clock.go(timedelta(days=10))
    assert len(view_history(world.store, "v")) == 3
    dropped = prune(world.store, timedelta(days=5), pause=lambda _: None)
    assert dropped["refreshes of views"] == 2
    assert [one.run for one in view_history(world.store, "v")] == ["dag/three/consume/-1"]
