"""The problems of a source or a point, in the words of the source system and with their place in the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemark.errors import (
    ExternalTableNotFound,
    InvalidArgument,
    LogIncomplete,
    RowTrackingDisabled,
    StreamNotFound,
    TableNotFound,
    VersionNotFound,
)
from tidemark.sql.text import SqlName, compilation_error
from tidemark.streams.planning.stream_sql.statements import PointKind, SqlPoint

__all__ = ["worded"]


@contextmanager
def worded(text: str, source: SqlName, *points: SqlPoint | None) -> Iterator[None]:
    """Raise what a source or a point lacks in the words of the source system, with its place (R8, R9)."""
    point = next((point for point in points if point is not None), None)
    try:
        yield
    except (TableNotFound, ExternalTableNotFound) as error:
        problem = f"Object {source.text!r} does not exist or not authorized."
        raise compilation_error(text, source.span, problem) from error
    except RowTrackingDisabled as error:
        problem = (
            "Change tracking is not enabled or has been missing for the time range requested on table"
            f" {source.text!r}. ({error})"
        )
        raise compilation_error(text, source.span, problem) from error
    except (StreamNotFound, InvalidArgument) as error:
        named = next((p for p in points if p is not None and _names_what_is_missing(p, error)), None)
        if named is None:
            raise
        stream = f"Stream {named.value!r} not found."
        problem = stream if isinstance(error, StreamNotFound) else f"Statement {named.value} not found"
        raise compilation_error(text, named.span, problem) from error
    except (VersionNotFound, LogIncomplete) as error:
        if point is None:
            raise
        problem = (
            f"Time travel data is not available for table {source.text}. The requested time is either beyond the"
            f" allowed time travel period or before the object creation time. ({error})"
        )
        raise compilation_error(text, point.span, problem) from error


def _names_what_is_missing(point: SqlPoint, error: StreamNotFound | InvalidArgument) -> bool:
    by_name = PointKind.STREAM if isinstance(error, StreamNotFound) else PointKind.STATEMENT
    missing = error.facts["stream" if isinstance(error, StreamNotFound) else "value"]
    return point.kind is by_name and bool(point.value == missing)
