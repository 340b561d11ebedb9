"""The change streams that tasks captured and the consumer groups that they read for, and the last task of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.store.schema import capture_batches, change_streams, chunks, consumer_groups
from tidemark.control.newest import newest_value, values_of_each
from tidemark.control.run_keys import RunPart, Touch

__all__ = ["change_stream_runs", "change_streams_of_runs", "group_runs", "groups_of_runs"]

_stream, _batch, _group, _chunk = change_streams.c, capture_batches.c, consumer_groups.c, chunks.c


def change_stream_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that captured each last, or found nothing new. One query."""
    return values_of_each(connection, _stream.uid, uids, _stream.last_run)


def group_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that has an open chunk of each group, else the one whose chunk was committed last. One query,
    whose index leads to the open chunks and to the newest of the others.
    """
    mine = _chunk.group_uid == _group.uid
    open_one = newest_value(_chunk.task, mine, _chunk.committed_at.is_(None), of=_group.uid, order=_chunk.end_at)
    committed = mine & _chunk.committed_at.is_not(None)
    newest = newest_value(_chunk.task, committed, of=_group.uid, order=_chunk.committed_at)
    return values_of_each(connection, _group.uid, uids, open_one, newest)


def change_streams_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The change streams that these tasks captured, by uid, with their batches. Captures that found nothing are known
    of the last one alone. Two queries, which read the change streams that the DAG owns.
    """
    owned = part.owned("change_stream")
    empty = sa.select(_stream.uid).where(_stream.uid.in_(owned), part.has(_stream.last_run))
    found = {uid: Touch("capture", "no watched table had a change") for uid in connection.execute(empty).scalars()}
    columns = (_batch.stream_uid, _batch.number, _batch.state, _batch.rows)
    query = sa.select(*columns).where(_batch.stream_uid.in_(owned), part.has(_batch.run)).order_by(_batch.number)
    batches: dict[str, list[Any]] = {}
    for row in connection.execute(query):
        batches.setdefault(row.stream_uid, []).append(row)
    return {**found, **{uid: Touch(_captured(rows)) for uid, rows in batches.items()}}


def groups_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The groups whose chunks these tasks took up, by uid, with the number of chunks and their rows. One query, which
    reads the chunks of the groups that the DAG owns.
    """
    written = sa.func.count(_chunk.written_at)
    query = (
        sa.select(_chunk.group_uid, sa.func.count(), written, sa.func.sum(_chunk.rows))
        .where(_chunk.group_uid.in_(part.owned("consumer_group")), part.has(_chunk.task))
        .group_by(_chunk.group_uid)
    )
    return {uid: Touch(_read(*counted)) for uid, *counted in connection.execute(query)}


def _captured(rows: Sequence[Any]) -> str:
    last = rows[-1]
    if len(rows) > 1:
        return f"{len(rows)} batches up to number {last.number}, {sum(row.rows or 0 for row in rows):,} rows"
    counted = "" if last.rows is None else f", {last.rows:,} rows"
    return f"batch {last.number} {last.state}{counted}"


def _read(taken: int, written: int, rows: int | None) -> str:
    left = "" if written == taken else f", {taken - written} of them not yet written"
    return f"{taken} chunk{'s' if taken != 1 else ''}{left}, {rows or 0:,} rows"
