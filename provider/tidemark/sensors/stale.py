"""Waiting until a stream is in danger of becoming stale."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import PokeReturnValue

from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._base import hours_of, is_left_out, whole_number_of
from tidemark.operators._constants import check_constants
from tidemark.operators._plans import names_of
from tidemark.sensors._deferring import StreamSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.streams.worker.risks import Limit
    from tidemark.triggers.stale import StreamStaleTrigger

__all__ = ["StreamStaleSensor", "check_limit", "limit_of", "streams_of"]

HOUR = timedelta(hours=1)


class StreamStaleSensor(StreamSensor):
    """Succeeds when a stream cannot be read any more or has less than `hours_left` hours left (R81, R87). On request it
    succeeds, too, when consumption fails repeatedly, or when the offset does not move although there are changes.

    Returns the streams at risk, the least time first: [{stream, table, stale_after, hours_left, behind, reason,
    staleness, lost_version, bytes_kept, bytes_past_retention, risks, failures_in_row, last_error, unmoved_hours}].
    `risks` has some of stale, failing and stuck. `reason` says why a stream cannot be read, and is None for a forecast.
    Reads the control store and logs, never starts a JVM. A lake that does not answer is no alarm but a warning in the
    log. Works with `deferrable=True` and `mode="reschedule"`; each look is a fresh one.

    :param stream: the stream, or several; None: all of the control store. (templated)
    :param hours_left: the time that must be left, in hours. (templated)
    :param failures: report a stream after this many failed attempts in a row; None: not checked. (templated)
    :param unmoved_hours: report a stream when changes have waited this long and its offset did not move; None: not
        checked. (templated)
    :param deferrable: wait in the triggerer; None: the value of `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("stream", "hours_left", "failures", "unmoved_hours", "conn_id")
    ui_color = "#d8eef0"

    def __init__(
        self,
        *,
        stream: str | Sequence[str] | None = None,
        hours_left: float | str = 24.0,
        failures: int | str | None = None,
        unmoved_hours: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.hours_left = hours_left
        self.failures = failures
        self.unmoved_hours = unmoved_hours
        check_limit(self)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether any stream is at risk now. Raises StreamNotFound, StoreError, InvalidArgument."""
        from tidemark.streams.worker.risks import risk_report

        hook = TidemarkHook(self.conn_id)
        limit = limit_of(self.hours_left, self.failures, self.unmoved_hours)
        found = risk_report(hook.open_store(), streams_of(self.stream), hook.open_table, limit)
        for name, problem in found.unknown:
            self.log.warning("The state of stream %s is unknown now: %s", name, problem)
        for one in found.at_risk:
            self.log.info("%s", one)
        return PokeReturnValue(
            is_done=bool(found.at_risk),
            xcom_value=[one.plain() for one in found.at_risk],
        )

    def trigger(self, **waiting: Any) -> StreamStaleTrigger:
        """Waits in the triggerer."""
        from tidemark.triggers.stale import StreamStaleTrigger

        limit = limit_of(self.hours_left, self.failures, self.unmoved_hours)
        return StreamStaleTrigger(
            stream=streams_of(self.stream),
            hours_left=limit.time_left / HOUR,
            failures=limit.failures,
            unmoved_hours=None if limit.unmoved is None else limit.unmoved / HOUR,
            **waiting,
        )


def streams_of(value: str | Sequence[str] | None) -> list[str] | None:
    """The names of streams; None for all, also as a template renders it."""
    if value is None or is_left_out(value):
        return None
    return [value] if isinstance(value, str) else list(value)


def limit_of(hours_left: float | str, failures: int | str | None, unmoved_hours: float | str | None) -> Limit:
    """From where on a stream is at risk, also as templates render it. Raises InvalidArgument."""
    from tidemark.streams.worker.risks import Limit

    return Limit(
        time_left=hours_of("hours_left", hours_left),
        failures=whole_number_of("failures", failures),
        unmoved=_hours_or_none("unmoved_hours", unmoved_hours),
    )


def check_limit(operator: Any) -> None:
    """Check the streams and the limits from which on one is at risk, if these are constants. Raises InvalidArgument."""
    check_constants(
        operator, stream=names_of, hours_left=hours_of, failures=whole_number_of, unmoved_hours=_hours_or_none
    )


def _hours_or_none(argument: str, value: float | str | None) -> timedelta | None:
    return None if value is None or is_left_out(value) else hours_of(argument, value)
