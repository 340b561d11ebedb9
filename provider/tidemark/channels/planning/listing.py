"""Channels as SHOW CHANNELS lists them (seed 001)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.records import millis, records_in, time_of
from tidemark.model.table_log import TableState

__all__ = ["ShownChannel", "age_of", "records_of", "shown_channel"]


@dataclass(frozen=True)
class ShownChannel:
    """A channel as its table has it. Names in the order of the source system, then the facts of its status. `age`: time
    since its last commit of rows or tokens. Times are UTC.
    """

    created_on: datetime
    name: str
    database_name: str
    schema_name: str
    table_name: str
    client_sequencer: int
    row_sequencer: int
    offset_token: str | None
    opened_on: datetime
    opened_by: str
    last_ingest: datetime
    age: timedelta
    rows_inserted: int
    rows_parsed: int
    rows_error_count: int
    last_error_message: str | None
    last_error_offset_upper_bound: str | None
    last_error_timestamp: datetime | None
    latency_ms: int | None
    problem: str | None


def records_of(state: TableState) -> dict[str, ChannelRecord]:
    """Key → record of the table's own channels."""
    return records_in(state.domains, state.table_id)


def shown_channel(key: str, record: ChannelRecord, names: Mapping[str, str], now: datetime) -> ShownChannel:
    """The channel in words. `names`: database, schema and table."""
    error_at = record.last_error_timestamp
    return ShownChannel(
        created_on=time_of(record.created_on),
        name=key,
        database_name=names["database"],
        schema_name=names["schema"],
        table_name=names["table"],
        client_sequencer=record.client_sequencer,
        row_sequencer=record.row_sequencer,
        offset_token=record.offset_token,
        opened_on=time_of(record.opened_on),
        opened_by=record.opened_by,
        last_ingest=time_of(record.last_ingest),
        age=age_of(record, now),
        rows_inserted=record.rows_inserted,
        rows_parsed=record.rows_parsed,
        rows_error_count=record.rows_error_count,
        last_error_message=record.last_error_message,
        last_error_offset_upper_bound=record.last_error_offset_upper_bound,
        last_error_timestamp=None if error_at is None else time_of(error_at),
        latency_ms=record.latency_ms,
        problem=record.problem,
    )


def age_of(record: ChannelRecord, now: datetime) -> timedelta:
    """Time since the channel's last commit of rows or tokens; nothing if another clock is ahead."""
    return max(timedelta(0), time_of(millis(now)) - time_of(record.last_ingest))
