"""The usual lag of an object, by the highest lags that the rows of its history tell, and the limit beyond it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import sqlalchemy as sa

from tidemark.control.object_kinds import Severity, kind_named, resolved
from tidemark.control.object_list import ShownObject

__all__ = [
    "FEWEST",
    "LEAST",
    "NEWEST",
    "TIMES",
    "UsualLag",
    "between",
    "may_be_behind",
    "usual_lag",
    "usual_lags",
]

NEWEST = 100  # rows of an object's history
FEWEST = 10  # highs; fewer tell no habit
TIMES = 2
LEAST = timedelta(hours=1)
_SHARE = 0.95

HighsOf = Callable[[sa.Connection, Sequence[str]], Mapping[str, Sequence[float]]]
"""By uid the lags, in seconds, just before the object reached a newer state of its source each time."""


@dataclass(frozen=True)
class UsualLag:
    """`seconds`: nineteen of twenty highs were at most so long."""

    seconds: float

    @property
    def limit(self) -> float:
        """A longer lag is behind the usual one."""
        return max(TIMES * self.seconds, LEAST.total_seconds())

    @property
    def words(self) -> str:
        """The reason, without the lag of the moment."""
        return f"it is behind its usual lag of {_span(self.seconds)}"


def usual_lags(connection: sa.Connection, found: Iterable[ShownObject]) -> dict[tuple[str, str], UsualLag]:
    """The usual lags of those that are behind theirs. Objects with a problem, or that a person has stopped, are left
    out. One query for 50 objects of a kind whose lag is long.
    """
    late = may_be_behind(found)
    usual: dict[tuple[str, str], UsualLag] = {}
    for kind in sorted({one.kind for one in late}):
        lags = {one.uid: one.lag_seconds or 0.0 for one in late if one.kind == kind}
        for uid, highs in _highs_of(connection, kind, sorted(lags)).items():
            known = usual_lag(highs)
            if known is not None and lags[uid] > known.limit:
                usual[kind, uid] = known
    return usual


def may_be_behind(found: Iterable[ShownObject]) -> list[ShownObject]:
    """Objects that do their work, and whose lag is longer than `LEAST`."""
    least = LEAST.total_seconds()
    return [one for one in found if one.severity is Severity.OK and (one.lag_seconds or 0.0) > least]


def usual_lag(highs: Sequence[float]) -> UsualLag | None:
    """None for too few highs."""
    if len(highs) < FEWEST:
        return None
    return UsualLag(sorted(highs)[math.ceil(_SHARE * len(highs)) - 1])


def between(states: Iterable[tuple[datetime, datetime]]) -> list[float]:
    """The highs by (time, state that was reached then), in order: at each time, the age of the state before."""
    return [max(0.0, (at - before).total_seconds()) for (_, before), (at, _) in pairwise(states)]


def _highs_of(connection: sa.Connection, kind: str, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    name = kind_named(kind).highs
    if name is None:
        return {}
    found: HighsOf = resolved(name)
    return found(connection, uids)


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * 3600:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h" if seconds < 48 * 3600 else f"{round(seconds / 86400)} days"
