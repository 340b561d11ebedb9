"""Executors follow the planned bytes within bounds, and Spark is given just these numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.acceleration.planning.settings import accelerated_settings
from tidemark.errors import InvalidArgument
from tidemark.streams.planning.executors import (
    DEFAULT_BYTES,
    ExecutorBounds,
    PlannedExecutors,
    executors_for,
    named_by,
    sized_settings,
)

BOUNDS = ExecutorBounds(max_executors=20, min_executors=2, bytes_per_executor=1000)
DYNAMIC = "spark.dynamicAllocation."
STANDALONE = "spark://host:7077"


@pytest.mark.parametrize(
    ("planned", "number"), [(0, 2), (2000, 2), (2001, 3), (19_001, 20), (20_000, 20), (20_001, 20), (10**18, 20)]
)
def test_there_is_an_executor_for_each_part_within_the_bounds(planned: int, number: int) -> None:
    assert executors_for(BOUNDS, planned) == PlannedExecutors(planned, 2, number, number)


def test_a_job_of_unknown_size_begins_with_the_least_and_may_grow_to_the_most() -> None:
    assert executors_for(BOUNDS, None) == PlannedExecutors(None, 2, 2, 20)


def test_what_is_planned_is_said_in_words() -> None:
    assert str(executors_for(BOUNDS, 4500)) == "4,500 bytes, 5 executors, 2 if they are idle"
    assert str(executors_for(ExecutorBounds(3), 7)) == "7 bytes, 1 executor"
    assert str(executors_for(BOUNDS, None)) == "unknown bytes, 2 to 20 executors"


@pytest.mark.parametrize(
    ("bounds", "argument"),
    [
        ({"max_executors": 0}, "max_executors"),
        ({"max_executors": -1}, "max_executors"),
        ({"max_executors": 10_001}, "max_executors"),
        ({"max_executors": 3, "min_executors": 0}, "min_executors"),
        ({"max_executors": 3, "min_executors": 4}, "min_executors"),
        ({"max_executors": 3, "bytes_per_executor": 0}, "bytes_per_executor"),
    ],
)
def test_bounds_that_hold_for_no_job_are_refused(bounds: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument, match=argument):
        ExecutorBounds(**bounds)


def test_the_defaults_are_one_executor_at_least_and_4_gib_for_each() -> None:
    assert ExecutorBounds(5) == ExecutorBounds(5, 1, DEFAULT_BYTES)
    assert DEFAULT_BYTES == 4 * 1024**3


@pytest.mark.parametrize("master", ["yarn", "k8s://https://kube"])
def test_a_cluster_manager_gets_the_numbers_by_dynamic_allocation(master: str) -> None:
    assert sized_settings({"spark.a": "b"}, executors_for(BOUNDS, 4500), master=master) == {
        "spark.a": "b",
        f"{DYNAMIC}enabled": "true",
        f"{DYNAMIC}minExecutors": "2",
        f"{DYNAMIC}initialExecutors": "5",
        f"{DYNAMIC}maxExecutors": "5",
        f"{DYNAMIC}shuffleTracking.enabled": "true",
    }


def test_a_shuffle_service_is_used_and_a_users_own_choice_of_tracking_stays() -> None:
    planned = executors_for(BOUNDS, None)
    served = sized_settings({"spark.shuffle.service.enabled": "true"}, planned, master="yarn")
    assert f"{DYNAMIC}shuffleTracking.enabled" not in served
    chosen = sized_settings({f"{DYNAMIC}shuffleTracking.enabled": "false"}, planned, master="yarn")
    assert chosen[f"{DYNAMIC}shuffleTracking.enabled"] == "false"


def test_a_standalone_master_gets_the_cores_of_the_executors_and_needs_their_size() -> None:
    found = sized_settings({"spark.executor.cores": "3"}, executors_for(BOUNDS, 4500), master=STANDALONE)
    assert (found["spark.cores.max"], found[f"{DYNAMIC}maxExecutors"]) == ("15", "5")
    with pytest.raises(InvalidArgument, match=r"set spark\.executor\.cores"):
        sized_settings({}, executors_for(BOUNDS, 4500), master=STANDALONE)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, None),
        ({"spark.executor.memory": "4g", f"{DYNAMIC}executorIdleTimeout": "30s"}, None),
        ({"spark.executor.instances": "7"}, "spark.executor.instances"),
        ({"spark.cores.max": "7"}, "spark.cores.max"),
        ({f"{DYNAMIC}enabled": "false"}, f"{DYNAMIC}enabled"),
        ({f"{DYNAMIC}maxExecutors": "9"}, f"{DYNAMIC}maxExecutors"),
    ],
)
def test_a_users_own_numbers_are_noticed(settings: dict[str, str], named: str | None) -> None:
    assert named_by(settings) == named


@pytest.mark.parametrize(("master", "cores"), [("yarn", {}), (STANDALONE, {"spark.executor.cores": "2"})])
def test_acceleration_multiplies_the_executors_that_the_bytes_ask_for(master: str, cores: dict[str, str]) -> None:
    sized = sized_settings(cores, executors_for(BOUNDS, 4500), master=master)
    found = accelerated_settings(sized, master=master, factor=3)
    assert [found[f"{DYNAMIC}{name}Executors"] for name in ("min", "initial", "max")] == ["5", "5", "20"]
    unknown = sized_settings(cores, executors_for(BOUNDS, None), master=master)
    assert accelerated_settings(unknown, master=master, factor=3)[f"{DYNAMIC}maxExecutors"] == "80"
