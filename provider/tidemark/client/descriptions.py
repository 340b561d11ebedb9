"""What `show_streams` and `describe_stream` say (R130)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import Stream, StreamMode

__all__ = ["StreamDescription", "describe", "file_retention"]

MODES = {StreamMode.STANDARD: "DEFAULT", StreamMode.APPEND_ONLY: "APPEND_ONLY", StreamMode.INSERT_ONLY: "INSERT_ONLY"}
FILE_RETENTION = "delta.deletedFileRetentionDuration"
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class StreamDescription:
    """One stream; the first fifteen attributes are the columns of SHOW STREAMS (R130).

    `stale_after`: until then Delta keeps the files that the stream needs; None where the source is gone (R132). `stale`
    is true after it, and where `invalid_reason` is not "N/A". `offset_version`: up to it, it has been consumed.
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


def describe(stream: Stream, log: DeltaLog | None, *, now: datetime, invalid_reason: str | None) -> StreamDescription:
    """`log` is the source's, None where there is none any more; `invalid_reason`: why the stream cannot be read."""
    stale_after = None
    if log is not None:
        stale_after = stream.anchor + file_retention(log.state().metadata.configuration.get(FILE_RETENTION))
    return StreamDescription(
        created_on=stream.created_at,
        name=stream.name,
        database_name=None,
        schema_name=None,
        owner=None,
        comment=stream.comment,
        table_name=stream.source.name if log is not None else "No privilege or table dropped",
        source_type="Table",
        base_tables=(stream.source.name,),
        type="DELTA",
        stale=invalid_reason is not None or (stale_after is not None and now > stale_after),
        mode=MODES[stream.mode],
        stale_after=stale_after,
        invalid_reason=invalid_reason or "N/A",
        owner_role_type=None,
        offset_version=stream.offset.version,
        initial_rows_pending=stream.initial_rows_pending,
    )


def file_retention(setting: str | None) -> timedelta:
    """The time in Delta's `interval N unit` (weeks, days, hours, minutes, seconds); a week where nothing is said."""
    found = re.findall(r"(\d+)\s*(week|day|hour|minute|second)s?", (setting or "").lower())
    return sum((timedelta(**{f"{unit}s": int(count)}) for count, unit in found), timedelta()) or WEEK
