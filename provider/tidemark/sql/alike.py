"""Names that are similar to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["alike"]

_SHOWN = 3
_ALIKE = 0.6  # 1: equal


def alike(name: str, names: Iterable[str]) -> list[str]:
    """Up to three similar names, the most similar first, ignoring case; all names that differ in case alone."""
    by_key: dict[str, list[str]] = {}
    for one in names:
        by_key.setdefault(one.casefold(), []).append(one)
    close = get_close_matches(name.casefold(), list(by_key), n=_SHOWN, cutoff=_ALIKE)
    return [one for key in close for one in by_key[key]]
