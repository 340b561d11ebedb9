"""The state of a kept query, and its lag."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from tidemark.materialized.model.definitions import KeptView

__all__ = ["ViewState", "is_late", "lag_of", "state_of"]


class ViewState(StrEnum):
    """The states of a kept query."""

    INITIALIZING = "initializing"  # its first refresh has not ended
    ACTIVE = "active"
    FAILING = "failing"  # its last refresh failed; the next one tries again
    SUSPENDED = "suspended"  # by a person
    BROKEN = "broken"  # a change of a base has suspended it


def state_of(view: KeptView) -> ViewState:
    """The state by the view's row."""
    if view.suspended is not None:
        return ViewState.SUSPENDED if view.problem is None else ViewState.BROKEN
    if view.problem is not None:
        return ViewState.FAILING
    return ViewState.INITIALIZING if view.fresh_at is None else ViewState.ACTIVE


def lag_of(view: KeptView, now: datetime) -> timedelta | None:
    """The time since the point that the view shows; None before its first refresh."""
    return None if view.fresh_at is None else max(timedelta(), now - view.fresh_at)


def is_late(view: KeptView, now: datetime) -> bool:
    """Whether a view that is refreshed is behind its own target lag."""
    lag, target = lag_of(view, now), None if view.target_lag is None else view.target_lag.at_most
    return view.suspended is None and lag is not None and target is not None and lag > target
