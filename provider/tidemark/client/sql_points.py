"""Points in SQL as the client's points (R8)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from tidemark.client.points import Offset, Point, Stream, Timestamp, Version
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.statements import PointKind, SqlPoint
from tidemark.streams.worker.statement_ids import versions_of_statement

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext
    from tidemark.model.streams import TableRef

__all__ = ["Start", "point_of", "start_of"]


class Start(TypedDict):
    """The arguments of the client's methods that take a point."""

    at: Point | None
    before: Point | None


def start_of(context: ClientContext, text: str, source: TableRef | str, point: SqlPoint | None) -> Start:
    """The point as `at` or `before`. Raises what `point_of` raises."""
    if point is None:
        return Start(at=None, before=None)
    found = point_of(context, text, source, point)
    return Start(at=None, before=found) if point.before else Start(at=found, before=None)


def point_of(context: ClientContext, text: str, source: TableRef | str, point: SqlPoint) -> Point:
    """The point; a statement is a version of `source`. Raises SqlCompilationError for an unknown statement (R8c)."""
    value = point.value
    if isinstance(value, datetime):
        return Timestamp(value)
    if isinstance(value, float):
        return Offset(value)
    if isinstance(value, int):
        return Version(value)
    if point.kind is PointKind.STREAM:
        return Stream(value)
    found = versions_of_statement(context.tables(source), value)
    if found is None:
        raise compilation_error(text, point.span, f"Statement {value} not found")
    return Version(found[0] if point.before else found[1])
