"""What the replay of the flights decides: which hours a run takes, and what each hour changes."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "dags"))

from flights.replay_plan import (
    FIRST_HOUR,
    LAST_HOUR,
    Flight,
    Status,
    changes_by_hour,
    hours_to_replay,
    moment,
    scheduled_within,
)
from flights.year import flights_between

ALL_HOURS = range(FIRST_HOUR, LAST_HOUR + 1)
NOON = datetime(2013, 3, 2, 12, 20, tzinfo=UTC)


def flight(scheduled: datetime = NOON, delay: int | None = 50, air_time: int | None = 100, **other: Any) -> Flight:
    facts: dict[str, Any] = {
        "service_date": date(2013, 3, 2),
        "carrier": "UA",
        "number": 1,
        "origin": "EWR",
        "dest": "ORD",
        "tailnum": None,
        "distance": 719,
        "arrival_delay": 40,
    }
    return Flight(scheduled_departure=scheduled, departure_delay=delay, air_time=air_time, **facts | other)


def life(one: Flight, hours: range = ALL_HOURS) -> dict[datetime, Status | None]:
    return {moment(hour): changes[0].status for hour, changes in changes_by_hour([one], hours).items()}


def test_a_flight_is_put_on_the_board_a_day_ahead_then_leaves_then_lands() -> None:
    assert life(flight()) == {
        datetime(2013, 3, 1, 12, tzinfo=UTC): Status.SCHEDULED,
        datetime(2013, 3, 2, 13, tzinfo=UTC): Status.DEPARTED,
        datetime(2013, 3, 2, 14, tzinfo=UTC): Status.LANDED,
    }


def test_a_cancelled_flight_is_taken_off_in_the_hour_of_its_departure() -> None:
    assert life(flight(delay=None, air_time=None)) == {
        datetime(2013, 3, 1, 12, tzinfo=UTC): Status.SCHEDULED,
        datetime(2013, 3, 2, 12, tzinfo=UTC): None,
    }


def test_of_two_steps_in_one_hour_the_last_one_counts() -> None:
    assert life(flight(delay=-20, air_time=30))[datetime(2013, 3, 2, 12, tzinfo=UTC)] is Status.LANDED


def test_what_lies_before_the_first_hour_happens_in_it() -> None:
    early = flight(moment(FIRST_HOUR) + timedelta(minutes=5), delay=-10, air_time=None)
    assert life(early) == {moment(FIRST_HOUR): Status.DEPARTED}


def test_runs_follow_each_other_without_a_gap_or_an_overlap() -> None:
    first = hours_to_replay(None, 2)
    second = hours_to_replay(first[-1], 1)
    assert (first.start, len(first), len(second)) == (FIRST_HOUR, 48, 24)
    assert second.start == first.stop


def test_the_last_run_ends_with_the_year_and_the_one_after_has_nothing_to_do() -> None:
    assert hours_to_replay(LAST_HOUR - 3, 1) == range(LAST_HOUR - 2, LAST_HOUR + 1)
    assert not hours_to_replay(LAST_HOUR, 1)


def test_part_of_a_day_is_whole_hours() -> None:
    assert len(hours_to_replay(None, 0.25)) == 6


def test_less_than_an_hour_is_refused() -> None:
    with pytest.raises(ValueError, match=r"days=0\.01"):
        hours_to_replay(None, 0.01)


def test_a_flight_outside_what_is_read_changes_nothing_in_these_hours() -> None:
    hours = hours_to_replay(2000, 1)
    start, end = scheduled_within(hours)
    assert not life(flight(start - timedelta(minutes=1), delay=24 * 60, air_time=23 * 60), hours)
    assert not life(flight(end), hours)


def test_the_real_flights_of_a_day_end_as_they_ended() -> None:
    hours = hours_to_replay(None, 2)
    flights = flights_between(*scheduled_within(hours))
    new_year = [one for one in flights if one.service_date == date(2013, 1, 1)]
    assert len(new_year) == 842
    last = {change.flight: change.status for changes in changes_by_hour(new_year, hours).values() for change in changes}
    assert sum(status is None for status in last.values()) == sum(one.cancelled for one in new_year) == 4
    assert sum(status is Status.LANDED for status in last.values()) == 831


def test_the_year_is_over_when_its_last_flight_has_landed() -> None:
    last_days = flights_between(datetime(2013, 12, 28, tzinfo=UTC), datetime(2014, 1, 2, tzinfo=UTC))
    assert max(changes_by_hour(last_days, range(FIRST_HOUR, 10_000))) <= LAST_HOUR
