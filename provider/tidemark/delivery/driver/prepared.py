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
    """A checked write. `run` is one Delta command; `close` frees the memory that it keeps, run or not.

    `split`: the constraints that sorted the rows, if others go to a quarantine. `changes`: the number of rows that it
    reads of the change set, if known. `seconds`: the time of its preparation.
    """

    run: Callable[[], None]
    close: Callable[[], None] = _nothing
    split: Split | None = None
    changes: int | None = None
    seconds: float = 0.0
