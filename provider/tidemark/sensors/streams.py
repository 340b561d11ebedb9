"""Waiting until a stream has something to deliver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from tidemark.errors import NotYetSupported
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["StreamHasDataSensor"]


class StreamHasDataSensor(BaseSensorOperator):
    """Succeeds when the stream has unread changes (R120, R123).

    Reads the control store and the source's log, never starts a JVM. Never a false "no"; a "yes" may turn out to net
    to nothing. A stale stream, a recreated or vanished source raise their error at once: waiting would not help.
    Works with `mode="reschedule"`; each poke looks afresh.

    :param stream: name of the stream. (templated)
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("stream", "conn_id")
    ui_color = "#d8eef0"

    def __init__(self, *, stream: str, deferrable: bool = False, conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        if deferrable:
            raise NotYetSupported(
                feature="StreamHasDataSensor(deferrable=True)",
                instead='Use mode="reschedule", which frees the worker as well.',
            )
        super().__init__(**kwargs)
        self.stream = stream
        self.conn_id = conn_id

    def poke(self, context: Context) -> bool:
        """Whether there is something to deliver now."""
        from tidemark.transactions.streams import has_data

        hook = TidemarkHook(self.conn_id)
        found = has_data(hook.open_store(), self.stream, tables=hook.open_table)
        self.log.info("Stream %s %s.", self.stream, "has data" if found else "has nothing new")
        return found
