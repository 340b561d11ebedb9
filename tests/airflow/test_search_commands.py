"""`airflow tidemark search …`, and the DAG that keeps search paths: looked at without Spark."""

from __future__ import annotations

import importlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import run_airflow
from tests.control.test_searches import TABLE, added, commit, note
from tests.unit.search.tables import METADATA
from tidemark.control.store import ControlStore
from tidemark.hooks.search import searched_tables_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import Addressing, TableRef
from tidemark.search.planning.sql import parse_targets
from tidemark.search.store import searches
from tidemark.search.worker.definitions import add_search

pytestmark = pytest.mark.airflow
DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture
def store(airflow_home: Path, monkeypatch: pytest.MonkeyPatch, sqlite_store: str) -> ControlStore:
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", "/lake")
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", sqlite_store)
    return ControlStore(sqlite_store)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = run_airflow("tidemark", "search", *arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def test_tables_are_listed_with_the_commits_of_their_upkeep(store: ControlStore) -> None:
    search = added(store, "EQUALITY(id), ORDER(n)")
    store.write(lambda connection: searches.keep_commits(connection, search, [commit(search, 1)], run="r"))
    assert note(store, search, base=5)
    (listed,) = rows("list")
    wanted = {"table": TABLE.name, "paths": "EQUALITY(id), ORDER(n)", "version": "5", "files": "3", "bytes": "2400"}
    assert {name: str(listed[name]) for name in wanted} == wanted
    (shown,) = rows("show", "shop.orders")
    assert {name: str(shown[name]) for name in ("files", "rows", "seconds", "rebuilt")} == {
        "files": "3",
        "rows": "300",
        "seconds": "10.0",
        "rebuilt": "True",
    }
    refused = run_airflow("tidemark", "search", "show", "shop.others")
    assert (refused.returncode, "has no search optimization" in refused.stderr) == (1, True)


def test_a_run_takes_the_tables_longest_without_upkeep_if_they_are_too_many(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")
    first = added(store)
    other = TableRef("shop.zones", "file:///lake/shop/zones", "id-2", Addressing.LAKE)
    add_search(store, other, METADATA, parse_targets("EQUALITY(id)"), by="dag/run/add/-1")
    assert searched_tables_of(TidemarkHook()) == [TABLE.name]
    searches_now = datetime.now(UTC) + timedelta(minutes=1)
    store.write(
        lambda connection: searches.note_problem(connection, first, problem="p", at=searches_now, by="dag/run/keep/-1")
    )
    assert searched_tables_of(TidemarkHook()) == [other.name]


def test_the_dag_maps_over_the_tables_with_search_paths(store: ControlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    added(store)
    assert searched_tables_of(TidemarkHook()) == [TABLE.name]
    monkeypatch.syspath_prepend(str(DAGS))
    dag = importlib.import_module("keep_search_paths").dag
    assert sorted(dag.task_ids) == ["keep", "tables_with_search_paths"]
    assert dag.get_task("keep").upstream_task_ids == {"tables_with_search_paths"}
