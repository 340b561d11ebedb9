"""The example DAG that new files start: each file once into a table, whose stream has a consumer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from tests.airflow.runs import Lake
from tidemark.assets import pipe_files_asset
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.pipes.worker.definitions import create_pipe, get_pipe, pause_pipe, resume_pipe

if TYPE_CHECKING:
    from tests.airflow.runs import Outcome

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
DAGS = Path(__file__).parents[2] / "dags"
DAY = datetime(2026, 6, 1, tzinfo=UTC)
TABLES = {
    "landing.orders": "id BIGINT, customer STRING, amount DECIMAL(12, 2)",
    "landing.order_totals": "customer STRING, orders BIGINT, amount DECIMAL(22, 2)",
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(DAGS))
    return importlib.import_module("load_files")


def test_new_files_are_loaded_once_and_the_consumer_sums_up_their_rows(
    example: ModuleType,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_dag: Callable[..., Outcome],
    warm_spark: Path,
    said: Callable[[], str],
) -> None:
    files = tmp_path / "in"
    files.mkdir()
    monkeypatch.setenv("AIRFLOW_VAR_LANDING", str(files))
    mine = Lake.of_its_own(lake.spark, tmp_path, monkeypatch.setenv, TABLES)
    (files / "a.csv").write_text("id,customer,amount\n1,ann,5.50\n2,bob,1\n")
    (files / "b.csv").write_text("id,customer,amount\n3,ann,4\nx,bob,1\n")
    first = run_dag(example.dag, at=DAY)
    assert [first.task(name) for name in ("create_pipe", "run_pipe")] == ["success"] * 2
    done = first.returned("run_pipe")
    assert (done["rows_loaded"], done["files_with_errors"], done["failed"][0]["first_error_line"]) == (2, 1, 3)
    problem = get_pipe(TidemarkHook().open_store(), example.PIPE).problem or ""
    assert problem.startswith("1 of 2 files have errors. The first one is in file b.csv, line 3")
    assert f"Pipe {example.PIPE} is RUNNING since" in said()
    assert run_dag(example.totals, at=DAY).state == "success"
    assert [(row[0], row[1], str(row[2])) for row in mine.rows("landing.order_totals")] == [
        ("ann", 1, "5.50"), ("bob", 1, "1.00"),
    ]  # fmt: skip

    assert run_dag(example.dag, at=DAY + timedelta(days=1)).task("run_pipe") == "skipped"
    (files / "b.csv").write_text("id,customer,amount\n3,ann,4\n")
    by_hand = run_dag(example.dag, at=DAY + timedelta(days=2), conf={"prefix": "b"})
    assert by_hand.returned("run_pipe")["rows_loaded"] == 1
    again = {"prefix": "", "modified_after": "2020-01-01T00:00:00Z", "list_files": "all"}
    assert run_dag(example.dag, at=DAY + timedelta(days=3), conf=again).returned("run_pipe")["files_loaded"] == 2
    assert len(mine.rows("landing.orders")) == 6


def test_a_pipe_that_is_paused_for_too_long_and_one_that_cannot_load_are_told(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_dag: Callable[..., Outcome],
    said: Callable[[], str],
) -> None:
    """No JVM starts: the pipe is paused, and then its table does not exist."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setattr(example.dag.get_task("run_pipe"), "retries", 0)
    store = TidemarkHook().open_store()
    statement = f"COPY INTO {example.TABLE} FROM '{tmp_path}'"
    create_pipe(store, example.PIPE, statement, queue=f"{tmp_path}/lake/landing/orders_pipe__files", by="a test")
    with monkeypatch.context() as earlier:
        earlier.setattr(store, "clock", lambda: datetime.now(UTC) - timedelta(days=15))
        pause_pipe(store, example.PIPE, by="a test")
    assert run_dag(example.dag, at=DAY).task("run_pipe") == "skipped"
    assert f"Pipe {example.PIPE} is PAUSED since" in said()
    resume_pipe(store, example.PIPE, force=True, by="a test")
    assert run_dag(example.dag, at=DAY + timedelta(days=1)).task("run_pipe") == "failed"
    assert f"Pipe {example.PIPE} is STOPPED_MISSING_TABLE since" in said()


def test_the_dag_is_started_by_the_files_of_its_pipe(example: ModuleType) -> None:
    (started_by,) = example.dag.timetable.asset_condition.objects
    assert started_by == pipe_files_asset(example.PIPE)
    assert len(started_by.watchers) == 1
