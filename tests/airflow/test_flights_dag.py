"""The main DAG on real flights, run twice by Airflow's own task runner, in a Spark as users have it."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow.conftest import Lake, Outcome

DAGS = Path(__file__).parents[2] / "dags"
ACTION = "METADATA$ACTION"
TWO_HOURS = {"days": 2 / 24}

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e, pytest.mark.timeout(1500)]


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> DAG:
    """The DAG as its file has it."""
    monkeypatch.syspath_prepend(str(DAGS))
    found: DAG = importlib.import_module("flights_stream").dag
    return found


def counted(lake: Lake, table: str, version: int | None = None) -> Counter[tuple[Any, ...]]:
    """The rows of a table as a multiset; a history counts INSERT +1 and DELETE −1."""
    reader = lake.spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    frame = reader.load(str(lake.root / "nyc" / table))
    columns = [name for name in frame.columns if not name.startswith("METADATA$")]
    total: Counter[tuple[Any, ...]] = Counter()
    for row in frame.collect():
        sign = -1 if ACTION in frame.columns and row[ACTION] == "DELETE" else 1
        total[tuple(row[name] for name in columns)] += sign
    return Counter({row: count for row, count in total.items() if count})


def test_two_runs_deliver_every_change_of_the_board_once(
    dag: DAG, lake: Lake, run_dag: Callable[..., Outcome], users_spark: str
) -> None:
    first = run_dag(dag, at=datetime(2026, 11, 1, tzinfo=UTC), conf=TWO_HOURS)
    assert first.state == "success"
    begun = first.returned("deliver.commit")
    assert counted(lake, "board_mirror") == counted(lake, "board", begun["to"])

    second = run_dag(dag, at=datetime(2026, 11, 2, tzinfo=UTC), conf=TWO_HOURS)
    assert second.state == "success"
    replayed = [run.returned("replay") for run in (first, second)]
    assert replayed[1]["since"] == replayed[0]["until"]  # the replay goes on where it stopped
    went_on = second.returned("deliver.commit")
    assert (went_on["from"], went_on["initial_rows"]) == (begun["to"], False)
    assert went_on["to"] > begun["to"]
    source = counted(lake, "board", went_on["to"])
    assert counted(lake, "board_mirror") == source
    assert counted(lake, "board_history") == source
    assert {event["to"] for event in second.events("board_changes")} == {went_on["to"]}
