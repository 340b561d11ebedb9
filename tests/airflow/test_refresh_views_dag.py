"""The DAG `refresh_views`: it plans the views that are due, and maps over their levels."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.runs import Outcome
from tests.guarantees.view_world import ViewWorld
from tidemark.materialized.model.definitions import TargetLag
from tidemark.materialized.worker.views import suspend_view

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
DAGS = Path(__file__).parents[2] / "dags"
FIRST = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def module(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DAGS))
    return importlib.import_module("refresh_views")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_store: str) -> Iterator[ViewWorld]:
    """Three dynamic tables that read each other, refreshed two minutes ago; the last one may be a minute old."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", sqlite_store)
    made = ViewWorld(tmp_path, sqlite_store)
    made.clock.now = datetime.now(UTC) - timedelta(minutes=2)
    made.view("shop.first", "source")
    made.view("shop.second", "shop.first")
    made.view("shop.third", "shop.second", "source", lag=TargetLag(timedelta(minutes=1)))
    made.source.append()
    made.refresh("shop.third")
    yield made
    made.store.close()


def test_levels_are_refreshed_one_after_the_other_as_of_one_point(
    run_dag: RunDag, module: Any, world: ViewWorld
) -> None:
    world.source.optimize()  # nothing that a job would be needed for
    outcome = run_dag(module.dag, at=FIRST)
    assert outcome.state == "success"
    levels = outcome.returned("plan")
    assert [level["views"] for level in levels] == [["shop.first"], ["shop.second"], ["shop.third"]]
    points = {world.stored(level["views"][0]).fresh_at for level in levels}
    assert points == {datetime.fromisoformat(levels[0]["as_of"])}
    assert world.last("shop.third").run == levels[0]["wave"]
    assert len(world.drivers) == 3  # those of the first refresh


def test_nothing_that_is_due_means_no_task(run_dag: RunDag, module: Any, world: ViewWorld) -> None:
    suspend_view(world.store, "shop.first", by="ann")
    outcome = run_dag(module.dag, at=FIRST + timedelta(minutes=1))
    assert outcome.state == "success"
    assert outcome.returned("plan") == []
