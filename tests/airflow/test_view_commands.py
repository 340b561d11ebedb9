"""`airflow tidemark views …` and ViewLagSensor: views are looked at, suspended, resumed and dropped, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from tests.airflow.command_line import Said, run_airflow
from tests.guarantees.view_world import ViewWorld
from tidemark.errors import InvalidArgument, KeptViewNotFound, KeptViewSuspended, StatementRefused
from tidemark.materialized.model.definitions import TargetLag
from tidemark.materialized.worker.views import get_view, suspend_view
from tidemark.operators.refresh_views import RefreshDueViewsOperator, RefreshViewOperator
from tidemark.operators.views import CreateDynamicTableOperator, CreateMaterializedViewOperator
from tidemark.sensors.views import ViewLagSensor
from tidemark.triggers.views import ViewLagTrigger

pytestmark = pytest.mark.airflow


@pytest.fixture
def world(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_store: str
) -> Iterator[ViewWorld]:
    """The dynamic table `shop.large`, refreshed once, two minutes ago."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", sqlite_store)
    made = ViewWorld(tmp_path, sqlite_store)
    made.clock.now = datetime.now(UTC) - timedelta(minutes=2)
    made.view("shop.large", "source", lag=TargetLag(timedelta(minutes=10)), comment="big")
    made.source.append()
    made.refresh("shop.large")
    yield made
    made.store.close()


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", *arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = tidemark("views", *arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def test_views_are_listed_described_and_have_a_history(world: ViewWorld) -> None:
    (listed,) = rows("list")
    wanted = {"name": "shop.large", "kind": "dynamic_table", "state": "active", "target_lag": "10 minutes"}
    assert {name: listed[name] for name in wanted} == wanted
    assert 120 <= float(listed["lag"]) < 600
    (shown,) = rows("describe", "SHOP.large")
    assert (shown["refresh_mode"], shown["comment"]) == ("incremental", "big")
    assert shown["table"] == world.kept["shop.large"].uri
    (only,) = rows("history", "shop.large")
    assert (only["state"], only["how"], only["why"]) == ("done", "whole", "the first refresh")
    refused = tidemark("views", "describe", "shop.larg")
    assert refused.returncode == 1
    assert "Did you mean 'shop.large'?" in refused.stderr


def test_a_view_is_suspended_resumed_and_dropped_and_a_dry_run_changes_nothing(world: ViewWorld) -> None:
    moved = {"view": "shop.large", "act": "suspend", "before": "active", "after": "suspended"}
    assert rows("suspend", "shop.large", "--dry-run") == [{**moved, "done": "False"}]
    assert world.stored("shop.large").suspended is None
    assert rows("suspend", "shop.large", "--why", "too dear") == [{**moved, "done": "True"}]
    assert world.stored("shop.large").suspended == "too dear"
    assert rows("resume", "shop.large")[0]["after"] == "active"
    assert rows("drop", "shop.large", "--yes")[0]["table"] == world.kept["shop.large"].uri
    assert rows("drop", "shop.large", "--if-exists", "--yes") == []
    with pytest.raises(KeptViewNotFound):
        get_view(world.store, "shop.large")


def test_a_sensor_waits_until_a_view_is_young_enough(world: ViewWorld) -> None:
    young = ViewLagSensor(task_id="young", view="shop.large").poke({})  # type: ignore[arg-type]
    assert young.is_done
    assert young.xcom_value["target_seconds"] == 600.0
    old = ViewLagSensor(task_id="old", view="shop.large", at_most="1 minute", deferrable=True, timeout=60)
    with pytest.raises(TaskDeferred) as deferred:
        old.execute({})  # type: ignore[arg-type]
    trigger = deferred.value.trigger
    assert isinstance(trigger, ViewLagTrigger)
    path, arguments = trigger.serialize()
    assert (path, arguments["at_most"]) == ("tidemark.triggers.views.ViewLagTrigger", 60.0)
    suspend_view(world.store, "shop.large", by="ann")
    with pytest.raises(KeptViewSuspended):
        old.poke({})  # type: ignore[arg-type]


def test_constants_of_operators_are_checked_when_the_file_is_parsed() -> None:
    query = "SELECT 1"
    with pytest.raises(InvalidArgument, match="a target lag is"):
        CreateDynamicTableOperator(task_id="t", view="v", query=query, target_lag="soon")
    with pytest.raises(InvalidArgument, match="one of auto, full, incremental"):
        CreateMaterializedViewOperator(task_id="t", view="v", query=query, refresh_mode="lazy")
    with pytest.raises((InvalidArgument, StatementRefused)):
        CreateMaterializedViewOperator(task_id="t", view="v", query="DELETE FROM t")
    with pytest.raises(InvalidArgument, match="plan_only has returned"):
        RefreshDueViewsOperator(task_id="t", level={"level": 1})
    for name in ("", "spark_catalog.shop.v"):
        with pytest.raises(InvalidArgument):
            RefreshViewOperator(task_id="t", view=name)
    with pytest.raises(InvalidArgument, match="in no catalog"):
        CreateMaterializedViewOperator(task_id="t", view="spark_catalog.shop.v", query=query)
    operator = RefreshViewOperator(task_id="t", view="shop.v")
    assert [outlet.uri for outlet in operator.outlets] == ["x-tidemark://views/shop.v"]
