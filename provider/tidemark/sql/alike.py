"""Names that somebody may have meant who mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["alike"]

_SHOWN = 3
_ALIKE = 0.6  # of 1: the same


def alike(name: str, names: Iterable[str]) -> list[str]:
    """Up to three, the most alike first, whatever the case; names that differ in it alone are all given."""
    by_key: dict[str, list[str]] = {}
    for one in names:
        by_key.setdefault(one.casefold(), []).append(one)
    close = get_close_matches(name.casefold(), list(by_key), n=_SHOWN, cutoff=_ALIKE)
    return [one for key in close for one in by_key[key]]
