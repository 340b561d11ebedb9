"""Tabs of runs and tasks have objects of every kind that these worked on, by route and command."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.airflow.command_line import run_airflow
from tests.airflow.historic import Historic
from tests.airflow.monitor_app import Caller, another_app
from tests.airflow.monitored import DAG

pytestmark = pytest.mark.airflow

RUN = "/api/v1/run"
OVERVIEW = "/api/v1/overview"
FIRST = {"run_id": "scheduled__1", "task_id": "load"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Historic:
    return Historic(tmp_path_factory.mktemp("historic"))


@pytest.fixture
def ask(airflow_home: Path, app: FastAPI, world: Historic, use: Callable[[str], None]) -> Caller:
    use(world.url)
    return Caller(another_app())


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ({"run_id": "hourly__1"}, {("change_stream", "s", "4 batches up to number 3, 110 rows", None)}),
        (
            FIRST,
            {
                ("landing_table", "shop.landing", "1,200 rows ingested, 3 did not fit", None),
                ("pipe", "shop.bad_files", "run, no file loaded", "a file was skipped"),
                ("search_optimization", "shop.orders", "upkeep: 6 files indexed, 600 rows", None),
            },
        ),
        (
            {"run_id": "scheduled__2026-11-22", "task_id": "capture"},
            {("replication", "shop", "2 events captured", None)},
        ),
        ({"run_id": "hourly__1", "task_id": "captur"}, set()),
    ],
)
def test_a_tab_has_what_the_tasks_worked_on(ask: Caller, part: dict[str, str], wanted: set[tuple[Any, ...]]) -> None:
    by_route = ask(RUN, dag_id=DAG, **part).json()["touched"]
    assert {(one["object"]["kind"], one["object"]["name"], one["did"], one["why"]) for one in by_route} == wanted
    said = run_airflow("tidemark", "objects", "run", DAG, *part.values(), "--output", "json")
    ((told),) = json.loads(said.stdout)
    by_command = ast.literal_eval(told["touched"]) if isinstance(told["touched"], str) else told["touched"]
    assert {(one["kind"], one["name"], one["did"], one["why"]) for one in by_command} == wanted


def test_the_tab_of_a_dag_has_its_change_streams_and_landing_tables(ask: Caller) -> None:
    owned = {one["kind"] for one in ask(RUN, dag_id=DAG).json()["owned"]}
    assert {"change_stream", "landing_table", "pipe", "replication", "search_optimization", "stream"} <= owned


def test_the_failure_of_a_group_names_neither_task_nor_error_to_others(ask: Caller) -> None:
    """The task that met it is of a DAG that nobody may read."""
    (group,) = ask(OVERVIEW, kind="consumer_group").json()["needs"]
    assert (group["need"], group["run"]["kind"], group["run_met"], group["log_path"]) == (
        "failed",
        "hidden",
        True,
        None,
    )
    assert "it is secret" not in json.dumps(group)
