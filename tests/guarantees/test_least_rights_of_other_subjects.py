"""The rights that the documentation gives to tasks are enough for pipes, views, clustering, search, results, channels,
jobs, acts and pruning, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted
from tests.control.rights import let_prune
from tests.guarantees.view_world import ViewWorld
from tests.unit.lake.delta_directories import born
from tests.unit.search.tables import METADATA
from tidemark.acceleration.model.estimates import JobRun
from tidemark.acceleration.store.runs import keep_run
from tidemark.acceleration.worker.runs import list_runs
from tidemark.channels.planning.records import opened
from tidemark.channels.worker.landing_tables import end_missing_tables, note_landing_table
from tidemark.clustering.model.tables import ClusteredTable, Goal
from tidemark.clustering.store import tables
from tidemark.control.object_acts import Act, ActTools, act_on, newest_acts, offered_now
from tidemark.control.store import ControlStore
from tidemark.materialized.model.definitions import KeptKind, TargetLag
from tidemark.materialized.worker.views import ask_for_refresh, drop_view, list_views, resume_view, suspend_view
from tidemark.model.streams import TableRef
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker import definitions, file_formats, stages
from tidemark.results.model.answers import DEFAULT_RULES, StoredAnswer, Why, WrittenAnswer
from tidemark.results.store import cached_results
from tidemark.search.planning.sql import parse_targets
from tidemark.search.worker.definitions import add_search, drop_search, list_searches
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.pruning import prune

BY = "dag/run/task/-1"
TABLE = TableRef("shop.orders", "file:///lake/shop/orders", "id-1")
MONTHS = timedelta(days=200)


@pytest.fixture
def as_task(postgresql_store: str) -> Iterator[ControlStore]:
    """The table of objects follows all that happens in it."""
    opened = ControlStore(postgresql_store, clock=Clock())
    yield opened
    assert drifted(opened) == []
    opened.close()


def test_stages_formats_and_pipes(as_task: ControlStore) -> None:
    file_formats.create_file_format(as_task, "lines", file_format("CSV"))
    stages.create_stage(as_task, "place", "/files", format_name="lines")
    stages.create_stage(as_task, "place", "/files/more", format_name="lines", or_replace=True)
    for _ in range(2):
        pipe = definitions.create_pipe(
            as_task, "p", "COPY INTO shop.orders FROM @place", queue=queue_path("/lake", "p"), or_replace=True, by=BY
        )
    definitions.pause_pipe(as_task, "p", by=BY)
    definitions.resume_pipe(as_task, "p", by=BY)
    definitions.note_pipe_run(as_task, pipe.uid, "a.csv was skipped", None, as_task.clock(), by=BY)
    definitions.drop_pipe(as_task, "p", by=BY)
    stages.drop_stage(as_task, "place")
    file_formats.drop_file_format(as_task, "lines")
    assert definitions.list_pipes(as_task) == ()


def test_kept_views(postgresql_store: str, tmp_path: Path) -> None:
    world = ViewWorld(tmp_path, postgresql_store)
    world.view("t", "source", lag=TargetLag(timedelta(minutes=1)))
    world.view("m", "t", kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    world.refresh("t")
    world.refresh("m")
    suspend_view(world.store, "t", by=BY)
    resume_view(world.store, "t", by=BY)
    ask_for_refresh(world.store, "t", by=BY)
    world.clock.go(timedelta(minutes=5))
    assert {one.view for one in world.refresh_due("later")} >= {"t"}
    for name in ("m", "t"):
        drop_view(world.store, name, by=BY)
    assert (list_views(world.store), drifted(world.store)) == ((), [])
    world.store.close()


def test_clustered_tables_and_acts_on_them(as_task: ControlStore) -> None:
    made = ClusteredTable(as_task.new_id(), TABLE, ("day",), as_task.clock(), Goal())
    as_task.write(lambda c: tables.register_table(c, made, by=BY))
    as_task.write(lambda c: tables.set_goal(c, made, Goal(depth=4), by=BY))
    as_task.write(lambda c: tables.suspend_table(c, made, why="the night is full", by=BY))
    offered = as_task.read(lambda c: offered_now(c, "clustered_table", made.uid, as_task.clock()))
    act_on(
        as_task, ActTools(open_table), Act("clustered_table", made.uid, "resume", offered.revision, "bob", "it is calm")
    )
    acts = as_task.read(lambda c: newest_acts(c, kind=None, uid=None, limit=9))
    assert [one.act for one in acts] == ["resume"]
    (now,) = as_task.read(tables.live_tables)
    as_task.write(lambda c: tables.end_table(c, now, at=as_task.clock(), by=BY))
    assert as_task.read(tables.live_tables) == ()


def test_search_paths(as_task: ControlStore) -> None:
    for paths in ("EQUALITY(id)", "EQUALITY(id), SUBSTRING(short)"):
        add_search(as_task, TABLE, METADATA, parse_targets(paths), by=BY)
    drop_search(as_task, TABLE.path, TABLE.name, parse_targets("EQUALITY(id)"), by=BY)
    drop_search(as_task, TABLE.path, TABLE.name, (), by=BY)
    assert list_searches(as_task) == ()


def test_results(as_task: ControlStore) -> None:
    now = as_task.clock()
    written = WrittenAnswer("file:///x", (), 0, 0, "{}", "UTC")
    first = StoredAnswer("u", "k", "SELECT 1", "d", (), {}, written, now, now, now + MONTHS, now + MONTHS)
    as_task.write(lambda c: cached_results.keep(c, first))
    as_task.write(lambda c: cached_results.use(c, first, at=now + timedelta(hours=1), rules=DEFAULT_RULES))
    as_task.write(lambda c: cached_results.keep(c, replace(first, uid="v"), replace=True))
    as_task.write(lambda c: cached_results.evict(c, at=now, rules=DEFAULT_RULES))
    as_task.write(lambda c: cached_results.end(c, ["v"], at=now, why=Why.LOST))
    as_task.write(lambda c: cached_results.note_removed(c, ["u", "v"], at=now))
    assert as_task.read(cached_results.live) == ()


def test_landing_tables_and_runs_of_jobs(as_task: ControlStore, tmp_path: Path) -> None:
    born(tmp_path)
    table = TableRef("db.orders", f"file://{tmp_path}", "another table than the one there")
    record = opened(None, table.table_id, by="writer", token="1", now=as_task.clock())
    for channels in ({"A": record}, {}, {"A": record}):
        note_landing_table(as_task, table, channels, by=BY)
    assert end_missing_tables(as_task, open_table) == ("db.orders",)
    run = JobRun("app-1", "shop", "deliver", "r1", "write", as_task.clock())
    assert as_task.write(lambda c: keep_run(c, run))
    assert list_runs(as_task, limit=9) == (run,)


def test_pruning(postgresql_store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = ViewWorld(tmp_path, postgresql_store)
    world.view("v", "source")
    for name in ("one", "two"):
        world.source.append()
        world.refresh("v", name)
        world.clock.go(MONTHS)
    let_prune(world.store, request)
    assert prune(world.store, timedelta(days=90), pause=lambda _: None)["refreshes of views"] == 1
    world.store.close()
