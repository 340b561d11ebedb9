"""The arguments of operators and commands for a stream: where it starts, where it continues, in which mode, and why."""

from __future__ import annotations

from datetime import datetime

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import whole_number
from tidemark.model.streams import StreamMode

__all__ = ["end_of", "mode_of", "reason_of", "start_of", "version_or_time"]


def version_or_time(argument: str, value: str | int | datetime) -> int | datetime:
    """A table version (a number or its digits) or a time with a zone (ISO 8601). Raises InvalidArgument."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        time = value if isinstance(value, datetime) else None
        if isinstance(value, str):
            if (version := whole_number(value.strip())) is not None:
                return version
            time = datetime.fromisoformat(value.strip())
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidArgument(
            argument=argument,
            value=value,
            problem="give a version number or a time with a zone, as 2026-01-31T12:00:00Z",
        )
    return time


def mode_of(value: str) -> StreamMode:
    """The mode of a stream. Raises InvalidArgument."""
    if value not in tuple(StreamMode):
        raise InvalidArgument(argument="mode", value=value, problem=f"it must be one of {', '.join(StreamMode)}")
    return StreamMode(value)


def start_of(argument: str, value: int | str | datetime | None) -> int | datetime | None:
    """The start of a stream; None: at the newest version, also as a template renders that. Raises InvalidArgument."""
    return None if value is None or str(value).strip().lower() in ("", "none") else version_or_time(argument, value)


def end_of(argument: str, value: int | str | datetime) -> int | datetime | None:
    """None: now. Raises InvalidArgument."""
    return None if str(value).strip().lower() == "now" else version_or_time(argument, value)


def reason_of(argument: str, value: str) -> str:
    """Why changes are passed over. Raises InvalidArgument for no reason at all."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument=argument, value=value, problem="say why these changes may be passed over")
    return value
