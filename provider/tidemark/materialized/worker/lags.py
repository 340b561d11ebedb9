"""The lag of a view, from the store alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemark.control.store import ControlStore
from tidemark.materialized.planning.states import lag_of
from tidemark.materialized.worker.views import get_view
from tidemark.materialized.worker.waves import require_active

__all__ = ["ViewLag", "view_lag"]


@dataclass(frozen=True)
class ViewLag:
    """The time since the point that a view shows; None before its first refresh. `target_seconds`: its target lag."""

    view: str
    seconds: float | None
    target_seconds: float | None
    fresh_at: datetime | None

    def within(self, most: float | None) -> bool:
        """Whether the lag is at most `most` seconds, else at most its target. Without both, any refresh is enough."""
        longest = self.target_seconds if most is None else most
        return self.seconds is not None and (longest is None or self.seconds <= longest)


def view_lag(store: ControlStore, name: str) -> ViewLag:
    """The lag now. Raises KeptViewNotFound, and KeptViewSuspended, since waiting does not help."""
    view = get_view(store, name)
    require_active(view)
    lag = lag_of(view, store.clock())
    target = None if view.target_lag is None or view.target_lag.at_most is None else view.target_lag.at_most
    return ViewLag(
        view.name,
        None if lag is None else lag.total_seconds(),
        None if target is None else target.total_seconds(),
        view.fresh_at,
    )
