"""The offset tokens of a landing table's channels over time, by the newest commits of the table of their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

import sqlalchemy as sa

from tidemark.channels.store.landing_tables import with_uids
from tidemark.control.object_histories import (
    AT,
    Chart,
    Field,
    HistoryPart,
    LookedHistory,
    Point,
    Portion,
    Shape,
    ShownPart,
    Unit,
)
from tidemark.errors import CorruptLog, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.lake.storage import Storage
from tidemark.model.own_tables import HISTORY_SUFFIX
from tidemark.model.streams import TableRef
from tidemark.streams.worker.questions import LogQuestion
from tidemark.streams.worker.sources import Tables

__all__ = ["LANDING_HISTORY", "TokenRow", "tokens_of"]

COMMITS = 120  # of the history, each of a minute of a client
CHANNELS = 20
_COLUMNS = (
    "created_on",
    "channel_name",
    "end_offset_token",
    "rows_inserted",
    "rows_parsed",
    "rows_error_count",
    "latency_ms",
)
_LARGEST = 1 << 20  # bytes of a file; that of a minute has some kilobytes


@dataclass(frozen=True)
class TokenRow:
    """A channel as it was in a minute. Counts are of all rows since its creation."""

    at: datetime
    channel: str
    token: str | None
    rows_inserted: int
    rows_parsed: int
    rows_error_count: int
    latency_ms: int | None


@dataclass(frozen=True)
class _Range:
    """The newest commits of a history, after version `after`. They are read once, until there are more."""

    uri: str
    after: int
    head: int
    log: DeltaLog = field(compare=False)


@dataclass(frozen=True)
class _File:
    """A data file of a history. It never changes, so it is read once."""

    uri: str
    storage: Storage = field(compare=False)


def tokens_of(table: TableRef, tables: Tables) -> tuple[TokenRow, ...]:
    """The rows of the newest commits of the table's history, the newest first; none if it has no history.

    Raises what opening a table raises, CorruptLog, and errors of the storage.
    """
    log = tables(table)
    try:
        history = DeltaLog.open(log.uri + HISTORY_SUFFIX, log.storage.options)
    except TableNotFound:
        return ()
    head = history.head()
    newest = _Range(history.uri, max(history.earliest() - 1, head - COMMITS), head, history)
    rows = [row for file in _files_in(newest) for row in _rows_of(file)]
    return tuple(sorted(rows, key=lambda row: (row.at, row.channel), reverse=True))


@lru_cache(maxsize=100)
def _files_in(newest: _Range) -> tuple[_File, ...]:
    adds = [file for commit in newest.log.commits(newest.after, newest.head) for file in commit.adds]
    of_rows = [file.path for file in adds if file.data_change and file.size <= _LARGEST]
    return tuple(_File(file_uri(newest.uri, path), newest.log.storage) for path in of_rows)


@lru_cache(maxsize=2000)
def _rows_of(file: _File) -> tuple[TokenRow, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(pa.BufferReader(file.storage.read_bytes(file.uri)), columns=list(_COLUMNS))
        return tuple(_row(row) for row in found.to_pylist())
    except FileNotFoundError:
        return ()  # a later file has its rows, and this one was removed
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:  # the bytes were read before
        raise CorruptLog(file=file.uri, problem=f"it is not a file of a history: {error}") from error


def _row(said: Mapping[str, Any]) -> TokenRow:
    at = said["created_on"]
    return TokenRow(at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC), *(said[name] for name in _COLUMNS[1:]))


def _question(connection: sa.Connection, uid: str) -> LogQuestion | None:
    table = with_uids(connection, [uid]).get(uid)
    if table is None:
        return None
    return LogQuestion(uid, ("history",), frozenset({table.path + HISTORY_SUFFIX}), partial(tokens_of, table))


def _parts(answer: Sequence[TokenRow], limit: int) -> tuple[ShownPart, ...]:
    """A part for each of the channels that committed last, in order of their names."""
    newest = sorted(list(dict.fromkeys(row.channel for row in answer))[:CHANNELS])
    return tuple(
        _part(n, name, [row for row in answer if row.channel == name][:limit]) for n, name in enumerate(newest)
    )


def _part(number: int, channel: str, rows: Sequence[TokenRow]) -> ShownPart:
    part = HistoryPart(
        f"channel_{number}", f"Channel {channel}, the newest minute first", _FIELDS, _CHARTS, (int,), _none
    )
    return ShownPart(part, tuple(_point(row) for row in rows), None)


def _point(row: TokenRow) -> Point:
    token = row.token or ""
    values = {
        "at": row.at,
        "token": row.token,
        "number": int(token) if token.isascii() and token.isdigit() and len(token) < 16 else None,
        "rows": row.rows_inserted,
        "errors": row.rows_error_count,
        "latency_seconds": None if row.latency_ms is None else row.latency_ms / 1000,
    }
    return Point((int(row.at.timestamp() * 1000),), values)


def _none(connection: sa.Connection, uid: str, portion: Portion) -> Sequence[Point]:
    return ()


_FIELDS = (
    AT,
    Field("token", "Offset token", Unit.TEXT),
    Field("number", "Offset token as a number", Unit.NUMBER),
    Field("rows", "Rows since its creation", Unit.ROWS),
    Field("errors", "Bad rows since its creation", Unit.ROWS),
    Field("latency_seconds", "Seconds from insert to commit", Unit.SECONDS),
)
_CHARTS = (
    Chart(
        "tokens", "Offset tokens over time", "The committed offset token, if it is a number.", ("number",), Shape.STEPS
    ),
    Chart("rows", "Rows over time", "The rows that the channel has committed, and the bad ones.", ("rows", "errors")),
)

LANDING_HISTORY = LookedHistory(_question, _parts)
