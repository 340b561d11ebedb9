"""Waiting until a stream is in danger of becoming stale."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import PokeReturnValue

from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.sensors._deferring import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.triggers.stale import StreamStaleTrigger

__all__ = ["StreamStaleSensor", "hours_of"]


class StreamStaleSensor(StreamSensor):
    """Succeeds when a stream cannot be read any more or has less than `hours_left` hours left (R81, R87).

    Returns the streams at risk, those with the least time first: [{stream, table, stale_after, hours_left, behind,
    reason}]; `reason` says why one cannot be read. Reads the control store and logs, never starts a JVM. A lake that
    does not answer is no alarm but a warning in the log. Works with `deferrable=True` and `mode="reschedule"`; each
    look is a fresh one.

    :param stream: the stream, or several; None: all of the control store. (templated)
    :param hours_left: the time that must be left, in hours. (templated)
    :param deferrable: wait in the triggerer; default: `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("stream", "hours_left", "conn_id")
    ui_color = "#d8eef0"

    def __init__(
        self,
        *,
        stream: str | Sequence[str] | None = None,
        hours_left: float | str = 24.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.hours_left = hours_left

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether any stream is at risk now. Raises StreamNotFound, StoreError, InvalidArgument."""
        from tidemark.transactions.standing import outlook
        from tidemark.triggers.stale import plain

        hook = TidemarkHook(self.conn_id)
        names = [self.stream] if isinstance(self.stream, str) else self.stream
        found = outlook(hook.open_store(), names, hook.open_table, within=hours_of("hours_left", self.hours_left))
        for name, problem in found.unknown:
            self.log.warning("Nothing is known of stream %s now: %s", name, problem)
        for one in found.at_risk:
            self.log.info("%s", one)
        return PokeReturnValue(
            is_done=bool(found.at_risk),
            xcom_value=[plain(one) for one in found.at_risk],
        )

    def trigger(self, **waiting: Any) -> StreamStaleTrigger:
        """Waits in the triggerer."""
        from tidemark.triggers.stale import StreamStaleTrigger

        hours = hours_of("hours_left", self.hours_left).total_seconds() / 3600
        return StreamStaleTrigger(stream=self.stream, hours_left=hours, **waiting)


def hours_of(argument: str, value: float | str) -> timedelta:
    """A time in hours, also as a template renders it. Raises InvalidArgument."""
    try:
        hours = float(value)
        if hours < 0:
            raise ValueError
        return timedelta(hours=hours)
    except (ValueError, OverflowError) as error:
        raise InvalidArgument(argument=argument, value=value, problem="it must be a number of hours") from error
