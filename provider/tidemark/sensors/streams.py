"""Waiting until a stream has something to deliver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark import metrics
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.sensors._deferring import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.triggers.streams import StreamHasDataTrigger

__all__ = ["StreamHasDataSensor"]


class StreamHasDataSensor(StreamSensor):
    """Succeeds when the stream has unread changes (R120, R123).

    Reads the control store and the source's log, never starts a JVM. Never a false "no"; a "yes" may turn out to net
    to nothing. A stream that is stale or not there, a recreated or vanished source raise their error at once: waiting
    would not help. Works with `deferrable=True` and `mode="reschedule"`; each look is a fresh one.

    :param stream: name of the stream. (templated)
    :param deferrable: wait in the triggerer; default: `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("stream", "conn_id")
    ui_color = "#d8eef0"

    def __init__(self, *, stream: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream

    def poke(self, context: Context) -> bool:
        """Whether there is something to deliver now."""
        from tidemark.transactions.streams import has_data

        hook = TidemarkHook(self.conn_id)
        found = has_data(hook.open_store(), self.stream, tables=hook.open_table)
        metrics.looked(self.stream, found)
        self.log.info("Stream %s %s.", self.stream, "has data" if found else "has nothing new")
        return found

    def trigger(self, **waiting: Any) -> StreamHasDataTrigger:
        """Waits in the triggerer."""
        from tidemark.triggers.streams import StreamHasDataTrigger

        return StreamHasDataTrigger(stream=self.stream, **waiting)

    def returned(self, found: Any) -> None:
        """Nothing, as on a worker: what is there is for the consumer to read from the store."""
