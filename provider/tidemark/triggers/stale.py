"""Waiting in the triggerer until a stream is in danger of becoming stale."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.triggers._waiting import WaitTrigger

if TYPE_CHECKING:
    from tidemark.streams.worker.risks import RiskReport
    from tidemark.triggers._poller import SourcePoller

__all__ = ["StreamStaleTrigger"]


class StreamStaleTrigger(WaitTrigger):
    """Fires when a stream cannot be read any more or has less than `hours_left` hours left (R81, R87). On request it
    also fires when its last `failures` consumptions failed, or when changes have waited `unmoved_hours` hours.

    Value of its event: what StreamStaleSensor returns. `stream`: one name, several, or None for all of the store. A
    lake that does not answer is no alarm but a warning in the log.
    """

    def __init__(
        self,
        *,
        stream: str | Sequence[str] | None,
        hours_left: float,
        failures: int | None = None,
        unmoved_hours: float | None = None,
        end: datetime | str,
        conn_id: str = DEFAULT_CONN_ID,
        **waiting: Any,
    ) -> None:
        super().__init__(conn_id=conn_id, end=end, **waiting)
        self.names = [stream] if isinstance(stream, str) else None if stream is None else list(stream)
        self.hours_left = float(hours_left)
        self.failures = failures
        self.unmoved_hours = unmoved_hours

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values only."""
        own = {
            "stream": self.names,
            "hours_left": self.hours_left,
            "failures": self.failures,
            "unmoved_hours": self.unmoved_hours,
        }
        return ("tidemark.triggers.stale.StreamStaleTrigger", {**own, **self.waiting()})

    @property
    def subject(self) -> str:
        """The streams."""
        return "The store of all streams" if self.names is None else f"Stream {', '.join(self.names)}"

    def request(self, poller: SourcePoller) -> Future[RiskReport]:
        """A risk report on all of them."""
        from tidemark.streams.worker.risks import Limit

        unmoved = None if self.unmoved_hours is None else timedelta(hours=self.unmoved_hours)
        return poller.risk_report(self.names, Limit(timedelta(hours=self.hours_left), self.failures, unmoved))

    def value_of(self, answer: RiskReport) -> list[dict[str, Any]] | None:
        """Those at risk, if there are any."""
        for name, problem in answer.unknown:
            self.log.warning("The state of stream %s is unknown now: %s", name, problem)
        return [one.plain() for one in answer.at_risk] or None
