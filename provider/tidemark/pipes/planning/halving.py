"""The files that make a read fail, found by reads of halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Fault", "broken_among", "halves"]


@dataclass(frozen=True)
class Fault:
    """A read that failed. `file`: the one that it names, None if it names none."""

    problem: str
    file: str | None = None


def halves(files: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The files in two parts, the first no shorter than the second; no part is empty."""
    middle = (len(files) + 1) // 2
    return tuple(tuple(part) for part in (files[:middle], files[middle:]) if part)


def broken_among(files: Sequence[str], read: Callable[[Sequence[str]], Fault | None]) -> dict[str, str]:
    """File → why it cannot be read, of those that fail alone or are named by the fault of a read.

    A read of all files, or of a set around them, has failed. A file counts only by a read that failed, so a failure
    that has passed leaves none. b broken files of n take about 2 · b · log2(n) reads.
    """
    broken: dict[str, str] = {}
    left = list(reversed(halves(files)))
    while left:
        some = left.pop()
        fault = read(some)
        if fault is None:
            continue
        named = fault.file if fault.file in some else (some[0] if len(some) == 1 else None)
        if named is not None:
            broken[named] = fault.problem
        left.extend(reversed(halves([file for file in some if file != named])))
    return broken
