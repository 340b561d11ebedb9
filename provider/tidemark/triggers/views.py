"""Waiting in the triggerer until the rows of a view are young enough."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.model.codec import to_plain
from tidemark.triggers._waiting import WaitTrigger

if TYPE_CHECKING:
    from tidemark.materialized.worker.lags import ViewLag
    from tidemark.triggers._poller import SourcePoller

__all__ = ["ViewLagTrigger"]


class ViewLagTrigger(WaitTrigger):
    """Fires when the lag of a view is short enough; ViewLagSensor defers to it.

    Value of its event: {view, seconds, target_seconds, fresh_at}. Errors, deadline and interval: see WaitTrigger.
    """

    def __init__(
        self,
        *,
        view: str,
        end: datetime | str,
        at_most: float | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        **waiting: Any,
    ) -> None:
        super().__init__(conn_id=conn_id, end=end, **waiting)
        self.view = view
        self.at_most = at_most

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values only."""
        mine = {"view": self.view, "at_most": self.at_most}
        return ("tidemark.triggers.views.ViewLagTrigger", {**mine, **self.waiting()})

    @property
    def subject(self) -> str:
        """The view."""
        return f"View {self.view}"

    def request(self, poller: SourcePoller) -> Future[ViewLag]:
        """A look into the store."""
        return poller.view_lag(self.view)

    def value_of(self, answer: ViewLag) -> dict[str, Any] | None:
        """The lag, if it is short enough."""
        found: dict[str, Any] = to_plain(answer)
        return found if answer.within(self.at_most) else None
