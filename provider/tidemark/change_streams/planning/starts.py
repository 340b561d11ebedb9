"""The start of a consumer group, as people write it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from tidemark.errors import InvalidArgument
from tidemark.streams.planning.points import time_of

__all__ = ["GroupStart", "start_of"]

GroupStart = datetime | Literal["earliest", "now"]


def start_of(argument: str, value: datetime | str) -> GroupStart:
    """The start of a group, also as a template renders it. Raises InvalidArgument."""
    if isinstance(value, str):
        named = value.strip().lower()
        if named == "earliest":
            return "earliest"
        if named == "now":
            return "now"
    moment = time_of(value)
    if moment is None or moment.tzinfo is None:
        problem = "it is earliest, now, or a time with a zone, as 2026-01-31T12:00:00Z"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return moment
