"""Refreshes of kept queries: as they are planned, and as the history keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemark.materialized.model.definitions import RefreshMode
from tidemark.model.statements import RefreshHow

__all__ = ["Level", "Measured", "Refresh", "RefreshState", "Refreshed", "Wave"]


class RefreshState(StrEnum):
    """The states of a refresh."""

    PLANNED = "planned"
    DONE = "done"
    UNCHANGED = "unchanged"  # no base has changed, so no job was started
    FAILED = "failed"


@dataclass(frozen=True)
class Refresh:
    """A refresh in the history of a view.

    `run`: the run that planned it, and with it the wave of all views that it planned. `as_of`: the time for which the
    wave answers; `ends`: path → version of the tables in which its windows end. `how`: the way that was chosen, for the
    reason `why`; None before the choice, and if nothing has changed. `incremental_bytes`, `full_bytes`: the estimates
    of both ways. `rows`, `bytes`: of the write. `seconds`: of the transaction, which a level of views shares;
    `write_seconds`: of this write in its driver. `versions`: path → version of all bases at its end.
    """

    view_uid: str
    run: str
    planned_at: datetime
    as_of: datetime
    asked: RefreshMode
    level: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    state: RefreshState = RefreshState.PLANNED
    how: RefreshHow | None = None
    why: str | None = None
    incremental_bytes: int | None = None
    full_bytes: int | None = None
    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    write_seconds: float | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    kept_version: int | None = None
    ended_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True)
class Measured:
    """The way, the estimated bytes of that way, and the seconds of an earlier write."""

    how: RefreshHow
    estimated_bytes: int
    seconds: float


@dataclass(frozen=True)
class Level:
    """Views that one job refreshes, since none of them reads another one. `number`: its place in the wave."""

    number: int
    views: tuple[str, ...]


@dataclass(frozen=True)
class Wave:
    """Refreshes that were planned together, and show one point in time. `run`: the run that planned it."""

    run: str
    as_of: datetime
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Refreshed:
    """The outcome for one view. `lag_seconds`: between the point in time that it shows and the end of the refresh.

    `why`: the reason for the way, or for a refresh that failed.
    """

    view: str
    state: RefreshState
    as_of: datetime
    how: RefreshHow | None = None
    why: str | None = None
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    lag_seconds: float = 0.0
