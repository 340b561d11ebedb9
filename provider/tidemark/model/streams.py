"""Streams: their tables, their offsets, and the windows of transactions."""

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
COMMIT_VERSION = "METADATA$COMMIT_VERSION"  # in mode every_change
COMMIT_TIMESTAMP = "METADATA$COMMIT_TIMESTAMP"


class StreamMode(StrEnum):
    """The changes of a window that a stream shows (R4)."""

    STANDARD = "standard"  # the net difference of both ends (R50)
    APPEND_ONLY = "append_only"  # every inserted row, as inserted (R60)
    INSERT_ONLY = "insert_only"  # files only (R65)
    EVERY_CHANGE = "every_change"  # the changes of each commit, with its version and time


class Addressing(StrEnum):
    """The ways from a table's name to its path."""

    PATH = "path"  # the name is the path
    LAKE = "lake"  # schema.table means <lake root>/schema/table
    CATALOG = "catalog"  # Spark's catalog knows

    @property
    def words(self) -> str:
        """As people read it."""
        return "lake root" if self is Addressing.LAKE else self.value


@dataclass(frozen=True)
class TableRef:
    """A registered table: its name, its canonical URI at that time, and its Delta table id, which is its identity."""

    name: str
    path: str
    table_id: str
    addressing: Addressing = Addressing.PATH

    def is_table(self, path: str, table_id: str) -> bool:
        """Whether a table is this one: it has this path, or this id at another path."""
        return self.path == path or self.table_id == table_id


@dataclass(frozen=True)
class BaseOffset:
    """The offset of a stream in one table: it has read all versions up to and including `version`."""

    table: TableRef
    version: int


@dataclass(frozen=True)
class BaseWindow:
    """The part of a window in one table: the changes in (start, end] of its versions."""

    table: TableRef
    start: int
    end: int


@dataclass(frozen=True)
class StreamOffset:
    """The offset of a stream: it has read all versions of the table `table_id` up to and including `version`.

    For a view it has the digest of its text, and the sum of its base tables' versions, which only grows. The versions
    themselves are the stream's `bases`.
    """

    table_id: str
    version: int


@dataclass(frozen=True)
class Stream:
    """A stream in the control store.

    `uid` is never used twice, so a replaced stream is another stream (V5). `serial` only grows: it numbers the Delta
    transactions of this stream. `initial_rows_pending`: the first consumption must deliver the rows at the start (R10).
    `anchor`: the start of staleness, which is the last offset advance, creation included (R81), or the last check that
    found nothing (R86). `keys`: the columns that identify a row instead of its row id; empty for row ids.
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
        """The stream's tables with its offset in each: its source, or the tables of its view."""
        return self.view_bases or (BaseOffset(self.source, self.offset.version),)


class WindowKind(StrEnum):
    """The kinds of windows."""

    CHANGES = "changes"  # the changes in (start, end]
    INITIAL_ROWS = "initial_rows"  # the rows of the source at start; start = end, the offset stays (R10)


@dataclass(frozen=True)
class StreamWindow:
    """The window of one stream in a transaction: (start, end] of the source, pinned by value.

    For a view start and end are sums, as in `StreamOffset`, and `bases` has the window of each table. `read_at` is the
    value of current_timestamp() at both ends (R37). `replayed`: it was delivered before, and moves no offset. `keys`:
    those of the stream.
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
        """The window in each of the stream's tables."""
        return self.view_bases or (BaseWindow(self.source, self.start, self.end),)

    @property
    def empty(self) -> bool:
        """Whether the window has nothing to deliver. Then no job is started."""
        return self.kind is WindowKind.CHANGES and self.start == self.end


@dataclass(frozen=True)
class OffsetMove:
    """One entry of a stream's history: the move of an offset with its actor, time, reason and run (None: by hand)."""

    stream_uid: str
    from_version: int
    to_version: int
    moved_at: datetime
    who: str
    why: str
    run: str | None
