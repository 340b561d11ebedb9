"""Runs of a whole Airflow on PostgreSQL, in which each part is killed in turn between the two writes of a delivery."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

from tests.deployment.airflow_deployment import Deployment, wait_for
from tests.deployment.conftest import Shop
from tests.deployment.spark_setups import SparkSetup
from tests.postgresql import PostgresServer
from tests.tiers import nightly

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e, pytest.mark.timeout(900)]

NEW_DATA = "test_new_data_starts_a_run_by_itself"
KILLED = (
    "tests/guarantees/test_killed_anywhere_each_change_once.py::test_a_retry_after_a_kill_delivers_each_change_once"
)
OTHERS = "the other ways to end, each a run of a whole Airflow"


@nightly("a run more", NEW_DATA)
def test_a_run_that_is_triggered_by_hand_delivers_what_is_new(deployment: Deployment, shop: Shop) -> None:
    shop.trade()
    assert deployment.finish("by_hand", deployment.trigger("by_hand")) == "success"
    assert shop.is_delivered()
    shop.check()


def kill_the_worker(deployment: Deployment, store: PostgresServer) -> None:
    """The task and its supervisor; the driver, in a process group of its own, lives on."""
    task = _above_the_driver(deployment)
    supervisor = task.parent()
    for process in (supervisor, task):
        if process is not None:
            process.kill()


def kill_spark(deployment: Deployment, store: PostgresServer) -> None:
    for process in deployment.drivers():
        with suppress(psutil.NoSuchProcess):
            process.kill()


def kill_the_scheduler(deployment: Deployment, store: PostgresServer) -> None:
    deployment.kill("scheduler")
    deployment.start("scheduler")


def kill_the_api_server(deployment: Deployment, store: PostgresServer) -> None:
    deployment.kill("api-server")
    deployment.start("api-server")


def kill_the_store(deployment: Deployment, store: PostgresServer) -> None:
    store.restart()


@nightly("each a run of a whole Airflow", KILLED)
@pytest.mark.parametrize(
    "strike", [kill_the_worker, kill_spark, kill_the_scheduler, kill_the_api_server, kill_the_store]
)
def test_whatever_is_killed_in_the_middle_each_change_arrives_once(
    deployment: Deployment,
    shop: Shop,
    spark_setup: SparkSetup,
    store_server: PostgresServer,
    strike: Callable[[Deployment, PostgresServer], None],
) -> None:
    run = shop.held_run()
    strike(deployment, store_server)
    shop.release()
    assert deployment.finish("by_hand", run) == "success"
    assert shop.is_delivered()
    shop.check()
    wait_for_no_spark(deployment, spark_setup)


@nightly(OTHERS)
def test_what_waits_for_data_goes_on_after_the_triggerer_was_killed(
    deployment: Deployment, shop: Shop, spark_setup: SparkSetup
) -> None:
    run = deployment.trigger("when_there_is_data")
    wait_for(lambda: deployment.task_state("when_there_is_data", run, "wait") == "deferred", 180, deployment.logs)
    deployment.kill("triggerer")
    shop.trade()
    deployment.start("triggerer")
    assert deployment.finish("when_there_is_data", run) == "success"
    assert shop.is_delivered()
    shop.check()


@nightly(OTHERS)
def test_a_task_marked_failed_leaves_no_spark_behind_and_the_offset_where_it_was(
    deployment: Deployment, shop: Shop, spark_setup: SparkSetup
) -> None:
    run = shop.held_run()
    deployment.api("PATCH", f"dags/by_hand/dagRuns/{run}/taskInstances/deliver", {"new_state": "failed"})
    wait_for_no_spark(deployment, spark_setup)
    assert deployment.finish("by_hand", run) == "failed"
    assert not shop.is_delivered()
    shop.release()
    deployment.clear("by_hand", run, "deliver")
    wait_for(shop.is_delivered, 480, deployment.logs)
    assert deployment.finish("by_hand", run) == "success"
    shop.check()


@nightly(OTHERS)
def test_a_running_task_that_is_cleared_is_ended_and_run_again(
    deployment: Deployment, shop: Shop, spark_setup: SparkSetup
) -> None:
    run = shop.held_run()
    first = {process.pid for process in deployment.drivers()}
    deployment.clear("by_hand", run, "deliver", only_running=True)
    wait_for(lambda: first.isdisjoint(process.pid for process in deployment.drivers()), 180, deployment.logs)
    shop.release()
    assert deployment.finish("by_hand", run) == "success"
    assert shop.is_delivered()
    shop.check()
    wait_for_no_spark(deployment, spark_setup)


@nightly(OTHERS)
def test_a_task_that_takes_too_long_leaves_no_spark_behind_and_a_schedule_delivers_what_it_left(
    deployment: Deployment, shop: Shop, spark_setup: SparkSetup
) -> None:
    run = shop.held_run("in_a_hurry")
    assert deployment.finish("in_a_hurry", run) == "failed"
    assert deployment.drivers() == []
    wait_for_no_spark(deployment, spark_setup)
    shop.release()
    assert not shop.is_delivered()
    deployment.unpause("on_schedule")
    wait_for(shop.is_delivered, 480, deployment.logs)
    for scheduled in deployment.runs("on_schedule"):
        assert deployment.finish("on_schedule", scheduled["dag_run_id"]) == "success"
    deployment.pause("on_schedule")
    shop.check()


def test_new_data_starts_a_run_by_itself(deployment: Deployment, shop: Shop) -> None:
    deployment.unpause("by_new_data")
    shop.trade()
    wait_for(shop.is_delivered, 480, deployment.logs)
    (run,) = deployment.runs("by_new_data")
    assert deployment.finish("by_new_data", run["dag_run_id"]) == "success"
    deployment.pause("by_new_data")
    shop.check()


def wait_for_no_spark(deployment: Deployment, spark_setup: SparkSetup) -> None:
    """No process of a driver, no application of the cluster, nothing running or kept in the server."""
    wait_for(lambda: not deployment.drivers() and spark_setup.at_work() == 0, 180, deployment.logs)


def _above_the_driver(deployment: Deployment) -> psutil.Process:
    """The process of the task that started spark-submit."""
    drivers = deployment.drivers()
    pids = {process.pid for process in drivers}
    top = next(process for process in drivers if process.ppid() not in pids)
    task = top.parent()
    assert task is not None
    return task
