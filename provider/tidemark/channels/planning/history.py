"""The history of channels: a table beside the table, with a row for each channel that has committed in a minute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.columns import schema_of
from tidemark.channels.planning.records import time_of

__all__ = ["HISTORY_COLUMNS", "HISTORY_DAY", "HISTORY_SCHEMA", "report_rows"]

HISTORY_DAY = "created_day"

HISTORY_COLUMNS: Mapping[str, str] = {
    HISTORY_DAY: "date",
    "created_on": "timestamp",
    "channel_name": "string",
    "channel_created_on": "timestamp",
    "opened_by": "string",
    "client_sequencer": "long",
    "row_sequencer": "long",
    "end_offset_token": "string",
    "rows_inserted": "long",
    "rows_parsed": "long",
    "rows_error_count": "long",
    "latency_ms": "long",
    "last_error_message": "string",
    "last_error_offset_upper_bound": "string",
    "last_error_timestamp": "timestamp",
}
"""Name → type of the columns. Counts are of all rows since the channel's creation."""

HISTORY_SCHEMA = schema_of(HISTORY_COLUMNS)


def report_rows(records: Mapping[str, ChannelRecord], now: datetime) -> list[dict[str, Any]]:
    """A row for each channel, in order of their names. `records`: the committed ones by key."""
    return [_row(key, records[key], now) for key in sorted(records)]


def _row(key: str, record: ChannelRecord, now: datetime) -> dict[str, Any]:
    failed = record.last_error_timestamp
    return {
        HISTORY_DAY: now.date(),
        "created_on": now,
        "channel_name": key,
        "channel_created_on": time_of(record.created_on),
        "opened_by": record.opened_by,
        "client_sequencer": record.client_sequencer,
        "row_sequencer": record.row_sequencer,
        "end_offset_token": record.offset_token,
        "rows_inserted": record.rows_inserted,
        "rows_parsed": record.rows_parsed,
        "rows_error_count": record.rows_error_count,
        "latency_ms": record.latency_ms,
        "last_error_message": record.last_error_message,
        "last_error_offset_upper_bound": record.last_error_offset_upper_bound,
        "last_error_timestamp": None if failed is None else time_of(failed),
    }
