"""Arguments that operators of clustering read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import is_left_out, whole_number_of

__all__ = ["bounds_of", "depth_of", "names_of"]


def names_of(argument: str, value: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names, one or several; None for all, also as a template renders it. Raises InvalidArgument."""
    if value is None or is_left_out(value):
        return None
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidArgument(argument=argument, value=value, problem="give names, as texts")
    return tuple(name.strip() for name in names)


def depth_of(argument: str, value: float | str | None) -> float | None:
    """An average depth, from 1 on; None for that of the table. Raises InvalidArgument."""
    if value is None or is_left_out(value):
        return None
    try:
        depth = float(value)
    except ValueError:
        depth = 0.0
    if not 1 <= depth < float("inf"):
        raise InvalidArgument(argument=argument, value=value, problem="give a number from 1 on")
    return depth


def bounds_of(
    depth: float | str | None, run_bytes: int | str | None, day_bytes: int | str | None, file_bytes: int | str | None
) -> dict[str, Any]:
    """The bounds that are given, as fields of a `Goal`. Raises InvalidArgument."""
    said = {
        "depth": depth_of("depth", depth),
        "run_bytes": whole_number_of("run_bytes", run_bytes),
        "day_bytes": whole_number_of("day_bytes", day_bytes),
        "file_bytes": whole_number_of("file_bytes", file_bytes),
    }
    return {name: value for name, value in said.items() if value is not None}
