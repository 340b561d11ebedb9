"""A write that has been checked and is ready to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.delivery.model.quarantine import Split

__all__ = ["PreparedWrite"]


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class PreparedWrite:
    """`run` is one Delta command; `close` gives back what was kept in memory for it, run or not. `split`: what sorted
    the rows, where others go to a quarantine. `changes`: how many rows of the change set it reads, where that is known.
    """

    run: Callable[[], None]
    close: Callable[[], None] = _nothing
    split: Split | None = None
    changes: int | None = None
