"""A stream has one state, and it is the worst that holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidemark.streams.model.health import StreamHealth
from tidemark.streams.planning.stream_state import LogFacts, NoLog, StreamState, state_of

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
NEW = StreamHealth()
WELL = StreamHealth(consumptions=3, failures=2, last_error="long ago")
FAILED = StreamHealth(failures=1, failures_in_row=1)


def log(*, lost: bool = False, behind: int = 0, hours: float = 100) -> LogFacts:
    return LogFacts(lost, behind, NOW + timedelta(hours=hours))


@pytest.mark.parametrize(
    ("health", "said", "owed", "state"),
    [
        (WELL, log(), False, StreamState.UP_TO_DATE),
        (NEW, log(), False, StreamState.UNDELIVERED),
        (NEW, log(), True, StreamState.BEHIND),
        (NEW, log(behind=1), False, StreamState.BEHIND),
        (WELL, log(behind=1), False, StreamState.BEHIND),
        (FAILED, log(), False, StreamState.FAILING),
        (FAILED, log(behind=1, hours=-1), True, StreamState.FAILING),
        (FAILED, NoLog.UNREADABLE, False, StreamState.FAILING),
        (FAILED, NoLog.NOT_YET, False, StreamState.FAILING),
        (FAILED, log(lost=True), False, StreamState.STALE),
        (WELL, log(lost=True, behind=9), False, StreamState.STALE),
        (WELL, log(behind=1, hours=-0.1), False, StreamState.MAY_BE_STALE),
        (WELL, log(hours=23.9), False, StreamState.NEARLY_STALE),
        (WELL, log(hours=24.1), False, StreamState.UP_TO_DATE),
        (WELL, NoLog.UNREADABLE, True, StreamState.UNREADABLE),
        (NEW, NoLog.NOT_YET, True, StreamState.UNKNOWN),
    ],
)
def test_the_worst_that_holds_is_told(
    health: StreamHealth, said: LogFacts | NoLog, owed: bool, state: StreamState
) -> None:
    assert state_of(health, said, initial_rows_pending=owed, now=NOW) is state
