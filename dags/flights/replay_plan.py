"""The hours that a run replays, and their changes on the board. Pure: no clock, no Spark, no files.

Time in the replay is an *hour*: whole hours since 2013-01-01T00:00Z. The hour is also the version of the Delta
transaction that writes it. So the table itself records the last hour that was replayed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

__all__ = [
    "FIRST_HOUR",
    "LAST_HOUR",
    "BoardChange",
    "Flight",
    "Status",
    "changes_by_hour",
    "hours_to_replay",
    "moment",
    "scheduled_within",
]

YEAR_STARTS = datetime(2013, 1, 1, tzinfo=UTC)
HOURS_A_DAY = 24
FIRST_HOUR = 10  # 05:00 in New York, when the first flight of the year leaves
LAST_HOUR = 366 * HOURS_A_DAY  # every flight of the year has landed by then
ON_BOARD_AHEAD = timedelta(hours=24)
LONGEST_WAY = timedelta(hours=48)  # from the scheduled departure to the landing: delay and time in the air


@dataclass(frozen=True)
class Flight:
    """One flight as it turned out. Delays are in minutes, negative when early; None if it did not happen."""

    service_date: date
    carrier: str
    number: int
    origin: str
    dest: str
    tailnum: str | None
    distance: int
    scheduled_departure: datetime
    departure_delay: int | None
    arrival_delay: int | None
    air_time: int | None

    @property
    def cancelled(self) -> bool:
        """It was on the board and never left."""
        return self.departure_delay is None


class Status(StrEnum):
    """The state of a flight on the board. A cancelled flight is removed."""

    SCHEDULED = "scheduled"
    DEPARTED = "departed"
    LANDED = "landed"


@dataclass(frozen=True)
class BoardChange:
    """The change of one flight in one hour: its status from then on, or None when it leaves the board."""

    flight: Flight
    status: Status | None


def moment(hour: int) -> datetime:
    """The time at which an hour of the replay begins."""
    return YEAR_STARTS + timedelta(hours=hour)


def hours_to_replay(replayed: int | None, days: float) -> range:
    """The next `days` × 24 hours after the last replayed one (None: nothing yet); empty once the year is over.

    Raises ValueError if that is less than one hour.
    """
    hours = round(days * HOURS_A_DAY)
    if hours < 1:
        raise ValueError(f"days={days}: a replay takes at least one hour")
    start = FIRST_HOUR if replayed is None else replayed + 1
    return range(start, min(start + hours, LAST_HOUR + 1))


def scheduled_within(hours: range) -> tuple[datetime, datetime]:
    """The scheduled departures [from, to) of all flights that these hours can change."""
    return moment(hours.start) - LONGEST_WAY, moment(hours.stop) + ON_BOARD_AHEAD


def changes_by_hour(flights: Iterable[Flight], hours: range) -> Mapping[int, tuple[BoardChange, ...]]:
    """For each of the hours that changes anything, what it changes: at most one change a flight, the last one counts.

    A flight appears on the board 24 hours ahead, and leaves and lands at its real times. A cancelled flight is removed
    in the hour of its scheduled departure. Changes before FIRST_HOUR happen in FIRST_HOUR.
    """
    found: dict[int, list[BoardChange]] = defaultdict(list)
    for flight in flights:
        for hour, status in _life(flight).items():
            if hour in hours:
                found[hour].append(BoardChange(flight, status))
    return {hour: tuple(found[hour]) for hour in sorted(found)}


def _life(flight: Flight) -> dict[int, Status | None]:
    """Hour → the state of the board after it; a later step of the same hour replaces an earlier one."""
    life: dict[int, Status | None] = {}
    life[_hour_of(flight.scheduled_departure - ON_BOARD_AHEAD)] = Status.SCHEDULED
    if flight.departure_delay is None:
        life[_hour_of(flight.scheduled_departure)] = None
        return life
    departure = flight.scheduled_departure + timedelta(minutes=flight.departure_delay)
    life[_hour_of(departure)] = Status.DEPARTED
    if flight.air_time is not None:
        life[_hour_of(departure + timedelta(minutes=flight.air_time))] = Status.LANDED
    return life


def _hour_of(when: datetime) -> int:
    return max(FIRST_HOUR, (when - YEAR_STARTS) // timedelta(hours=1))
