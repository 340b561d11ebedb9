"""Waiting in the triggerer until a stream has something to deliver."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.triggers._waiting import WaitTrigger

if TYPE_CHECKING:
    from tidemark.streams.worker.observation import Observation
    from tidemark.triggers._poller import SourcePoller

__all__ = ["StreamHasDataTrigger"]


class StreamHasDataTrigger(WaitTrigger):
    """Fires when the stream has unread changes (R120, R123); what StreamHasDataSensor defers to.

    Value of its event: {stream, offset, head, behind}. Errors, deadline and interval: see WaitTrigger.
    """

    def __init__(self, *, stream: str, end: datetime | str, conn_id: str = DEFAULT_CONN_ID, **waiting: Any) -> None:
        super().__init__(conn_id=conn_id, end=end, **waiting)
        self.stream = stream

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values only."""
        return ("tidemark.triggers.streams.StreamHasDataTrigger", {"stream": self.stream, **self.waiting()})

    @property
    def subject(self) -> str:
        """The stream."""
        return f"Stream {self.stream}"

    def request(self, poller: SourcePoller) -> Future[Observation]:
        """An observation that is shared by all who wait for the stream."""
        return poller.observe(self.stream)

    def value_of(self, answer: Observation) -> dict[str, Any] | None:
        """The stream's offset and head, if it has data."""
        if not answer.has_data:
            return None
        offset = answer.stream.offset.version
        return {"stream": answer.stream.name, "offset": offset, "head": answer.head, "behind": answer.behind}
