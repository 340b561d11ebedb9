"""The cheaper way to refresh, from the sizes in the logs."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.materialized.model.shapes import KeptShape
from tidemark.model.statements import RefreshHow

__all__ = ["BaseSize", "Choice", "Estimate", "choose"]


@dataclass(frozen=True)
class BaseSize:
    """A base table in the window of a refresh.

    `changed_bytes`: of the files that its commits in the window added or removed, with deletion vectors; 0 for none.
    `bytes`: of its files at the window's end.
    """

    changed_bytes: int
    bytes: int


@dataclass(frozen=True)
class Estimate:
    """The sizes for one refresh. `bases`: in the order of `shape.followed.bases`. `kept_bytes`: of the kept table's
    files. `kept_rows` and `groups`: of a table of partial aggregates now, and after its last compaction or full
    refresh; None if unknown.
    """

    shape: KeptShape
    bases: tuple[BaseSize, ...]
    kept_bytes: int
    kept_rows: int | None = None
    groups: int | None = None


@dataclass(frozen=True)
class Choice:
    """The way to refresh, its reason, and the weighted bytes of both ways (None: impossible)."""

    how: RefreshHow
    why: str
    incremental_bytes: int | None
    full_bytes: int


def choose(estimate: Estimate) -> Choice:
    """The cheaper way. Partial aggregates of more than twice the groups are compacted by an incremental refresh."""
    raise NotImplementedError
