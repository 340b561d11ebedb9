"""Clustered tables, and the reclusterings that let them keep to their keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemark.model.streams import TableRef

__all__ = [
    "ClusteredTable",
    "Goal",
    "How",
    "Layer",
    "Plan",
    "Recluster",
    "ReclusterState",
    "Reclustered",
    "Seen",
]


class How(StrEnum):
    """The way of a reclustering. CUBES: files as they arrived, and earlier results up to a size, become one result.
    FULL: all files do. NOTHING: no file is rewritten.
    """

    NOTHING = "nothing"
    CUBES = "cubes"
    FULL = "full"


class ReclusterState(StrEnum):
    """The state of a reclustering. LEFT: other writers were first, and the next run tries again."""

    PLANNED = "planned"
    DONE = "done"
    LEFT = "left"
    FAILED = "failed"


@dataclass(frozen=True)
class Goal:
    """The bounds of a table's upkeep. `depth`: the average depth that is kept. `run_bytes` and `day_bytes`: how much a
    run and all runs of 24 hours may rewrite; None: any amount. `file_bytes`: the size of rewritten files; None: that of
    Delta.
    """

    depth: float = 4.0
    run_bytes: int | None = None
    day_bytes: int | None = None
    file_bytes: int | None = None


@dataclass(frozen=True)
class Layer:
    """Files that one writer has left: a result of clustering under its id, or under None all files as they arrived.
    `depth`: their average depth among themselves. `keeps`: they were clustered by the present key, or not at all.
    `without`: how many more files have no statistics of the key, with `without_bytes` of the bytes.
    """

    cube: str | None
    bytes: int
    files: int
    depth: float
    keeps: bool = True
    without: int = 0
    without_bytes: int = 0


@dataclass(frozen=True)
class Seen:
    """The state of a table when it was last looked at. `depth` is the average; `largest` that of the deepest file.
    `exact`: both were measured. Otherwise they are bounds, computed from the files that came since. `layer_bytes`: how
    much new data deepens the table by one, averaged over the last reclusterings; None before the first. `floor`: the
    average depth of the result of the last full rewrite, by itself; None before the first. `without`: how many files
    have no statistics of the key, and may get them by a reclustering. It is None if an earlier release looked.
    """

    version: int
    depth: float
    largest: int
    files: int
    bytes: int
    exact: bool = True
    layer_bytes: float | None = None
    floor: float | None = None
    without: int | None = None


@dataclass(frozen=True)
class Plan:
    """A decision about one table. `cube_bytes`: earlier results smaller than this are rewritten, too. `bytes`: how much
    is rewritten. `depth`: the average depth that is expected afterwards.
    """

    how: How
    why: str
    bytes: int = 0
    cube_bytes: int = 0
    depth: float | None = None


@dataclass(frozen=True)
class ClusteredTable:
    """A table that is kept clustered by its key. `suspended`: why it is not reclustered at present."""

    uid: str
    table: TableRef
    key: tuple[str, ...]
    created_at: datetime
    goal: Goal = field(default_factory=Goal)
    suspended: str | None = None
    seen: Seen | None = None
    seen_at: datetime | None = None
    problem: str | None = None
    problem_at: datetime | None = None
    problem_run: str | None = None
    ended_at: datetime | None = None

    @property
    def name(self) -> str:
        """The name by which it was registered."""
        return self.table.name


@dataclass(frozen=True)
class Recluster:
    """One reclustering of a table in the ledger. `run`: the key of the run that planned it. `base_version`: of the
    table when it was planned. `bytes`: written, also by attempts that failed or lost against other writers, which
    count as planned. `depth_after` and `version`: after the rewriting commit.
    """

    uid: str
    table_uid: str
    run: str
    planned_at: datetime
    how: How
    why: str
    base_version: int
    planned_bytes: int
    cube_bytes: int
    depth_before: float
    state: ReclusterState = ReclusterState.PLANNED
    bytes: int | None = None
    files_removed: int | None = None
    files_added: int | None = None
    depth_after: float | None = None
    seconds: float | None = None
    version: int | None = None
    ended_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True)
class Reclustered:
    """The outcome for one table. `state`: of the reclustering; None if no file had to be rewritten, or none may be.
    `why`: the reason in words. `depth_before`, `depth_after`: average depths; None if they are not known.
    """

    table: str
    how: How
    why: str
    state: ReclusterState | None = None
    depth_before: float | None = None
    depth_after: float | None = None
    bytes: int = 0
    seconds: float = 0.0
    version: int | None = None
