"""Measured tasks on more slots: within the bounds that no schedule can leave, and exact in cases counted by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.acceleration.made_logs import BEGAN, application, stage
from tidemark.acceleration.model.applications import Application, ExecutorChange
from tidemark.acceleration.model.estimates import SHOWN_FACTORS, Status
from tidemark.acceleration.planning.estimate import estimate, part_of, predicted_seconds, ramp_of
from tidemark.acceleration.planning.schedule import Ramp, replay_of

AT_ONCE = Ramp(backlog=0, sustained=1, launch=0)
NOW = datetime.fromtimestamp(BEGAN / 1000, UTC) + timedelta(days=1)


def milliseconds(of: Application, factor: int, ramp: Ramp = AT_ONCE) -> int:
    return replay_of(of, ramp).milliseconds(factor)


@st.composite
def applications(draw: st.DrawFn) -> Application:
    """Stages one after another or side by side, with any tasks; the times of the log need not fit the tasks."""
    slots, executors = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    stages, at = [], 0
    for number in range(draw(st.integers(0, 6))):
        tasks = draw(st.lists(st.integers(0, 5_000), max_size=12))
        until = at + draw(st.integers(0, 20_000))
        parents = tuple(one.id for one in stages if draw(st.booleans()))
        stages.append(stage(number, at, until, tasks, job=draw(st.integers(0, 6)), parents=parents))
        at = draw(st.integers(at, until + 3_000))
    until = max((one.completed - BEGAN for one in stages), default=0) + draw(st.integers(0, 5_000))
    return application(*stages, until=until, slots=slots, executors=executors)


@given(applications())
def test_more_executors_never_take_longer_and_never_save_more_than_their_share(of: Application) -> None:
    times = [predicted_seconds(of, factor) for factor in (1, 2, 3, 4, 8, 100)]
    assert all(seconds is not None for seconds in times)
    assert times == sorted(times, reverse=True)
    for factor, seconds in zip((1, 2, 3, 4, 8, 100), times, strict=True):
        assert seconds is not None
        assert of.seconds / (1 + factor) <= seconds * 1.000001
        assert seconds <= of.seconds


@given(applications())
def test_the_estimate_shows_those_times_and_a_limit_only_if_the_gain_counts(of: Application) -> None:
    found = estimate(of, now=NOW)
    assert found.status in (Status.ELIGIBLE, Status.INELIGIBLE)
    assert set(SHOWN_FACTORS) <= found.times.keys()
    if found.status is Status.ELIGIBLE:
        assert found.upper_limit in found.times
        assert found.times[found.upper_limit] <= 0.81 * of.seconds
        assert not found.reason
    else:
        assert found.upper_limit == 0
        assert found.reason


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=40), st.integers(1, 4), st.integers(0, 9))
def test_one_stage_lies_between_its_work_and_the_bound_of_list_scheduling(
    tasks: list[int], slots: int, factor: int
) -> None:
    of = application(stage(0, 0, sum(tasks), tasks), until=sum(tasks), slots=slots)
    most = slots * (1 + factor)
    took = milliseconds(of, factor)
    ramp = 2 * (factor + 1)  # of milliseconds: one look each
    assert took >= max(max(tasks), ceil(sum(tasks) / most))
    assert took <= sum(tasks) / most + max(tasks) * (1 - 1 / most) + ramp


@given(applications())
def test_a_ramp_that_takes_for_ever_saves_nothing(of: Application) -> None:
    never = Ramp(backlog=10**9, sustained=10**9, launch=10**9)
    assert milliseconds(of, 8, never) == milliseconds(of, 0, never)


@pytest.mark.parametrize(("factor", "seconds"), [(0, 8), (1, 4), (3, 2), (7, 1), (100, 1)])
def test_equal_tasks_are_divided_among_the_slots(factor: int, seconds: int) -> None:
    of = application(stage(0, 0, 8000, [1000] * 8), until=8000)
    assert milliseconds(of, factor, Ramp(0, 1, 0)) == pytest.approx(seconds * 1000, abs=10)


def test_pauses_of_the_driver_stay_as_they_were() -> None:
    of = application(stage(0, 500, 4500, [1000] * 4), stage(1, 5500, 7500, [1000] * 2), until=8000)
    assert milliseconds(of, 0) == 8000
    assert milliseconds(of, 1) == pytest.approx(500 + 2000 + 1000 + 1000 + 500, abs=5)


def test_a_stage_waits_for_all_of_its_parents() -> None:
    first, second = stage(0, 0, 2000, [1000, 1000], job=0), stage(1, 0, 6000, [4000], job=0)
    joined = stage(2, 6100, 7100, [1000], job=0, parents=(0, 1))
    of = application(first, second, joined, until=7100)
    assert milliseconds(of, 0) == 2000 + 4000 + 100 + 1000
    assert milliseconds(of, 9) == pytest.approx(4000 + 100 + 1000, abs=5)


def test_executors_come_one_two_and_four_at_a_time() -> None:
    ramp = Ramp(backlog=1000, sustained=1000, launch=500)
    of = application(stage(0, 0, 20_000, [1000] * 20), until=20_000)
    # One slot until 1.5 s, two until 2.5 s, four until 3.5 s, then eight: sixteen tasks have begun at 4 s, and the
    # last four begin at 4.5 s.
    assert milliseconds(of, 7, ramp) == 5500
    # Eleven tasks on the first slot, and nine on the second one from 1.5 s on.
    assert milliseconds(of, 1, ramp) == 11_000


def test_the_ramp_is_that_of_the_settings_and_of_the_first_executor() -> None:
    said = {
        "spark.dynamicAllocation.schedulerBacklogTimeout": "3s",
        "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": "250ms",
    }
    of = application(until=1000, settings=said)
    late = Application(
        of.id, of.name, of.began, of.ended, (), (ExecutorChange(BEGAN + 4200, "0", 1),), (), said, BEGAN + 200
    )
    assert ramp_of(late) == Ramp(backlog=3000, sustained=250, launch=4000)


def test_executors_that_were_lost_and_came_back_do_not_count_twice() -> None:
    changes = (
        ExecutorChange(BEGAN, "0", 2),
        ExecutorChange(BEGAN + 1000, "0", -2),
        ExecutorChange(BEGAN + 3000, "1", 2),
    )
    plain = application(stage(0, 0, 8000, [1000] * 8), until=8000)
    of = Application(plain.id, plain.name, plain.began, plain.ended, plain.stages, changes)
    replay = replay_of(of, AT_ONCE)
    assert (replay.executors, replay.slots, replay.per_executor) == (1, 2, 2)
    assert replay.milliseconds() == 4000


@pytest.mark.parametrize(
    ("of", "status", "reason"),
    [
        (application(until=5000), Status.INELIGIBLE, "no stage ran"),
        (
            application(stage(0, 0, 4000, [4000]), until=4000, slots=2),
            Status.INELIGIBLE,
            "no stage has more tasks than the 2 slots",
        ),
        (
            application(stage(0, 0, 4100, [4000, 100]), until=4100),
            Status.INELIGIBLE,
            "a single task took 4.0 of 4.1 s",
        ),
        (
            application(stage(0, 9000, 10_000, [500, 500]), until=10_000),
            Status.INELIGIBLE,
            "no stage ran for 9.0 of 10.0 s",
        ),
        (application(stage(0, 0, 60_000, [1000] * 60), until=60_000), Status.ELIGIBLE, ""),
        (
            application(stage(0, 0, 60_000, [1000] * 60), until=60_000, slots=0, executors=0),
            Status.INVALID,
            "names no executor",
        ),
        (
            application(
                stage(0, 0, 60_000, [1000] * 60),
                until=60_000,
                executors=2,
                settings={
                    "spark.tidemark.queryAcceleration.maxScaleFactor": "8",
                    "spark.tidemark.queryAcceleration.baseExecutors": "1",
                },
            ),
            Status.ACCELERATED,
            "more executors than its base",
        ),
    ],
)
def test_the_answer_has_its_reason(of: Application, status: Status, reason: str) -> None:
    found = estimate(of, now=NOW)
    assert found.status is status
    assert reason in found.reason


def test_an_application_older_than_14_days_is_invalid() -> None:
    of = application(stage(0, 0, 60_000, [1000] * 60), until=60_000)
    ended = datetime.fromtimestamp(BEGAN / 1000 + 60, UTC)
    assert estimate(of, now=ended + timedelta(days=14)).status is Status.ELIGIBLE
    old = estimate(of, now=ended + timedelta(days=14, seconds=1))
    assert old.status is Status.INVALID
    assert "more than 14 days ago" in old.reason


def test_the_limit_is_the_smallest_factor_with_the_best_time() -> None:
    of = application(stage(0, 0, 400_000, [100_000] * 4), until=400_000)
    found = estimate(of, now=NOW)
    assert found.upper_limit == 3
    assert found.times[3] == pytest.approx(103, abs=2)  # the executors of the second look come two seconds late
    assert found.times[1] == pytest.approx(201, abs=2)


def test_a_query_of_an_application_has_its_own_stages() -> None:
    of = application(stage(0, 0, 1000, [1000], execution=4), stage(1, 1000, 2000, [1000]), until=2000)
    assert part_of(of, 4) is None  # its start is not in the log


def test_a_further_executor_warms_up_as_long_as_the_first_one_did() -> None:
    plain = application(stage(0, 0, 7000, [3000, 1000, 1000, 1000, 1000]), until=7000)
    late = Application(
        plain.id, plain.name, plain.began, plain.ended, plain.stages, plain.executors, driver_ready=BEGAN
    )
    assert ramp_of(late).launch == 2000
    cold = application(stage(0, 0, 7000, [1000, 3000, 1000, 1000, 1000]), until=7000)
    assert ramp_of(cold).launch == 0


def test_a_start_or_a_task_of_years_is_no_endless_schedule() -> None:
    waits = application(stage(0, 0, 100_000, [1000] * 100), until=100_000)
    late = milliseconds(waits, 8, Ramp(backlog=1000, sustained=1000, launch=10**15))
    assert late == milliseconds(waits, 0)
    years = application(stage(0, 0, 10, [10**15, 1000, 1000]), until=10**15)
    gone = replace(years, executors=(*years.executors, ExecutorChange(BEGAN, "x", 1), ExecutorChange(BEGAN, "x", -1)))
    assert milliseconds(gone, 1, Ramp(backlog=1000, sustained=1000, launch=10**14)) >= 10**15
