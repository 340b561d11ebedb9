"""Rows that do not fit, as their quarantine table keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.model.rows import BadRow
from tidemark.channels.planning.columns import schema_of
from tidemark.model.foreign_json import plain_text

__all__ = ["QUARANTINE_COLUMNS", "QUARANTINE_SCHEMA", "quarantine_rows", "transaction_of"]

QUARANTINE_COLUMNS = {
    "ingested_on": "timestamp",
    "table_name": "string",
    "channel_name": "string",
    "end_offset_token": "string",
    "place": "string",
    "error_kind": "string",
    "error_column": "string",
    "error_message": "string",
    "row": "string",
}
QUARANTINE_SCHEMA = schema_of(QUARANTINE_COLUMNS)


def quarantine_rows(bad: Sequence[BadRow], *, table: str, channel: str, now: datetime) -> list[dict[str, Any]]:
    """A row for each bad row, in their order."""
    return [
        {
            "ingested_on": now,
            "table_name": table,
            "channel_name": channel,
            "end_offset_token": one.end_offset_token,
            "place": one.place,
            "error_kind": one.error.kind.value,
            "error_column": plain_text(one.error.column) or None,
            "error_message": plain_text(one.error.message),
            "row": one.text,
        }
        for one in bad
    ]


def transaction_of(key: str, record: ChannelRecord, source: str) -> str:
    """The application id of the channel's commits to quarantine tables. A channel that was created again has
    another.
    """
    return f"tidemark.channel/{record.table_id}/{record.created_on}/{key}@{source}"
