"""Dividing names among a limited number of tasks."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["in_groups"]


def in_groups(names: Sequence[str], most: int) -> list[str | list[str]]:
    """At most `most` groups of nearly the same size, in order; a group of one is the bare name.

    One task each, as `expand` takes them: Airflow maps over no more than `[core] max_map_length`.
    """
    size = -(-len(names) // max(most, 1)) or 1
    if size == 1:
        return list(names)
    return [list(names[start : start + size]) for start in range(0, len(names), size)]
