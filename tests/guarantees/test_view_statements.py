"""Statements of views by one run: killed, run again, and met by others in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted
from tidemark.errors import InvalidArgument, KeptViewExists, KeptViewNotFound, KeptViewSuspended
from tidemark.materialized.model.refreshes import Refreshed
from tidemark.materialized.planning.sql import parse_view_sql
from tidemark.materialized.planning.statements import DescribeView, ShowViews
from tidemark.materialized.worker.defining import KEEPS, Lakes
from tidemark.materialized.worker.refresh import refresh_view
from tidemark.materialized.worker.statements import Answer, Desk, run_statement
from tidemark.streams.worker.opening import open_table

from .drivers import WorkerDied
from .view_world import KeptTable, ViewWorld
from .world import key_of

CREATE = "CREATE DYNAMIC TABLE v TARGET_LAG = '1 minute' AS SELECT 1"
REPLACE = CREATE.replace("CREATE", "CREATE OR REPLACE")


@pytest.fixture
def world(tmp_path: Path, sqlite_store: str) -> Iterator[ViewWorld]:
    made = ViewWorld(tmp_path, sqlite_store)
    yield made
    assert drifted(made.store) == []
    made.store.close()


def said(world: ViewWorld, text: str, run: str, *, dies: bool = False, once: bool = True) -> Answer:
    """The answer to a statement of a task of `run`, which may die before its refresh."""
    key = key_of(run)

    def refresh(name: str) -> tuple[Refreshed, ...]:
        if dies:
            raise WorkerDied
        return refresh_view(world.runtime, name, key=key)

    desk = Desk(
        store=world.store,
        who=str(key),
        lakes=Lakes(lambda asked: world._resolved(asked, "v", ["source"]), lambda _: None, open_table),
        path=lambda name: str(world.root / f"kept_{name}"),
        refresh=refresh,
        once=once,
    )
    statement = parse_view_sql(text)
    assert statement is not None
    assert not isinstance(statement, ShowViews | DescribeView)
    return run_statement(desk, statement)


@pytest.mark.parametrize("text", [CREATE, REPLACE])
def test_a_retry_fills_the_view_that_its_run_has_created_and_a_clear_keeps_it(world: ViewWorld, text: str) -> None:
    world.source.append()
    with pytest.raises(WorkerDied):
        said(world, text, "one", dies=True)
    uid = world.stored("v").uid
    assert world.stored("v").fresh_at is None
    again = said(world, text, "one")
    assert "was created by an earlier attempt of this run" in again.status
    assert [one.state.value for one in again.refreshed] == ["done"]
    assert (world.stored("v").uid, world.rows("v")) == (uid, {("0", 1): 1})
    world.source.append()
    world.refresh("v", "later")  # a whole refresh or a lost window may have replaced the stream of the view by now
    assert said(world, text, "one").refreshed == ()
    assert world.stored("v").uid == uid


def test_another_run_replaces_the_view_or_finds_its_name_taken(world: ViewWorld) -> None:
    said(world, CREATE, "one")
    uid = world.stored("v").uid
    with pytest.raises(KeptViewExists):
        said(world, CREATE, "two")
    said(world, REPLACE, "two")
    assert world.stored("v").uid != uid
    said(world, CREATE.replace("TABLE v", "TABLE IF NOT EXISTS v"), "three")
    assert "created by an earlier attempt" in said(world, REPLACE, "two").status


def test_a_replacement_says_which_table_it_leaves(world: ViewWorld) -> None:
    said(world, CREATE, "one")
    waits = REPLACE.replace("AS SELECT", "INITIALIZE = ON_SCHEDULE AS SELECT")
    assert "stay in" not in said(world, waits, "two").status
    old = world.kept["v"]
    world.kept["v"] = KeptTable(world.root / "kept_v__partials", {KEEPS: "v"})
    assert f"The rows of the replaced view stay in the table at {old.uri}." in said(world, waits, "three").status


def test_a_drop_is_done_once_by_its_run_and_a_new_view_of_the_name_is_another_one(world: ViewWorld) -> None:
    said(world, CREATE, "one")
    assert "successfully dropped" in said(world, "DROP DYNAMIC TABLE v", "two").status
    assert "already dropped" in said(world, "DROP DYNAMIC TABLE v", "two").status
    with pytest.raises(KeptViewNotFound):
        said(world, "DROP DYNAMIC TABLE v", "three")
    said(world, CREATE, "four")
    with pytest.raises(KeptViewNotFound, match="is a dynamic table"):
        said(world, "DROP MATERIALIZED VIEW v", "five")
    assert "successfully dropped" in said(world, "DROP DYNAMIC TABLE v", "two").status


def test_a_refresh_is_that_of_its_run_and_a_suspended_view_refuses_it(world: ViewWorld) -> None:
    said(world, CREATE, "one")
    world.source.append()
    refresh = "ALTER DYNAMIC TABLE v REFRESH"
    assert said(world, refresh, "two").status.startswith("v refreshed (")
    jobs = len(world.drivers)
    world.source.append()
    assert said(world, refresh, "two").refreshed[-1].state.value == "done"  # what its run did before
    assert len(world.drivers) == jobs
    said(world, "ALTER DYNAMIC TABLE v SUSPEND", "three")
    said(world, "ALTER DYNAMIC TABLE v SUSPEND", "three")
    with pytest.raises(KeptViewSuspended):
        said(world, refresh, "four")
    said(world, "ALTER DYNAMIC TABLE v RESUME", "five")
    assert said(world, refresh, "four").refreshed[-1].rows == 1
    said(world, "ALTER DYNAMIC TABLE v SET TARGET_LAG = DOWNSTREAM COMMENT = 'x'", "six")
    view = world.stored("v")
    assert (view.target_lag is not None and view.target_lag.at_most, view.comment) == (None, "x")
    assert said(world, "ALTER DYNAMIC TABLE IF EXISTS w REFRESH", "six").refreshed == ()


def test_a_cleared_run_refreshes_the_view_that_has_taken_the_place_of_its_own(world: ViewWorld) -> None:
    world.source.append()
    for _ in ("run", "clear"):  # as an operator that replaces the view at every run
        assert [one.state.value for one in said(world, REPLACE, "one", once=False).refreshed] == ["done"]
        assert world.rows("v") == {("0", 1): 1}
    refresh = "ALTER DYNAMIC TABLE v REFRESH"
    world.source.append()
    assert said(world, refresh, "two").refreshed[-1].state.value == "done"
    said(world, REPLACE, "three")
    assert said(world, refresh, "two").refreshed[-1].state.value == "unchanged"
    world.source.append()
    assert said(world, refresh, "two").refreshed[-1].state.value == "unchanged"  # what it did for this view


def test_a_lag_is_that_of_a_dynamic_table(world: ViewWorld) -> None:
    said(world, "CREATE MATERIALIZED VIEW v AS SELECT 1", "one")
    with pytest.raises((InvalidArgument, KeptViewNotFound)):
        said(world, "ALTER DYNAMIC TABLE v SET TARGET_LAG = '1 minute'", "two")
