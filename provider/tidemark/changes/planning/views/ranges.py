"""Few ranges that contain many keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from typing import Any, TypeVar

__all__ = ["ranges"]

Key = TypeVar("Key", int, date)


def ranges(keys: Sequence[Key], most: int) -> list[tuple[Key, Key]]:
    """At most `most` ranges, ends included, that contain all of the ascending `keys` without the widest gaps."""
    indices = range(1, len(keys))
    gaps: list[int] = sorted(indices, key=lambda index: _width(keys, index), reverse=True)[: most - 1]
    cuts = [0, *sorted(gaps), len(keys)]
    return [(keys[first], keys[last - 1]) for first, last in pairwise(cuts)]


def _width(keys: Sequence[Any], index: int) -> Any:
    return keys[index] - keys[index - 1]
