"""What `show_streams` and `describe_stream` say (R130)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.errors import SourceError, SourceRecreated, StreamError
from tidemark.model.streams import BaseOffset, Stream, StreamMode
from tidemark.planning.bounds import UNBOUNDED
from tidemark.planning.staleness import FILE_RETENTION, stale_after
from tidemark.planning.stream_sql.listing import name_parts
from tidemark.transactions.sources import look_at_sources

if TYPE_CHECKING:
    from tidemark.client.surroundings import Surroundings

__all__ = ["StreamDescription", "describe", "look_and_describe"]

MODES = {mode: mode.name for mode in StreamMode} | {StreamMode.STANDARD: "DEFAULT"}


@dataclass(frozen=True)
class StreamDescription:
    """One stream; the first fifteen attributes are the columns of SHOW STREAMS (R130).

    `name` is the whole name; what stands before its last dots is database_name and schema_name, too (R12).
    `stale_after`: until then Delta keeps the files that the stream needs; None where the source is gone (R132). `stale`
    is true after it, and where `invalid_reason` is not "N/A". `offset_version`: up to it, it has been consumed.
    `keys`: columns that identify rows in place of row ids.
    """

    created_on: datetime
    name: str
    database_name: str | None
    schema_name: str | None
    owner: str | None
    comment: str | None
    table_name: str
    source_type: str
    base_tables: tuple[str, ...]
    type: str
    stale: bool
    mode: str
    stale_after: datetime | None
    invalid_reason: str
    owner_role_type: str | None
    offset_version: int
    initial_rows_pending: bool
    keys: tuple[str, ...] = ()


def look_and_describe(around: Surroundings, stored: Stream) -> StreamDescription:
    """The stream as its tables' logs let it be described now."""
    retentions: list[str | None] | None = None
    reason: str | None = None
    try:
        retentions = [_retention(around, stored, base) for base in stored.bases]
        look_at_sources(around.store, (stored.name,), around.tables, UNBOUNDED)
    except (SourceError, StreamError) as error:
        reason = str(error)
    return describe(stored, retentions, now=around.store.clock(), invalid_reason=reason)


def describe(
    stream: Stream, retentions: Sequence[str | None] | None, *, now: datetime, invalid_reason: str | None
) -> StreamDescription:
    """`retentions`: how long each table keeps removed files, in Delta's words; None where one is not there any more.
    `invalid_reason`: why the stream cannot be read.
    """
    until = None
    if retentions is not None:
        until = min(stale_after(stream.anchor, retention) for retention in retentions)  # R80
    database, schema, _ = name_parts(stream.name)
    return StreamDescription(
        created_on=stream.created_at,
        name=stream.name,
        database_name=database,
        schema_name=schema,
        owner=None,
        comment=stream.comment,
        table_name=stream.source.name if retentions is not None else "No privilege or table dropped",
        source_type=_source_type(stream),
        base_tables=tuple(base.table.name for base in stream.bases),
        type="DELTA",
        stale=invalid_reason is not None or (until is not None and now > until),
        mode=MODES[stream.mode],
        stale_after=until,
        invalid_reason=invalid_reason or "N/A",
        owner_role_type=None,
        offset_version=stream.offset.version,
        initial_rows_pending=stream.initial_rows_pending,
        keys=stream.keys,
    )


def _source_type(stream: Stream) -> str:
    if stream.mode is StreamMode.INSERT_ONLY:
        return "External Table"
    return "Table" if stream.view is None else "View"


def _retention(around: Surroundings, stored: Stream, base: BaseOffset) -> str | None:
    """How long the table keeps removed files, in Delta's words. Raises SourceRecreated."""
    state = around.tables(base.table).state()
    if state.table_id != base.table.table_id:
        raise SourceRecreated(
            table=base.table.name,
            stream=stored.name,
            path=base.table.path,
            found=state.table_id,
            expected=base.table.table_id,
        )
    return state.metadata.configuration.get(FILE_RETENTION)
