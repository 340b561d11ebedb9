"""Patterns of names, `schema`, `schema.table` or `schema.table.column`: `*` for any text in a part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["fits", "parts_of", "pattern_of"]

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def fits(path: Sequence[str], parts: Sequence[str], *, any_case: bool = False) -> bool:
    """Whether the parts of a pattern fit the beginning of the path. `any_case`: names in another case are the same."""
    if any_case:
        path, parts = [one.casefold() for one in path], [one.casefold() for one in parts]
    return len(parts) <= len(path) and all(_fits(part, name) for part, name in zip(parts, path, strict=False))


@lru_cache(maxsize=1024)
def parts_of(pattern: str) -> tuple[str, ...]:
    """The parts between the dots outside quotes; () for a text that is no pattern."""
    parts: list[str] = []
    at = 0
    while True:
        found = _PART.match(pattern, at)
        if found is None:
            return ()
        quoted, bare = found.groups()
        parts.append(bare if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(pattern):
            return tuple(parts)
        if pattern[at] != ".":
            return ()
        at += 1


def pattern_of(path: Sequence[str]) -> str:
    """The pattern that names just this path, if no name in it has a `*`."""
    return ".".join('"' + one.replace('"', '""') + '"' if {".", '"'} & set(one) else one for one in path)


def _fits(part: str, name: str) -> bool:
    return part == name or ("*" in part and _like(part).fullmatch(name) is not None)


@lru_cache(maxsize=1024)
def _like(part: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(text) for text in part.split("*")), re.DOTALL)
