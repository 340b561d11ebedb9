"""For how long history is kept, as people write it: `90d`, `2160h`, `13w`."""

from __future__ import annotations

import re
from datetime import timedelta

from tidemark.errors import InvalidArgument

__all__ = ["SHORTEST", "keep_of", "require_long_enough"]

SHORTEST = timedelta(days=1)  # longer than any window is pinned, and any job lives
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_TEXT = re.compile(r"(\d{1,6})\s*([hdw])")


def keep_of(argument: str, text: str) -> timedelta:
    """The length of `text`. Raises InvalidArgument for another form, and for less than a day."""
    read = _TEXT.fullmatch(text.strip().lower())
    if read is None:
        problem = "it must be a whole number with a unit: hours, days or weeks, as in 36h, 90d or 13w"
        raise InvalidArgument(argument=argument, value=text, problem=problem)
    try:
        keep = int(read[1]) * _UNITS[read[2]]
    except OverflowError:
        keep = timedelta.max
    return require_long_enough(argument, keep)


def require_long_enough(argument: str, keep: timedelta) -> timedelta:
    """The length itself. Raises InvalidArgument for less than a day."""
    if keep < SHORTEST:
        problem = "a day is the shortest: windows may be pinned, and their jobs live, for nearly as long"
        raise InvalidArgument(argument=argument, value=str(keep), problem=problem)
    return keep
