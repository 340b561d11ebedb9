"""The one state of a stream that page, API and command line tell: the worst that holds of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from tidemark.streams.model.health import StreamHealth

__all__ = ["SOON", "LogFacts", "NoLog", "StreamState", "state_of"]

SOON = timedelta(hours=24)


class StreamState(StrEnum):
    """The states to report of a stream, the worst first."""

    STALE = "stale"  # its changes cannot be read any more
    FAILING = "failing"  # the last attempt to consume it failed
    UNREADABLE = "unreadable"  # the log of its source cannot be read
    MAY_BE_STALE = "may_be_stale"  # Delta may have removed what it needs
    NEARLY_STALE = "nearly_stale"  # in less than a day it may
    UNKNOWN = "unknown"  # the lake has not answered yet
    BEHIND = "behind"  # there is something to consume
    UNDELIVERED = "undelivered"  # nothing is to be consumed, and nothing ever was
    UP_TO_DATE = "up_to_date"


class NoLog(Enum):
    """Why the log says nothing."""

    UNREADABLE = "unreadable"
    NOT_YET = "not yet"


@dataclass(frozen=True)
class LogFacts:
    """`lost`: the stream cannot be read any more. `behind`: versions that it has not passed."""

    lost: bool
    behind: int
    stale_after: datetime


def state_of(health: StreamHealth, log: LogFacts | NoLog, *, initial_rows_pending: bool, now: datetime) -> StreamState:
    """The worst of all that holds."""
    facts = log if isinstance(log, LogFacts) else None
    holds = {
        StreamState.STALE: facts is not None and facts.lost,
        StreamState.FAILING: health.failures_in_row > 0,
        StreamState.UNREADABLE: log is NoLog.UNREADABLE,
        StreamState.MAY_BE_STALE: facts is not None and now > facts.stale_after,
        StreamState.NEARLY_STALE: facts is not None and now > facts.stale_after - SOON,
        StreamState.UNKNOWN: log is NoLog.NOT_YET,
        StreamState.BEHIND: initial_rows_pending or (facts is not None and facts.behind > 0),
        StreamState.UNDELIVERED: health.consumptions == 0,
    }
    return next((state for state, so in holds.items() if so), StreamState.UP_TO_DATE)
