"""Streams: what they read, where they stand, and the window that a transaction takes from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.model.views import ViewQuery

__all__ = [
    "ACTION",
    "COMMIT_TIMESTAMP",
    "COMMIT_VERSION",
    "IS_UPDATE",
    "ROW_ID",
    "Addressing",
    "BaseOffset",
    "BaseWindow",
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
    EVERY_CHANGE = "every_change"  # what each commit did, with its version and time


class Addressing(StrEnum):
    """How a table's name leads to its path."""

    PATH = "path"  # the name is the path
    LAKE = "lake"  # schema.table means <lake root>/schema/table
    CATALOG = "catalog"  # Spark's catalog knows

    @property
    def words(self) -> str:
        """As people read it."""
        return "lake root" if self is Addressing.LAKE else self.value


@dataclass(frozen=True)
class TableRef:
    """A registered table: its name, the canonical URI that it had, and its Delta table id, which is its identity."""

    name: str
    path: str
    table_id: str
    addressing: Addressing = Addressing.PATH

    def is_table(self, path: str, table_id: str) -> bool:
        """Whether that is the table: it lies there, or has moved from there."""
        return self.path == path or self.table_id == table_id


@dataclass(frozen=True)
class BaseOffset:
    """Versions of `table` up to and including `version` lie behind a stream that reads it."""

    table: TableRef
    version: int


@dataclass(frozen=True)
class BaseWindow:
    """What a window takes from one table: the changes in (start, end] of its versions."""

    table: TableRef
    start: int
    end: int


@dataclass(frozen=True)
class StreamOffset:
    """Versions up to and including `version` of the table `table_id` lie behind the stream.

    For a view: the digest of its text, and the sum of its base tables' versions, so that it counts commits and only
    grows; the versions themselves are the stream's `bases`.
    """

    table_id: str
    version: int


@dataclass(frozen=True)
class Stream:
    """A stream as the control store keeps it.

    `uid` is never used twice, so a replaced stream is another stream (V5). `serial` only grows: it numbers the Delta
    transactions of this stream. `initial_rows_pending`: the first consumption still owes the rows at the start (R10).
    `anchor` is what staleness counts from: the last offset advance, creation included (R81), or the last look that
    found nothing (R86). `keys`: the columns that identify a row in place of its row id; empty for row ids.
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
    view: ViewQuery | None = None
    view_bases: tuple[BaseOffset, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def bases(self) -> tuple[BaseOffset, ...]:
        """The tables that the stream reads and where it stands in each: its source, or those of its view."""
        return self.view_bases or (BaseOffset(self.source, self.offset.version),)


class WindowKind(StrEnum):
    """What a window holds."""

    CHANGES = "changes"  # the changes in (start, end]
    INITIAL_ROWS = "initial_rows"  # the rows of the source at start; start = end, the offset stays (R10)


@dataclass(frozen=True)
class StreamWindow:
    """What one transaction takes from one stream: (start, end] of the source, pinned by value.

    For a view start and end are sums, as in `StreamOffset`, `bases` has the window of each table, and `read_at` is the
    time that its current_timestamp() means at both ends (R37). `replayed`: it was delivered before, and moves nothing.
    `keys` are those of the stream.
    """

    stream_uid: str
    stream_name: str
    source: TableRef
    mode: StreamMode
    kind: WindowKind
    start: int
    end: int
    view: ViewQuery | None = None
    view_bases: tuple[BaseWindow, ...] = ()
    read_at: datetime | None = None
    replayed: bool = False
    keys: tuple[str, ...] = ()

    @property
    def bases(self) -> tuple[BaseWindow, ...]:
        """What is taken from each table that the stream reads."""
        return self.view_bases or (BaseWindow(self.source, self.start, self.end),)

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
