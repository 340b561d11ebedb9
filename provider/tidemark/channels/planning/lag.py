"""The time that rows may wait in a client's buffer (MAX_CLIENT_LAG)."""

from __future__ import annotations

import re
from datetime import timedelta

from tidemark.errors import InvalidArgument

__all__ = ["DEFAULT_LAG", "lag_of"]

DEFAULT_LAG = timedelta(seconds=1)
_LONGEST = timedelta(minutes=10)
_FORM = re.compile(r"\s*(\d{1,9})\s*(seconds?|minutes?)?\s*", re.IGNORECASE)


def lag_of(text: str | int) -> timedelta:
    """The lag in "N", "N second(s)" or "N minute(s)": 1 second to 10 minutes. Raises InvalidArgument."""
    found = _FORM.fullmatch(str(text))
    lag = None
    if found is not None:
        minutes = (found[2] or "").lower().startswith("minute")
        lag = timedelta(minutes=int(found[1])) if minutes else timedelta(seconds=int(found[1]))
    if lag is None or not DEFAULT_LAG <= lag <= _LONGEST:
        problem = 'it must be "N", "N seconds" or "N minutes", from 1 second to 10 minutes'
        raise InvalidArgument(argument="max_client_lag", value=text, problem=problem)
    return lag
