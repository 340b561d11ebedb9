"""Waiting until a consumer group is in danger of losing records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.operators._base import is_left_out, seconds_of
from tidemark.operators._constants import check_constants, is_constant
from tidemark.operators._error_log import useful_line_first

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.change_streams.model.change_streams import GroupStatus

__all__ = ["ConsumerGroupStaleSensor"]

HOUR = 3600.0


class ConsumerGroupStaleSensor(BaseSensorOperator):
    """Succeeds when a consumer group has used up most of the retention: its low watermark is 80 % of it behind. With
    `hours_left` it succeeds when fewer hours are left before unread records may be removed.

    Returns the groups at risk, those with the least time first: [{change_stream, consumer_group, low_watermark,
    hours_left, lag_seconds, paused, failed}]. `failed` has the last error of its partitions. Reads the control store,
    never starts a JVM. Each look is a fresh one. Raises ChangeStreamNotFound, ConsumerGroupNotFound, InvalidArgument.

    :param change_stream: its name; None: all of the control store. (templated)
    :param consumer_group: which group; None: all of the change stream. (templated)
    :param hours_left: the time that must be left, in hours; None: a fifth of the retention. (templated)
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "consumer_group", "hours_left", "conn_id")
    ui_color = "#d8eef0"

    def __init__(
        self,
        *,
        change_stream: str | None = None,
        consumer_group: str | None = None,
        hours_left: float | str | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group
        self.hours_left = hours_left
        self.conn_id = conn_id
        check_constants(self, hours_left=_seconds_left)
        if is_constant([change_stream, consumer_group]):
            _require_stream(change_stream, consumer_group)

    @useful_line_first
    def execute(self, context: Context) -> Any:
        """As every sensor."""
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether any group is at risk now."""
        limit = _seconds_left("hours_left", self.hours_left)
        at_risk = [one for one in self._groups() if _at_risk(one, limit)]
        for one in at_risk:
            self.log.info("%s of %s: %s", one.group.name, one.stream, _plain(one))
        told = sorted((_plain(one) for one in at_risk), key=lambda one: float(one["hours_left"]))
        return PokeReturnValue(is_done=bool(told), xcom_value=told)

    def _groups(self) -> list[GroupStatus]:
        from tidemark.change_streams.worker.definitions import list_change_streams
        from tidemark.change_streams.worker.groups import group_status, list_groups

        _require_stream(self.change_stream, self.consumer_group)
        store = TidemarkHook(self.conn_id).open_store()
        streams = _named(self.change_stream) or [one.name for one in list_change_streams(store)]
        named = _named(self.consumer_group)
        return [
            group_status(store, stream, group)
            for stream in streams
            for group in (named or [one.name for one in list_groups(store, stream)])
        ]


def _seconds_left(argument: str, value: float | str | None) -> float | None:
    """A limit in hours, also as a template renders it; None for none. Raises InvalidArgument."""
    if value is None or is_left_out(value):
        return None
    return seconds_of(argument, value).total_seconds() * HOUR


def _named(value: str | None) -> list[str]:
    """The one of that name; none for all, also as a template renders it."""
    return [] if value is None or is_left_out(value) else [value]


def _require_stream(change_stream: str | None, consumer_group: str | None) -> None:
    """Raises InvalidArgument."""
    if _named(consumer_group) and not _named(change_stream):
        problem = "name its change stream"
        raise InvalidArgument(argument="consumer_group", value=consumer_group, problem=problem)


def _at_risk(status: GroupStatus, limit: float | None) -> bool:
    return status.stale if limit is None else status.seconds_until_expiry < limit


def _plain(status: GroupStatus) -> dict[str, Any]:
    return {
        "change_stream": status.stream,
        "consumer_group": status.group.name,
        "low_watermark": status.low_watermark.isoformat(),
        "hours_left": round(status.seconds_until_expiry / HOUR, 3),
        "lag_seconds": round(status.lag_seconds, 3),
        "paused": status.group.paused,
        "failed": dict(status.failed),
    }
