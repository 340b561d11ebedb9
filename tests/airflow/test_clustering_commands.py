"""`airflow tidemark clustering …` and AutoClusterOperator on tables within their goal: all without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow.command_line import Said, run_airflow
from tests.unit.lake.delta_directories import add, commit, singers
from tidemark.clustering.worker.tables import list_clustered
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.operators.auto_cluster import AutoClusterOperator

pytestmark = pytest.mark.airflow

_COLUMNS = json.dumps({"clusteringColumns": [["SingerId"]], "domainName": "delta.clustering"})
KEY = {"domainMetadata": {"domain": "delta.clustering", "configuration": _COLUMNS, "removed": False}}


@pytest.fixture
def store(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_store: str) -> ControlStore:
    """The table `shop.singers` with the key SingerId, two files that overlap, and one without statistics."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", sqlite_store)
    table = singers(tmp_path / "lake", "shop.singers")
    commit(table, 1, KEY, add("a", **_stats(1, 5)), add("b", **_stats(5, 9)), add("c"))
    return ControlStore(sqlite_store)


def _stats(low: int, high: int) -> dict[str, str]:
    ends = {"minValues": {"SingerId": low}, "maxValues": {"SingerId": high}}
    return {"stats": json.dumps({"numRecords": 2, "nullCount": {"SingerId": 0}, **ends})}


def of_run() -> Any:
    """The context of a task."""
    return {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1)}


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", *arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = tidemark("clustering", *arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def test_a_table_is_described_from_its_log(store: ControlStore) -> None:
    (found,) = rows("info", "shop.singers")
    assert found["cluster_by_keys"] == "LINEAR(SingerId)"
    assert [str(found[name]) for name in ("total_partition_count", "average_depth")] == ["3", "2.0"]
    assert "1 files have no statistics of SingerId" in found["notes"]
    refused = tidemark("clustering", "info", "shop.singers", "--columns", "Age")
    assert refused.returncode == 1
    assert "ClusteringKeyRefused: shop.singers cannot be clustered by Age" in refused.stderr
    assert "It has SingerId, FirstName, LastName." in refused.stderr


def test_tables_are_listed_suspended_and_resumed(store: ControlStore) -> None:
    assert rows("list") == []
    (row,) = rows("suspend", "shop.singers")
    assert (row["act"], row["state"], row["done"]) == ("suspend", "suspended", "True")
    (row,) = rows("list")
    assert (row["name"], row["key"], row["state"], row["goal"]) == (
        "shop.singers",
        "LINEAR(SingerId)",
        "suspended",
        "4.0",
    )
    (row,) = rows("resume", "shop.singers")
    assert row["state"] == "new"
    assert list_clustered(store)[0].suspended is None
    assert rows("history", "shop.singers") == []


def test_a_table_within_its_goal_is_left_alone_and_starts_no_spark(store: ControlStore) -> None:
    operator = AutoClusterOperator(task_id="keep", tables="shop.singers", depth=3)
    (done,) = operator.execute(of_run())
    assert (done["how"], done["why"], done["depth_before"]) == (
        "nothing",
        "depth 2 with 1 file without statistics is within 3",
        2.0,
    )
    (kept,) = list_clustered(store)
    assert kept.seen is not None
    assert (kept.seen.version, kept.seen.files, kept.seen.exact) == (1, 2, True)
    plan = AutoClusterOperator(task_id="plan", plan_only=True)
    assert plan.execute(of_run()) == [kept.table.path]


def test_a_plan_has_no_more_entries_than_airflow_maps_over(
    store: ControlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")
    for name in ("shop.one", "shop.two"):
        commit(singers(tmp_path / "lake", name), 1, KEY, add("a", **_stats(1, 5)))
    for name in ("shop.singers", "shop.one", "shop.two"):
        AutoClusterOperator(task_id="keep", tables=name, depth=3).execute(of_run())
    paths = [one.table.path for one in list_clustered(store)]
    groups = AutoClusterOperator(task_id="plan", plan_only=True).execute(of_run())
    assert groups == [paths[:2], paths[2:]]
    assert len(AutoClusterOperator(task_id="keep", tables=groups[0]).execute(of_run())) == 2


@pytest.mark.parametrize(
    "arguments",
    [{"depth": 0.5}, {"depth": "deep"}, {"run_bytes": -1}, {"tables": [""]}, {"cluster_by": 5}, {"plan_only": "maybe"}],
)
def test_wrong_constants_are_import_errors(arguments: dict[str, Any], airflow_home: Path) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(arguments))):
        AutoClusterOperator(task_id="keep", **arguments)
