"""Transitions of a channel's record. Each takes the committed record and gives the next one; nothing is stored here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tidemark.channels.model.channels import ChannelRecord, IngestWatch, PendingRows
from tidemark.channels.planning.names import channel_of_domain
from tidemark.model.codec import to_json
from tidemark.model.foreign_json import foreign_value

__all__ = [
    "Advance",
    "advanced",
    "millis",
    "opened",
    "record_in",
    "record_text",
    "records_in",
    "rewound",
    "time_of",
    "watch_in",
    "watch_text",
    "with_token",
]

_NAME = "channel"
_WATCH = "watch"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_WEIGHT = 8  # commits that the average latency covers, about


@dataclass(frozen=True)
class Advance:
    """The commit of a channel's buffer. `offset_token`: that of its last record. `waited_ms`: of its oldest row.
    `error_message`, `error_upper_bound`: of the latest bad row, and the token of its batch.
    """

    offset_token: str | None
    rows_inserted: int
    rows_parsed: int
    rows_error_count: int
    waited_ms: int
    error_message: str | None = None
    error_upper_bound: str | None = None


def millis(time: datetime) -> int:
    """Milliseconds since 1970."""
    return int(time.timestamp() * 1000)


def time_of(at: int) -> datetime:
    """The time, UTC, of milliseconds since 1970. A time beyond all years is the first or the last one, so that a
    garbled record hides no other channel.
    """
    return _EPOCH + timedelta(milliseconds=min(max(at, _FIRST), _LAST))


def record_text(record: ChannelRecord) -> str:
    """The value of the record's domain."""
    return f'{{"{_NAME}":{to_json(record)}}}'


def record_in(text: str | None, table_id: str) -> ChannelRecord | None:
    """The record in a domain's value. None if there is none, or if it belongs to another table, as in a clone."""
    found = foreign_value(ChannelRecord, text, _NAME)
    return found if found is not None and found.table_id == table_id else None


def records_in(domains: Mapping[str, str], table_id: str) -> dict[str, ChannelRecord]:
    """Key → record of all channels of the table. `domains`: domain → its value, those of others among them."""
    named = ((channel_of_domain(domain), text) for domain, text in domains.items())
    found = ((key, record_in(text, table_id)) for key, text in named if key is not None)
    return {key: record for key, record in found if record is not None}


def watch_text(watch: IngestWatch) -> str:
    """The value of the watch's domain."""
    return f'{{"{_WATCH}":{to_json(watch)}}}'


def watch_in(text: str | None, table_id: str) -> IngestWatch | None:
    """The watch in a domain's value; None as in `record_in`."""
    found = foreign_value(IngestWatch, text, _WATCH)
    return found if found is not None and found.table_id == table_id else None


def opened(known: ChannelRecord | None, table_id: str, *, by: str, token: str | None, now: datetime) -> ChannelRecord:
    """The record of a new owner, which fences the earlier one. `token`: replaces the committed token unless None."""
    at = millis(now)
    if known is None:
        return ChannelRecord(
            table_id=table_id,
            client_sequencer=1,
            row_sequencer=0,
            offset_token=token,
            created_on=at,
            last_ingest=at,
            opened_on=at,
            opened_by=by,
        )
    return replace(
        known,
        client_sequencer=known.client_sequencer + 1,
        offset_token=known.offset_token if token is None else token,
        opened_on=at,
        opened_by=by,
        ended=None,
    )


def advanced(known: ChannelRecord, step: Advance, now: datetime, pending: PendingRows | None = None) -> ChannelRecord:
    """The record after the rows and the token of one commit, and with its bad rows."""
    at = millis(now)
    latency = (
        step.waited_ms
        if known.latency_ms is None
        else known.latency_ms + (step.waited_ms - known.latency_ms) // _WEIGHT
    )
    record = replace(
        known,
        row_sequencer=known.row_sequencer + 1,
        offset_token=step.offset_token,
        last_ingest=at,
        rows_inserted=known.rows_inserted + step.rows_inserted,
        rows_parsed=known.rows_parsed + step.rows_parsed,
        rows_error_count=known.rows_error_count + step.rows_error_count,
        latency_ms=latency,
        pending=pending,
    )
    if step.error_message is None:
        return record
    return replace(
        record,
        last_error_message=step.error_message,
        last_error_offset_upper_bound=step.error_upper_bound,
        last_error_timestamp=at,
    )


def with_token(known: ChannelRecord, token: str | None) -> ChannelRecord:
    """The record with another token, set by hand. It fences nobody, and makes a lost token good."""
    return replace(known, offset_token=token, token_lost=None)


def rewound(known: ChannelRecord, then: ChannelRecord | None, *, reason: str, is_known: bool) -> ChannelRecord:
    """The record after its table was restored to an earlier version, at which it was `then` (None: no such channel).

    Its token is that of the restored rows, and its writer is fenced. Without `is_known`, nobody can tell the token.
    """
    token = (then.offset_token if then is not None else None) if is_known else known.offset_token
    return replace(
        known,
        client_sequencer=known.client_sequencer + 1,
        row_sequencer=known.row_sequencer + 1,
        offset_token=token,
        ended=reason,
        token_lost=None if is_known else reason,
    )
