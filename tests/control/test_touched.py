"""The tasks that touched objects: the last of each object, and all objects of a run or of one task."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.airflow.historic import CAPTURE, HIDDEN, Historic, copy_rows
from tests.airflow.monitored import DAG
from tests.airflow.needing import BY
from tests.control.change_stream_model import ChangeStreamWorld, segment
from tests.control.conftest import IN_TURN
from tests.control.kept_objects import drifted
from tests.postgresql import PostgresServer
from tidemark.change_streams.store.touched import group_runs
from tidemark.change_streams.worker.groups import create_group
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, chunk_written, commit_wave, plan_wave
from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.object_list import ObjectsWish, ShownObject, find, show_all
from tidemark.control.run_keys import RunPart
from tidemark.control.run_parts import touched_by
from tidemark.control.store import ControlStore
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker.definitions import create_pipe, get_pipe, note_pipe_run

LAST = {
    "stream order_changes": f"{DAG}/manual__open/deliver_order_changes/-1",  # its window is open
    "stream payments": f"{DAG}/payments__11/deliver_payments/-1",
    "stream customers": None,
    "change_stream s": CAPTURE,
    "consumer_group s/mirror": f"{DAG}/wave__1/read/0",
    "replication shop": f"{DAG}/scheduled__2026-11-22/capture/-1",
    "replication crm": f"{DAG}/scheduled__2026-11-22/prepare/-1",  # it has moved, and captured nothing
    "replicated_table shop/shop.orders": f"{DAG}/scheduled__2026-11-22/backfill/-1",
    "landing_table shop.landing": BY,
    "pipe shop.bad_files": BY,
    "pipe shop.good_files": HIDDEN,
    "pipe shop.orders_pipe": None,
    "search_optimization shop.orders": BY,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Historic:
    return Historic(tmp_path_factory.mktemp("historic"))


@pytest.fixture(scope="module", params=IN_TURN)
def store(world: Historic, request: pytest.FixtureRequest) -> Iterator[ControlStore]:
    """The same rows in each database."""
    if request.param == "sqlite":
        yield world.store
        return
    server: PostgresServer = request.getfixturevalue("postgresql")
    database = server.new_database(template=request.getfixturevalue("migrated_database"))
    copied = ControlStore(server.url(database), keep_connections=True)
    copy_rows(world.store, copied)
    yield copied
    copied.close()


@pytest.fixture(scope="module")
def every(store: ControlStore, world: Historic) -> dict[str, ShownObject]:
    found = store.read(lambda c: show_all(c, ObjectsWish(), now=world.now))
    return {f"{one.kind} {one.name}": one for one in found}


def last_runs(store: ControlStore, *found: ShownObject) -> dict[str, str]:
    return store.read(
        lambda c: {
            uid: run
            for kind in sorted({one.kind for one in found})
            for uid, run in kind_named(kind).last_runs_of(c, [one.uid for one in found if one.kind == kind]).items()
        }
    )


def touched(store: ControlStore, *part: str, map_index: int | None = None) -> dict[str, tuple[str, str | None]]:
    found = store.read(
        lambda c: touched_by(c, RunPart(*part, **({} if map_index is None else {"map_index": map_index})))
    )
    return {kind: (touch.did, touch.why) for (kind, _), touch in found.items()}


def test_the_task_that_touched_each_object_last_is_known(store: ControlStore, every: dict[str, ShownObject]) -> None:
    assert {kind for kind in KINDS if kind_named(kind).last_runs is None} == set()
    found = last_runs(store, *every.values())
    assert {name: found.get(every[name].uid) for name in LAST} == LAST


def test_a_run_has_touched_the_objects_of_every_kind_that_it_worked_on(store: ControlStore) -> None:
    assert touched(store, DAG, "hourly__1") == {"change_stream": ("4 batches up to number 3, 110 rows", None)}
    found = touched(store, DAG, "scheduled__1", "load")
    assert found["landing_table"] == ("1,200 rows ingested, 3 did not fit", None)
    assert found["search_optimization"] == ("upkeep: 6 files indexed, 600 rows", None)
    assert found["pipe"] == ("run, no file loaded", "a file was skipped")
    assert touched(store, DAG, "scheduled__2026-11-22", "capture")["replication"][0].endswith("2 events captured")
    assert touched(store, DAG, "hourly__", "capture") == touched(store, "%", "hourly__1") == {}


@pytest.fixture
def changes(copied_store: ControlStore, tmp_path: Path) -> ChangeStreamWorld:
    world = ChangeStreamWorld(copied_store, tmp_path, run="hourly/r1/capture/-1")
    create_group(copied_store, "s", "g", "earliest")
    return world


def one(store: ControlStore, kind: str, name: str) -> ShownObject:
    return store.read(lambda c: find(c, kind, name, now=store.clock()))


def test_a_capture_that_found_nothing_is_the_last_one_of_its_change_stream(changes: ChangeStreamWorld) -> None:
    store = changes.store
    left, _ = changes.active()
    changes.batch(segment(left.token, changes.clock.now + timedelta(seconds=1), 7))
    assert touched(store, "hourly", "r1", "capture") == {"change_stream": ("batch 0 captured, 7 rows", None)}
    changes.clock.go()
    assert changes.opened(run="hourly/r2/capture/-1") is None
    stream = one(store, "change_stream", "s")
    assert (stream.owner_dag, last_runs(store, stream)) == ("hourly", {stream.uid: "hourly/r2/capture/-1"})
    assert touched(store, "hourly", "r2") == {"change_stream": ("capture", "no watched table had a change")}
    changes.clock.go()
    assert changes.opened(run=None) is None  # in a notebook
    assert last_runs(store, stream) == {stream.uid: "hourly/r2/capture/-1"}
    assert drifted(store) == []


def test_a_batch_is_that_of_the_task_that_captured_it(changes: ChangeStreamWorld) -> None:
    """Also if another task has written it ahead, and was killed."""
    changes.table.commit(changes.clock.go())
    changes.clock.go()
    batch = changes.opened(run="hourly/r1/capture/-1")
    assert touched(changes.store, "hourly", "r1") == {"change_stream": ("batch 0 open", None)}
    changes.run = "hourly/r2/capture/-1"
    changes.close(batch)
    assert touched(changes.store, "hourly", "r1") == {}
    assert touched(changes.store, "hourly", "r2") == {"change_stream": ("batch 0 captured, 0 rows", None)}


def test_a_group_has_the_task_that_read_last_and_a_failure_the_task_that_met_it(changes: ChangeStreamWorld) -> None:
    """The DAG run alone, by which a wave is known, leads to no log."""
    store, run = changes.store, "mirror/r1"
    left, right = changes.active()
    at = changes.clock.now + timedelta(seconds=1)
    changes.batch(segment(left.token, at, 7), segment(right.token, at, 8))
    planned = plan_wave(store, "s", "g", run=run, max_chunks=9, max_rows=100).chunks
    assert one(store, "consumer_group", "s/g").owner_dag is None
    for number, chunk in enumerate(planned):
        begin_chunks(store, [chunk], run, task=f"{run}/read/{number}")
    group = one(store, "consumer_group", "s/g")
    assert (group.owner_dag, last_runs(store, group)[group.uid][:-1]) == ("mirror", f"{run}/read/")
    chunk_written(store, planned[0], 7, {})
    chunk_failed(store, planned[1], run, "no room", task=f"{run}/read/1")
    failing = one(store, "consumer_group", "s/g")
    assert (failing.state, failing.problem_dags) == ("failing", ("mirror",))
    (entry,) = store.read(lambda c: kind_named("consumer_group").entries(c, [group.uid]))
    assert entry.met_in == (f"{run}/read/1",)
    assert touched(store, "mirror", "r1", "read", map_index=0) == {"consumer_group": ("1 chunk, 7 rows", None)}
    assert touched(store, "mirror", "r1") == {"consumer_group": ("2 chunks, 1 of them not yet written, 7 rows", None)}
    assert touched(store, "mirror", "r") == {}
    commit_wave(store, "s", "g", run=run)
    begin_chunks(store, [planned[1]], "mirror/r2", task="mirror/r2/read/0")
    chunk_written(store, planned[1], 8, {})
    commit_wave(store, "s", "g", run="mirror/r2")
    assert last_runs(store, group) == {group.uid: "mirror/r2/read/0"}
    assert one(store, "consumer_group", "s/g").state == "running"
    assert drifted(store) == []


def test_the_last_task_of_a_group_is_found_by_an_index(tmp_path: Path) -> None:
    """A group may have years of chunks."""
    store = ControlStore(f"sqlite:///{tmp_path}/control.db")
    asked: list[tuple[str, Any]] = []
    store.migrate()

    def note(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
        asked.append((statement, given))

    sa.event.listen(store._engine, "before_cursor_execute", note)
    store.read(lambda c: group_runs(c, ["a group"]))
    (query,) = (one for one in asked if "tidemark_chunk" in one[0])
    plan = store.read(lambda c: c.exec_driver_sql(f"EXPLAIN QUERY PLAN {query[0]}", query[1]).mappings().all())
    by_index = "USING INDEX ix_tidemark_chunk_group_committed_at (group_uid=? AND committed_at"
    assert [by_index in row["detail"] for row in plan if "tidemark_chunk" in row["detail"]] == [True, True]


def test_of_runs_of_a_pipe_without_files_the_last_is_known(copied_store: ControlStore) -> None:
    create_pipe(copied_store, "p", "COPY INTO t FROM @s", queue=queue_path("/lake", "p"), by="load/r0/create/-1")
    uid = get_pipe(copied_store, "p").uid
    for number, figures in enumerate((None, {"files_loaded": 2, "files_with_errors": 1, "rows": 30}, None)):
        by, at = f"load/r{number}/run/-1", copied_store.clock()
        note_pipe_run(copied_store, uid, None, None, at, by=by, figures=figures, took_files=figures is not None)
    assert last_runs(copied_store, one(copied_store, "pipe", "p")) == {uid: "load/r2/run/-1"}
    assert [touched(copied_store, "load", f"r{number}") for number in range(3)] == [
        {},
        {"pipe": ("2 files loaded, 30 rows; 1 with errors", None)},
        {"pipe": ("run, no file loaded", None)},
    ]
