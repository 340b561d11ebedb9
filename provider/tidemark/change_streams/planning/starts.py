"""The start of a consumer group, as people write it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from tidemark.errors import InvalidArgument
from tidemark.streams.planning.points import version_or_time

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
    moment = version_or_time(argument, value)
    if isinstance(moment, int):
        raise InvalidArgument(argument=argument, value=value, problem="it is earliest, now, or a time with a zone")
    return moment
