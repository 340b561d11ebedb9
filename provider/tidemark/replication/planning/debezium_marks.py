"""Positions in a place where envelopes are landed: how far each of its lanes was read.

A lane is read in its own order: a partition of a topic, or files in the order of their names. A position has the
time of a look at all lanes. The number of an envelope behind that look follows, then the places in the lanes. So
positions grow with each look, and sort as texts. Envelopes read up to the look at 12 have positions `12.1`, `12.2` and
so on. The position behind the second is `12.2~…`, and the end of that look is `12~…`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import foreign_object
from tidemark.replication.model.replication import LogPosition

__all__ = ["BEGINNING", "Lanes", "Mark", "event_position", "mark_of", "position_at", "time_text"]

BEGINNING = "beginning"
"""In place of a position: before everything that is there."""

Lanes: TypeAlias = Mapping[str, "tuple[Any, ...]"]
"""How far each lane was read, by its name. A lane that is missing was not begun."""

_DIGITS = 16  # of microseconds since 1970, up to the year 2286
_NUMBERS = 12
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Mark:
    """`at`: microseconds since 1970 of the look. `nth`: the envelope of that look behind which it is; None: its end."""

    at: int = 0
    nth: int | None = None
    lanes: Lanes = field(default_factory=dict)

    @property
    def position(self) -> LogPosition:
        """As the event log and the control store have it."""
        lanes = json.dumps(
            {name: list(place) for name, place in self.lanes.items()}, sort_keys=True, separators=(",", ":")
        )
        number = "" if self.nth is None else f".{self.nth:0{_NUMBERS}d}"
        return LogPosition(f"{self.at:0{_DIGITS}d}{number}~{lanes}")


def mark_of(position: LogPosition) -> Mark:
    """The inverse; of START before everything. Raises InvalidArgument for a position of another kind of source."""
    if not position.commit:
        return Mark()
    place, tilde, lanes = position.commit.partition("~")
    at, _, nth = place.partition(".")
    if not tilde or not at.isdecimal() or len(at) != _DIGITS or (nth and not nth.isdecimal()):
        problem = "is not a position of landed envelopes"
        raise InvalidArgument(argument="position", value=position.commit, problem=problem)
    said = foreign_object(lanes)
    return Mark(int(at), int(nth) if nth else None, {name: tuple(one) for name, one in said.items()})


def event_position(at: int, nth: int) -> str:
    """The commit position of the nth envelope that is read after the look at `at`."""
    return f"{at:0{_DIGITS}d}.{nth:0{_NUMBERS}d}"


def position_at(time: datetime, lanes: Lanes) -> LogPosition:
    """The end of a look."""
    return Mark((time - _EPOCH) // timedelta(microseconds=1), None, lanes).position


def time_text(commit: str) -> str | None:
    """A position as people read it: the time of its look, and `#` with the number of an envelope behind it. None for a
    position of another kind of source.
    """
    place, tilde, _ = commit.partition("~")
    at, _, nth = place.partition(".")
    if not tilde or len(at) != _DIGITS or not at.isdecimal():
        return None
    if int(at) == 0:
        return BEGINNING
    moment = (_EPOCH + timedelta(microseconds=int(at))).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return f"{moment}#{int(nth)}" if nth else moment
