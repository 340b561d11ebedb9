"""The arguments for a stream: where it starts, where it continues, in which mode, by which keys, and why. Operators,
commands and notebooks share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.model.statements import SchemaEvolution
from tidemark.model.streams import StreamMode
from tidemark.streams.planning.points import version_or_time

__all__ = ["end_of", "evolution_of", "mode_of", "names_of", "reason_of", "start_of"]


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


def names_of(argument: str, value: Any) -> tuple[str, ...]:
    """One name or several, without doubles, in order. Raises InvalidArgument for anything but text."""
    if value is None or value == "":
        return ()
    names: list[Any] = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [None]
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidArgument(argument=argument, value=value, problem="it must be a name or a list of names")
    return tuple(dict.fromkeys(name.strip() for name in names))


def evolution_of(value: str) -> SchemaEvolution:
    """The fate of columns that the target lacks. Raises InvalidArgument."""
    if value not in tuple(SchemaEvolution):
        raise InvalidArgument(argument="schema_evolution", value=value, problem="it must be 'fail' or 'add'")
    return SchemaEvolution(value)
