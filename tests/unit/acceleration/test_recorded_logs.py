"""Event logs of Spark 4.2 on a standalone cluster, as `tests.benchmarks.acceleration --keep` has kept them.

The logs in `recorded` are of one executor (`plain`), and of two (`faster`). Tasks waited, and the machine was busy.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest

from tidemark.acceleration.model.applications import Application
from tidemark.acceleration.model.estimates import Status
from tidemark.acceleration.planning.estimate import estimate, part_of, predicted_seconds, ramp_of
from tidemark.acceleration.planning.schedule import replay_of
from tidemark.acceleration.worker.event_logs import find_event_log, read_application

RECORDED = Path(__file__).with_name("recorded")
NAMES = sorted(file.name.removesuffix(".zstd") for file in RECORDED.glob("*.zstd"))
ROUNDS = 5


def recorded(name: str) -> Application:
    return read_application(find_event_log(str(RECORDED / f"{name}.zstd"), None))


def rounds(name: str) -> list[list[Application]]:
    """The queries of each round, without the first one."""
    found = recorded(name)
    parts = [part for one in found.executions if (part := part_of(found, one.id)) is not None]
    each = len(parts) // (ROUNDS + 1)
    return [parts[number * each : (number + 1) * each] for number in range(1, ROUNDS + 1)]


def at_once(part: Application) -> Application:
    """The same, with further executors that are there from the beginning."""
    return replace(part, driver_ready=None, settings={"spark.dynamicAllocation.schedulerBacklogTimeout": "0s"})


@pytest.mark.parametrize("name", NAMES)
def test_the_schedule_of_the_measured_tasks_takes_as_long_as_was_measured(name: str) -> None:
    found = recorded(name)
    again = replay_of(found, ramp_of(found)).milliseconds() / 1000
    assert again == pytest.approx(found.seconds, rel=0.05)


@pytest.mark.parametrize("shape", ["even", "mixed"])
def test_queries_on_one_executor_foretell_those_on_two_within_a_quarter(shape: str) -> None:
    off = []
    for before, after in zip(rounds(f"{shape}-queries-plain"), rounds(f"{shape}-queries-faster"), strict=True):
        predicted = sum(predicted_seconds(at_once(part), 1) or 0.0 for part in before)
        measured = sum(part.seconds for part in after)
        off.append(abs(predicted - measured) / measured)
    assert median(off) < 0.25


def test_a_plain_application_is_eligible_and_an_accelerated_one_says_that_it_was() -> None:
    plain, faster = recorded("even-application-plain"), recorded("even-application-faster")
    assert faster.ended is not None
    now = datetime.fromtimestamp(faster.ended / 1000, UTC) + timedelta(days=1)
    found = estimate(plain, now=now)
    assert (found.status, found.slots) == (Status.ELIGIBLE, 1)
    assert list(found.times.values()) == sorted(found.times.values(), reverse=True)
    assert estimate(faster, now=now).status is Status.ACCELERATED
    assert estimate(plain, now=now + timedelta(days=14)).status is Status.INVALID


def test_stages_know_the_job_and_the_query_that_they_belong_to() -> None:
    found = recorded("mixed-queries-plain")
    assert {stage.execution for stage in found.stages} == {one.id for one in found.executions}
    assert all(one.ended is not None for one in found.executions)
    assert any(stage.parents for stage in found.stages)
