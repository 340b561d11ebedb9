"""The highest lags of change streams and consumer groups in the past, by their newest batches and chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.store.schema import capture_batches, chunks
from tidemark.control.newest import newest_of_each
from tidemark.control.usual_lags import NEWEST, between

__all__ = ["change_stream_highs", "group_highs"]

_batch, _chunk = capture_batches.c, chunks.c


def change_stream_highs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """The age of what was published just before each batch was in the log."""
    query = sa.select(_batch.stream_uid.label("uid"), _batch.captured_at.label("at"), _batch.published_until).where(
        _batch.captured_at.is_not(None), _batch.published_until.is_not(None)
    )
    found = newest_of_each(connection, query, uids, of=_batch.stream_uid, order=(_batch.number,), most=NEWEST)
    return {uid: between((row["at"], row["published_until"]) for row in rows) for uid, rows in found.items()}


def group_highs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """The age of the watermark of a partition just before each of its chunks was committed."""
    columns = (_chunk.group_uid.label("uid"), _chunk.committed_at.label("at"), _chunk.token, _chunk.end_at)
    query = sa.select(*columns).where(_chunk.committed_at.is_not(None))
    order = (_chunk.committed_at, _chunk.token, _chunk.number)
    found = newest_of_each(connection, query, uids, of=_chunk.group_uid, order=order, most=NEWEST)
    return {uid: _of_partitions(rows) for uid, rows in found.items()}


def _of_partitions(rows: Sequence[sa.RowMapping]) -> list[float]:
    ends: dict[str, list[tuple[datetime, datetime]]] = {}
    for row in rows:
        ends.setdefault(row["token"], []).append((row["at"], row["end_at"]))
    return [high for states in ends.values() for high in between(states)]
