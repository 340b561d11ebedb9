"""Waiting until the channels of a table are behind, or are not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.operators._base import flag_of, seconds_of
from tidemark.operators._constants import check_constants
from tidemark.operators._error_log import useful_line_first

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.channels.model.channels import ChannelRecord

__all__ = ["ChannelLagSensor"]

Names = str | Sequence[str] | None


class ChannelLagSensor(BaseSensorOperator):
    """Succeeds when a channel of a table is behind: no commit of rows or tokens for `lag_seconds`. With `below` it
    waits for the opposite: until every channel has committed within that time.

    Reads the table's log alone, and never starts a JVM. Returns {table, lag_seconds, channels}, with {channel,
    offset_token, lag_seconds, latency_ms, rows, problem} of every channel. A table without channels counts as behind.
    Raises TableNotFound, ChannelNotFound, InvalidArgument, StorageUnreachable.

    :param table: the table that gets the rows. (templated)
    :param lag_seconds: the limit, in seconds. (templated)
    :param channels: the channels to check, a list or text with commas; None: all. (templated)
    :param below: wait until all are within the limit. (templated)
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("table", "lag_seconds", "channels", "below", "conn_id")
    ui_color = "#d8eef0"

    def __init__(
        self,
        *,
        table: str,
        lag_seconds: float | str,
        channels: Names = None,
        below: bool | str = False,
        conn_id: str = DEFAULT_CONN_ID,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.lag_seconds = lag_seconds
        self.channels = channels
        self.below = below
        self.conn_id = conn_id
        check_constants(self, lag_seconds=seconds_of, channels=_keys_of, below=flag_of)

    @useful_line_first
    def execute(self, context: Context) -> Any:
        """As every sensor."""
        return super().execute(context)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether it is so now."""
        from tidemark.channels.planning.listing import age_of

        limit = seconds_of("lag_seconds", self.lag_seconds)
        below = flag_of("below", self.below)
        found = self._looked_at()
        lags = {key: age_of(record, datetime.now(UTC)) for key, record in found.items()}
        behind = not lags or max(lags.values()) > limit
        facts = {
            "table": self.table,
            "lag_seconds": max((lag.total_seconds() for lag in lags.values()), default=None),
            "channels": [_facts(key, record, lags[key]) for key, record in found.items()],
        }
        self.log.info("%s", facts)
        return PokeReturnValue(is_done=behind is not below, xcom_value=facts)

    def _looked_at(self) -> dict[str, ChannelRecord]:
        from tidemark.channels.worker.tables import channels_of

        keys = _keys_of("channels", self.channels)
        return channels_of(TidemarkHook(self.conn_id).open_table(self.table), self.table, keys)


def _facts(key: str, record: ChannelRecord, lag: timedelta) -> dict[str, Any]:
    return {
        "channel": key,
        "offset_token": record.offset_token,
        "lag_seconds": lag.total_seconds(),
        "latency_ms": record.latency_ms,
        "rows": record.rows_inserted,
        "problem": record.problem,
    }


def _keys_of(argument: str, value: Names) -> tuple[str, ...]:
    """Identities of the channels, in order, once. Raises InvalidArgument."""
    from tidemark.channels.planning.names import key_of
    from tidemark.operators._replication import names_of

    return tuple(dict.fromkeys(key_of(name) for name in names_of(argument, value)))
