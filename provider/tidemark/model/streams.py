"""Streams: what they read, where they stand, and the window that a transaction takes from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = [
    "ACTION",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "IS_UPDATE",
    "ROW_ID",
    "Addressing",
    "OffsetMove",
    "Stream",
    "StreamMode",
    "StreamOffset",
    "StreamWindow",
    "TableRef",
    "WindowKind",
]

ACTION = "METADATA$ACTION"
IS_UPDATE = "METADATA$ISUPDATE"
ROW_ID = "METADATA$ROW_ID"
COMMIT_VERSION = "METADATA$COMMIT_VERSION"  # where every change is asked for
COMMIT_TIMESTAMP = "METADATA$COMMIT_TIMESTAMP"


class StreamMode(StrEnum):
    """What a stream shows of its window (R4)."""

    STANDARD = "standard"  # the net difference of both ends (R50)
    APPEND_ONLY = "append_only"  # every inserted row, as inserted (R60)
    INSERT_ONLY = "insert_only"  # files only (R65)


class Addressing(StrEnum):
    """How a table's name leads to its path."""

    PATH = "path"  # the name is the path
    LAKE = "lake"  # schema.table means <lake root>/schema/table
    CATALOG = "catalog"  # Spark's catalog knows


@dataclass(frozen=True)
class TableRef:
    """A registered table: its name, the canonical URI that it had, and its Delta table id, which is its identity."""

    name: str
    path: str
    table_id: str
    addressing: Addressing = Addressing.PATH


@dataclass(frozen=True)
class StreamOffset:
    """Versions up to and including `version` of the table `table_id` lie behind the stream."""

    table_id: str
    version: int


@dataclass(frozen=True)
class Stream:
    """A stream as the control store keeps it.

    `uid` is never used twice, so a replaced stream is another stream (V5). `serial` only grows: it numbers the Delta
    transactions of this stream. `initial_rows_pending`: the first consumption still owes the rows at the start (R10).
    `anchor` is the time of the last offset advance, creation included (R81).
    """

    uid: str
    name: str
    source: TableRef
    mode: StreamMode
    offset: StreamOffset
    initial_rows_pending: bool
    serial: int
    created_at: datetime
    anchor: datetime
    comment: str | None = None


class WindowKind(StrEnum):
    """What a window holds."""

    CHANGES = "changes"  # the changes in (start, end]
    INITIAL_ROWS = "initial_rows"  # the rows of the source at start; start = end, the offset stays (R10)


@dataclass(frozen=True)
class StreamWindow:
    """What one transaction takes from one stream: (start, end] of the source, pinned by value."""

    stream_uid: str
    stream_name: str
    source: TableRef
    mode: StreamMode
    kind: WindowKind
    start: int
    end: int

    @property
    def empty(self) -> bool:
        """Whether there is nothing to deliver: no job is started for it."""
        return self.kind is WindowKind.CHANGES and self.start == self.end


@dataclass(frozen=True)
class OffsetMove:
    """One entry of a stream's history: who moved the offset, when, why, and in which run (None: by hand)."""

    stream_uid: str
    from_version: int
    to_version: int
    moved_at: datetime
    who: str
    why: str
    run: str | None
