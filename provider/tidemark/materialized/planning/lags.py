"""Target lags as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

from tidemark.errors import InvalidArgument
from tidemark.materialized.model.definitions import TargetLag

__all__ = ["DOWNSTREAM", "lag_in_words", "target_lag"]

DOWNSTREAM = "DOWNSTREAM"
_LAG = re.compile(r"\s*(\d{1,9})\s*(second|minute|hour|day)s?\s*", re.IGNORECASE)
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def target_lag(value: object, argument: str = "target_lag") -> TargetLag:
    """The lag of '10 minutes', a timedelta or DOWNSTREAM. Raises InvalidArgument."""
    if isinstance(value, TargetLag):
        return value
    if isinstance(value, timedelta) and value > timedelta():
        return TargetLag(value)
    if isinstance(value, str):
        if value.strip().upper() == DOWNSTREAM:
            return TargetLag()
        found = _LAG.fullmatch(value)
        if found is not None and int(found[1]) > 0:
            return TargetLag(timedelta(seconds=int(found[1]) * _SECONDS[found[2].lower()]))
    problem = "a target lag is DOWNSTREAM, or a number of seconds, minutes, hours or days, as in '10 minutes'"
    raise InvalidArgument(argument=argument, value=value, problem=problem)


def lag_in_words(lag: TargetLag | None) -> str | None:
    """The lag as SQL has it, in the largest unit that divides it; None for none."""
    if lag is None:
        return None
    if lag.at_most is None:
        return DOWNSTREAM
    seconds = int(lag.at_most.total_seconds())
    unit, size = next((unit, size) for unit, size in reversed(_SECONDS.items()) if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}" + ("" if count == 1 else "s")
