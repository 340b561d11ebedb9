"""The example DAG over real flights: backfill, capture, partitions in parallel, in a Spark as users have it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.partition_invariants import require_invariants

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tests.airflow.conftest import Lake, Outcome
    from tidemark.hooks.tidemark import TidemarkHook

DAGS = Path(__file__).parents[2] / "dags"
FOUR_HOURS = {"days": 4 / 24}

pytestmark = [pytest.mark.airflow]


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> DAG:
    """The DAG as its file has it."""
    monkeypatch.syspath_prepend(str(DAGS))
    found: DAG = importlib.import_module("change_stream_fan_out").dag
    return found


def rows(lake: Lake, table: str, version: int | None = None) -> list[tuple[object, ...]]:
    reader = lake.spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return sorted((tuple(row) for row in reader.load(str(lake.root / "nyc" / table)).collect()), key=str)


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.timeout(1500)
def test_the_mirror_is_the_board_as_it_was_captured(
    dag: DAG, lake: Lake, run_dag: Callable[..., Outcome], hook: TidemarkHook, users_spark: str
) -> None:
    from tidemark.change_streams.worker.definitions import get_change_stream

    run = run_dag(dag, at=datetime(2026, 12, 1, tzinfo=UTC), conf=FOUR_HOURS)
    assert run.state == "success"
    require_invariants(hook.open_store(), "board_records")
    assert run.returned("backfill")["found"] is False
    assert run.returned("deliver.capture")["rows"] > 0
    (watched,) = get_change_stream(hook.open_store(), "board_records").tables
    assert watched.captured > run.returned("backfill")["version"]
    assert rows(lake, "board_in_parallel") == rows(lake, "board", watched.captured)
