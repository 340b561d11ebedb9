"""Patterns of LIKE, as SHOW takes them."""

from __future__ import annotations

import re

__all__ = ["like_pattern"]


def like_pattern(like: str) -> re.Pattern[str]:
    """The pattern for `fullmatch`: % is any text, _ any character, case does not count.

    A backslash takes the meaning from the character behind it.
    """
    parts = re.findall(r"\\.|.", like, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(part) or re.escape(part[-1]) for part in parts), re.IGNORECASE | re.DOTALL)
