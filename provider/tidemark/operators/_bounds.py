"""The limits of a window, as arguments of operators."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import is_left_out, whole_number_of
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.planning.points import version_or_time

__all__ = ["bound_of", "bounds_given"]

_ARGUMENTS = ("max_commits", "max_rows", "max_bytes", "until")


def bounds_given(operator: Any) -> dict[str, Any]:
    """The arguments of `bound_of` that the operator has, as they are now."""
    return {name: getattr(operator, name) for name in _ARGUMENTS if hasattr(operator, name)}


def bound_of(
    *,
    max_commits: int | str | None = None,
    max_rows: int | str | None = None,
    max_bytes: int | str | None = None,
    until: datetime | str | None = None,
) -> Bound:
    """The bound that the arguments give, also as templates render them. Raises InvalidArgument."""
    moment: datetime | None = None
    if until is not None and not is_left_out(until):
        asked = version_or_time("until", until)
        if isinstance(asked, int):
            problem = "it must be a time with a zone; versions are counted by max_commits"
            raise InvalidArgument(argument="until", value=until, problem=problem)
        moment = asked
    return Bound(
        max_commits=whole_number_of("max_commits", max_commits),
        max_rows=whole_number_of("max_rows", max_rows),
        max_bytes=whole_number_of("max_bytes", max_bytes),
        until=moment,
    )
