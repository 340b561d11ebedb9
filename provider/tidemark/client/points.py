"""Points and moments as users of a notebook give them."""

from __future__ import annotations

from datetime import datetime

from tidemark.errors import InvalidArgument
from tidemark.streams.planning.points import Offset, Point, Statement, Stream, Timestamp, Version, time_of

__all__ = ["Offset", "Point", "Statement", "Stream", "Timestamp", "Version", "as_moment"]


def as_moment(argument: str, when: datetime | str | None) -> datetime | None:
    """A time, or its ISO 8601 text with a zone. Raises InvalidArgument for a text that is none; anything else is for
    those who know what it is to be.
    """
    if not isinstance(when, str):
        return when
    moment = time_of(when)
    if moment is None or moment.tzinfo is None:
        problem = "give a time with a zone, as 2026-01-31T12:00:00Z"
        raise InvalidArgument(argument=argument, value=when, problem=problem)
    return moment
