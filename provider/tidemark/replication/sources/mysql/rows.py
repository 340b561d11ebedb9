"""The rows of an event of the binary log, as events of an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemark.replication.planning.events import Event, EventForm, Values
from tidemark.replication.sources.mysql.binlog import COMPRESSED, DELETES, UPDATES, RowsHead, decompressed
from tidemark.replication.sources.mysql.columns import Reader

__all__ = ["rows_of_event"]


def rows_of_event(
    data: bytes, head: RowsHead, kind: int, readers: Sequence[Reader], form: EventForm
) -> Iterator[tuple[Event, ...]]:
    """The events of each row, whose images are whole. Raises IndexError, ValueError for what is no row."""
    data, at = (decompressed(data[head.body :]), 0) if kind in COMPRESSED else (data, head.body)
    end = len(data)
    while at < end:
        row, at = _row(data, at, readers)
        if kind in UPDATES:
            new, at = _row(data, at, readers)
            yield form.updated(row, True, new, False)
        elif kind in DELETES:
            yield (form.deleted(row, True),)
        else:
            yield (form.inserted(row),)


def _row(data: bytes, at: int, readers: Sequence[Reader]) -> tuple[Values, int]:
    """A bit for each column that is NULL, then the values of the others."""
    size = (len(readers) + 7) // 8
    nulls = int.from_bytes(data[at : at + size], "little")
    at += size
    values: Values = []
    for reader in readers:
        if nulls & 1:
            values.append(None)
        else:
            value, at = reader(data, at)
            values.append(value)
        nulls >>= 1
    return values, at
