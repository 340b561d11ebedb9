"""A view follows a base that was renamed or moved. No row is kept twice or lost, and the history continues (R90)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted
from tidemark.errors import RelocationRefused, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.moved import beside, open_registered
from tidemark.materialized.model.definitions import KeptKind, TargetLag
from tidemark.materialized.model.refreshes import Refreshed, RefreshState
from tidemark.materialized.worker.reading import fresh_read
from tidemark.materialized.worker.refresh import refresh_due, refresh_view, refresh_wave
from tidemark.materialized.worker.streams import stream_of_view
from tidemark.materialized.worker.waves import plan_due
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import RefreshHow
from tidemark.model.streams import TableRef
from tidemark.streams.store import streams
from tidemark.streams.worker.following import FOLLOWED_BY
from tidemark.streams.worker.runtime import Runtime

from .drivers import WorkerDied
from .view_world import KeptTable, ViewWorld
from .world import key_of


@pytest.fixture
def world(tmp_path: Path, sqlite_store: str) -> Iterator[ViewWorld]:
    made = ViewWorld(tmp_path, sqlite_store)
    yield made
    assert drifted(made.store) == []
    made.store.close()


def tables(table: TableRef | str) -> DeltaLog:
    return open_registered(table, (beside(),)) if isinstance(table, TableRef) else DeltaLog.open(table)


def following(world: ViewWorld) -> Runtime:
    return replace(world.runtime, tables=tables)


def refresh(world: ViewWorld, name: str, run: str) -> tuple[Refreshed, ...]:
    return refresh_view(following(world), name, key=key_of(run))


def rename(world: ViewWorld, name: str = "renamed", table: KeptTable | None = None) -> str:
    moved = table or world.source
    del world.by_uri[moved.uri]
    moved.path = Path(shutil.move(moved.path, world.root / name))
    moved.log = moved.path / "_delta_log"
    world.by_uri[moved.uri] = moved  # type: ignore[assignment]
    return moved.uri


def all_of(last: int, base: str = "0") -> dict[tuple[str, int], int]:
    return {(base, version): 1 for version in range(1, last + 1)}


def acts(world: ViewWorld, name: str) -> list[tuple[str, str]]:
    uid = stream_of_view(world.store, world.stored(name)).uid
    moves = world.store.read(lambda connection: streams.history(connection, uid))
    return [(move.who, move.why) for move in moves if move.who == FOLLOWED_BY]


def test_R90_a_rename_between_two_refreshes_is_followed_by_all_views_and_only_changes_are_read(
    world: ViewWorld,
) -> None:
    world.view("v", "source")
    world.view("w", "other", "source")
    for name in ("v", "w"):
        world.source.append()
        world.refresh(name, "one" + name)
    old = world.source.uri
    new = rename(world)
    world.source.append()
    (done,) = refresh(world, "v", "two")
    assert (done.state, done.how) == (RefreshState.DONE, RefreshHow.CHANGES)
    assert world.rows("v") == all_of(3)
    assert acts(world, "v") == acts(world, "w") == [(FOLLOWED_BY, f"relocated from source ({old})")]
    for name in ("v", "w"):
        view = world.stored(name)
        assert old not in str(view.shape)
        assert old not in view.columns_read
        assert new in view.columns_read
        assert new in [base.table.path for base in stream_of_view(world.store, view).bases]
    (after,) = refresh(world, "w", "three")
    assert after.how is RefreshHow.CHANGES
    assert world.rows("w") == all_of(3, "1")
    world.source.append()
    assert refresh(world, "v", "four")[0].how is RefreshHow.CHANGES
    assert world.rows("v") == all_of(4)


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("run", ["two", "three"])
def test_R90_a_refresh_that_was_open_during_the_rename_is_in_the_table_once(
    world: ViewWorld, run: str, written: bool
) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    world.source.append()

    def die(spec: JobSpec) -> JobResult:
        driver = world.driver(spec)
        if written:
            driver.run()
        world.clock.now = max(world.clock.now, spec.deadline)  # the driver is gone by then
        raise WorkerDied

    with pytest.raises(WorkerDied):
        refresh_view(world.with_job(die), "v", key=key_of("two"))
    rename(world)
    world.source.append()
    refresh(world, "v", run)
    assert world.rows("v") == all_of(2 if run == "two" else 3)
    refresh(world, "v", "four")
    assert world.rows("v") == all_of(3)


def test_R90_a_rename_within_a_wave_leaves_its_point_in_time(world: ViewWorld) -> None:
    world.view("v", "source", lag=TargetLag())
    world.view("m", "v", kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    refresh_due(following(world), key=key_of("one"))
    world.source.append()
    wave = plan_due(world.store, tables, str(key_of("two")))
    rename(world)
    world.source.append()
    refresh_wave(following(world), wave, key=key_of("two"))
    assert world.rows("v") == all_of(2)
    refresh_due(following(world), key=key_of("three"))
    assert world.rows("v") == all_of(3)


def test_R90_a_wave_that_is_planned_after_the_rename_pins_the_table_at_its_place(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    new = rename(world)
    world.source.append()
    world.view("reader", "v", kind=KeptKind.MATERIALIZED_VIEW)
    wave = plan_due(world.store, tables, str(key_of("two")))
    world.source.append()
    refresh_wave(following(world), wave, key=key_of("two"))
    assert world.rows("v") == all_of(2)
    assert world.last("v").ends == {new: 2}


def test_R90_a_read_of_the_newest_rows_follows_the_base(world: ViewWorld) -> None:
    world.view("m", "source", kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    world.refresh("m", "one")
    new = rename(world)
    world.source.append()
    read = fresh_read(world.store, "m", tables)
    (base,) = read.window.bases
    assert (base.table.path, base.start, base.end) == (new, 1, 2)
    assert len(acts(world, "m")) == 1
    fresh_read(world.store, "m", tables)
    assert len(acts(world, "m")) == 1


def test_a_view_over_a_view_of_a_catalog_that_names_the_old_table_is_refused_with_its_name(world: ViewWorld) -> None:
    world.shaped = lambda query: ViewWorld.shaped(replace(query, views={"spark_catalog.shop.v": "digest"}))  # type: ignore[method-assign]
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    rename(world)
    with pytest.raises(
        RelocationRefused, match=r"'v' .*it reads the view spark_catalog\.shop\.v.*create the view again"
    ):
        refresh(world, "v", "two")
    assert acts(world, "v") == []


def test_a_copy_that_is_older_than_the_last_refresh_is_not_followed(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    shutil.copytree(world.source.path, world.root / "backup")
    world.source.append()
    world.refresh("v", "one")
    shutil.rmtree(world.source.path)
    with pytest.raises(RelocationRefused, match="only up to version 1, and version 2 is needed"):
        refresh(world, "v", "two")
    assert world.rows("v") == all_of(2)


def test_two_copies_of_a_base_are_not_chosen_between(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    rename(world)
    shutil.copytree(world.source.path, world.root / "copied")
    with pytest.raises(TableNotFound):
        refresh(world, "v", "two")
    assert acts(world, "v") == []
