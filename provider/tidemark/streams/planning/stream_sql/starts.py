"""Points that SQL names, as points in a table's history (R8, R112)."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from tidemark.streams.planning.points import Offset, Point, Statement, Stream, Timestamp, Version
from tidemark.streams.planning.stream_sql.statements import PointKind, SqlPoint

__all__ = ["Start", "point_of", "start_of"]


class Start(TypedDict):
    """The arguments of functions that take a point."""

    at: Point | None
    before: Point | None


def start_of(point: SqlPoint | None) -> Start:
    """The point as `at` or `before`."""
    if point is None:
        return Start(at=None, before=None)
    found = point_of(point)
    return Start(at=None, before=found) if point.before else Start(at=found, before=None)


def point_of(point: SqlPoint) -> Point:
    """The point, for any table."""
    value = point.value
    if isinstance(value, datetime):
        return Timestamp(value)
    if isinstance(value, float):
        return Offset(value)
    if isinstance(value, int):
        return Version(value)
    return Stream(value) if point.kind is PointKind.STREAM else Statement(value)
