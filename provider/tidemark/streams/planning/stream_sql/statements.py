"""Statements about streams as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.model.streams import StreamMode
from tidemark.sql.text import Span, SqlName
from tidemark.streams.planning.stream_sql.constants import Constant

__all__ = [
    "AlterStream",
    "BacklogCall",
    "ChangesClause",
    "CloneStream",
    "CreateStream",
    "DescribeStream",
    "DropStream",
    "HasDataCall",
    "ObjectKind",
    "PointKind",
    "QueryPart",
    "RefreshExternalTable",
    "SetVariable",
    "ShowStreams",
    "SqlPoint",
    "StreamQuery",
    "StreamStatement",
    "TableTimestampCall",
    "TimeTravel",
]


class ObjectKind(StrEnum):
    """The kind of object that a stream is on, as CREATE STREAM names it (R6)."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    EXTERNAL_TABLE = "EXTERNAL TABLE"  # here: a directory of files
    STAGE = "STAGE"
    DYNAMIC_TABLE = "DYNAMIC TABLE"
    EVENT_TABLE = "EVENT TABLE"


class PointKind(StrEnum):
    """How a point in a table's history is given (R8)."""

    TIMESTAMP = "TIMESTAMP"
    OFFSET = "OFFSET"
    STATEMENT = "STATEMENT"
    STREAM = "STREAM"
    VERSION = "VERSION"  # ours: a version of the Delta table


@dataclass(frozen=True)
class SqlPoint:
    """A point and its place: an aware time, seconds (≤ 0), the id of a statement, a stream's name, or a version."""

    kind: PointKind
    value: datetime | float | int | str
    before: bool
    span: Span


@dataclass(frozen=True)
class CreateStream:
    """CREATE STREAM, with all that R4 and R8 name."""

    name: SqlName
    source: SqlName
    kind: ObjectKind
    mode: StreamMode = StreamMode.STANDARD
    point: SqlPoint | None = None
    show_initial_rows: bool = False
    or_replace: bool = False
    or_alter: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class CloneStream:
    """CREATE STREAM … CLONE (R11)."""

    name: SqlName
    source: SqlName
    point: SqlPoint | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterStream:
    """ALTER STREAM … SET COMMENT, or UNSET COMMENT: None (R4)."""

    name: SqlName
    comment: str | None
    if_exists: bool = False


@dataclass(frozen=True)
class DropStream:
    """DROP STREAM."""

    name: SqlName
    if_exists: bool = False


@dataclass(frozen=True)
class RefreshExternalTable:
    """ALTER EXTERNAL TABLE … REFRESH (R66)."""

    name: SqlName
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeStream:
    """DESCRIBE STREAM (R130)."""

    name: SqlName


@dataclass(frozen=True)
class ShowStreams:
    """SHOW STREAMS (R130, R131); None is no filter."""

    terse: bool = False
    like: str | None = None
    database: str | None = None
    schema: str | None = None
    starts_with: str | None = None
    limit: int | None = None
    from_name: str | None = None


@dataclass(frozen=True)
class SetVariable:
    """SET name = constant: from then on `$name` is the constant where a point is given."""

    name: str
    value: Constant


@dataclass(frozen=True)
class ChangesClause:
    """`t CHANGES(INFORMATION => …) AT|BEFORE(…) [END(…)]` (R110). `alias`: the name to give it, if it has none."""

    source: SqlName
    mode: StreamMode
    start: SqlPoint
    end: SqlPoint | None
    alias: str | None
    span: Span


@dataclass(frozen=True)
class TimeTravel:
    """`t AT|BEFORE(…)`: the table as it was. `alias`: the name to give it, if it has none."""

    source: SqlName
    point: SqlPoint
    alias: str | None
    span: Span


@dataclass(frozen=True)
class HasDataCall:
    """SYSTEM$STREAM_HAS_DATA('s') (R120). `title`: the name to give the column, if the call is a whole one."""

    stream: SqlName
    title: str | None
    span: Span


@dataclass(frozen=True)
class TableTimestampCall:
    """SYSTEM$STREAM_GET_TABLE_TIMESTAMP('s') (R124)."""

    stream: SqlName
    title: str | None
    span: Span


@dataclass(frozen=True)
class BacklogCall:
    """TABLE(SYSTEM$STREAM_BACKLOG('s')) (R125)."""

    stream: SqlName
    span: Span


QueryPart = ChangesClause | TimeTravel | HasDataCall | TableTimestampCall | BacklogCall


@dataclass(frozen=True)
class StreamQuery:
    """Any other statement that holds what Spark does not know; the parts are in text order."""

    text: str
    parts: tuple[QueryPart, ...]


StreamStatement = (
    CreateStream
    | CloneStream
    | AlterStream
    | DropStream
    | RefreshExternalTable
    | DescribeStream
    | ShowStreams
    | SetVariable
    | StreamQuery
)
