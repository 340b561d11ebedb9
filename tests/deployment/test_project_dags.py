"""The project's own DAGs in a whole Airflow: a stream that was left alone, and a run for each partition."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.deployment.airflow_deployment import Deployment, running_airflow, wait_for
from tests.deployment.continuous_board import CAPTURE, READER, Board, ReaderRun, committed
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.postgresql import PostgresServer
from tests.tiers import nightly
from tests.warm_spark import hand_over, put_in_place, serving
from tidemark.control.store import ControlStore
from tidemark.model.streams import Stream, StreamMode, TableRef
from tidemark.streams.worker.streams import create_stream, get_stream, stream_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.e2e, pytest.mark.timeout(900)]
DAGS = Path(__file__).parents[2] / "dags"
AS_A_PERSON_WOULD = 6  # an answer in the very second in which the task was parked makes the scheduler take it for lost
WATCH, ASK = "watch_stale_streams", "recreate_stale_stream"


@pytest.fixture(scope="module")
def deployment(postgresql: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """With the project's own DAGs, whose jobs are laid into `queue`."""
    home = tmp_path_factory.mktemp("project")
    (home / "queue").mkdir()
    put_in_place(home / "bin" / "spark-submit", home / "submitted", hand_over(home / "queue"))
    environment = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "TIDEMARK_LAKE_ROOT": str(home / "lake"),
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    urls = (postgresql.url(postgresql.new_database()) for _ in range(2))
    with running_airflow(home, *urls, environment) as running:
        yield running


@nightly("a whole Airflow of its own, in which a person decides")
def test_a_stream_left_alone_goes_through_alarm_decision_and_re_base(deployment: Deployment) -> None:
    table = SyntheticTable(deployment.home / "lake/shop/orders")
    for _ in range(3):
        table.append()
    left_alone = ControlStore(deployment.store_url, clock=lambda: datetime.now(UTC) - timedelta(days=6))
    source = TableRef("shop.orders", table.uri, table.table_id)
    create_stream(left_alone, name="orders", source=source, mode=StreamMode.STANDARD, at_version=1, who="ana")
    for dag_id in (WATCH, ASK):
        deployment.unpause(dag_id)

    assert told(deployment) == ["orders"]  # a day before it may be stale
    table.replace()
    assert told(deployment) == ["orders"]
    before = stream(deployment)

    assert decide(deployment, "Reject") == ("success", "skipped")
    assert stream(deployment) == before
    assert decide(deployment, "Approve") == ("success", "success")
    after = stream(deployment)
    assert (after.source.table_id, after.offset.version, after.initial_rows_pending) == (table.table_id, 4, True)
    assert after.uid != before.uid
    (created, moved) = stream_history(ControlStore(deployment.store_url), "orders")
    assert (created.why, moved.from_version, moved.to_version) == ("created", 1, 4)
    assert f"from table {before.source.table_id} at version 1" in moved.why
    assert "approved by" in moved.why

    assert told(deployment) is None
    run = deployment.trigger(ASK, stream="orders")
    assert deployment.finish(ASK, run) == "success"
    assert deployment.task_state(ASK, run, "approve") == "skipped"


def told(deployment: Deployment) -> list[str] | None:
    """Whom a run of the watch tells of."""
    run = deployment.trigger(WATCH)
    assert deployment.finish(WATCH, run) == "success", deployment.logs()
    if deployment.task_state(WATCH, run, "alert") == "skipped":
        return None
    return list(
        deployment.api("GET", f"dags/{WATCH}/dagRuns/{run}/taskInstances/alert/xcomEntries/return_value")["value"]
    )


def decide(deployment: Deployment, choice: str) -> tuple[str, str]:
    """The states in which the run and its re-base end, after a person has chosen."""
    run = deployment.trigger(ASK, stream="orders", show_initial_rows=True)
    wait_for(lambda: deployment.task_state(ASK, run, "approve") == "awaiting_input", 120, deployment.logs)
    place = f"dags/{ASK}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
    asked: dict[str, Any] = deployment.api("GET", place)
    assert "orders" in asked["subject"]
    assert "recreate the stream" in asked["body"]
    assert "every change behind version 1 of shop.orders" in asked["body"]
    time.sleep(AS_A_PERSON_WOULD)
    deployment.api("PATCH", place, {"chosen_options": [choice], "params_input": {}})
    return deployment.finish(ASK, run), deployment.task_state(ASK, run, "rebase")


def stream(deployment: Deployment) -> Stream:
    return get_stream(ControlStore(deployment.store_url), "orders")


@pytest.fixture
def board(deployment: Deployment, spark: SparkSession) -> Iterator[Board]:
    """Open, and Spark for the tasks."""
    board = Board(spark, deployment)
    with serving(spark, deployment.home / "queue"):
        board.open()
        yield board


@nightly("a run of a whole Airflow for each partition")
@pytest.mark.spark
def test_each_partition_is_read_by_runs_of_its_own_and_wakes_its_children(deployment: Deployment, board: Board) -> None:
    board.change("INSERT INTO {t} SELECT id, 0, 'first' FROM range(100, 110)")
    for dag_id in (READER, CAPTURE):
        deployment.unpause(dag_id)
    wait_for(lambda: bool(deployment.runs(CAPTURE)), 120, deployment.logs)
    (scheduled,) = deployment.runs(CAPTURE)
    assert deployment.finish(CAPTURE, scheduled["dag_run_id"]) == "success", deployment.logs()
    (root,) = board.check().partitions
    board.split()
    board.change("UPDATE {t} SET status = 'changed' WHERE id % 2 = 0", "DELETE FROM {t} WHERE id % 7 = 0")
    by_hand = deployment.trigger(CAPTURE)
    assert deployment.finish(CAPTURE, by_hand) == "success", deployment.logs()

    partitions = board.check().partitions
    children = {token for token, one in partitions.items() if root in one.parents}
    assert len(children) == 2
    wait_for(lambda: is_read(board.readers(), children), 180, deployment.logs)
    now, runs = board.check(), board.readers()
    assert board.mirrored() == board.rows()
    assert board.written() == dict.fromkeys(committed(now), 1)
    assert {run.state for run in runs} == {"success"}
    assert {run.key for run in runs} == {root, *children}
    assert all({token for token, _ in run.handed} <= {run.key} for run in runs)
    assert {chunk for run in runs for chunk in run.handed} == committed(now)  # again, where a second wake came early
    versions = board.written_at()
    of_root = [version for (token, _), version in versions.items() if token == root]
    assert max(of_root) < min(version for (token, _), version in versions.items() if token in children)
    assert [run.key for run in runs if run.key in children and run.task("wake_next") != "skipped"] == []


def is_read(runs: list[ReaderRun], tokens: set[str]) -> bool:
    """Whether all runs are over, and each of these was read."""
    over = all(run.state in ("success", "failed") for run in runs)
    return over and tokens <= {run.key for run in runs if run.handed}
