"""The histories of change streams and consumer groups: batches, chunks, and the tree of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import Partition
from tidemark.change_streams.store.partitions import partition_of, started_at
from tidemark.change_streams.store.schema import (
    capture_batches,
    chunks,
    consumer_groups,
    group_partitions,
    partition_load,
    partitions,
)
from tidemark.control.object_histories import (
    AT,
    Chart,
    Field,
    HistoryPart,
    Point,
    Portion,
    Shape,
    Unit,
    lag_at,
    newest_rows,
    seconds_between,
)
from tidemark.control.objects import portions

__all__ = ["CHANGE_STREAM_HISTORY", "CONSUMER_GROUP_HISTORY"]

_batch, _chunk, _partition = capture_batches.c, chunks.c, partitions.c
_group, _read, _load = consumer_groups.c, group_partitions.c, partition_load.c
_LIFE = (_partition.start_at, _partition.token)


def _batches(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    columns = [column for column in _batch if column not in (_batch.batch, _batch.digest)]
    rows = newest_rows(connection, sa.select(*columns).where(_batch.stream_uid == uid), (_batch.number,), portion)
    return [_of_batch(row) for row in rows]


def _of_batch(row: sa.RowMapping) -> Point:
    captured: datetime | None = row["captured_at"]
    until: datetime | None = row["published_until"]
    values = {name: row[name] for name in ("number", "state", "transactions", "records", "rows", "run")}
    values |= {
        "at": captured or row["opened_at"],
        "published_until": until,
        "seconds": seconds_between(row["opened_at"], captured),
        "lag_seconds": lag_at(captured, until),
    }
    return Point((row["number"],), values)


def _chunks(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    columns = (_chunk.token, _chunk.number, _chunk.rows, _chunk.end_at, _chunk.task, _chunk.committed_at)
    query = sa.select(*columns).where(_chunk.group_uid == uid, _chunk.committed_at.is_not(None))
    order = (_chunk.committed_at, _chunk.token, _chunk.number)
    return [_of_chunk(row) for row in newest_rows(connection, query, order, portion)]


def _of_chunk(row: sa.RowMapping) -> Point:
    at = row["committed_at"]
    values = {name: row[name] for name in ("token", "number", "rows")}
    told = {"at": at, "lag_seconds": lag_at(at, row["end_at"]), "run": row["task"]}
    return Point((at, row["token"], row["number"]), {**values, **told})


def _partitions(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    query = sa.select(partitions).where(_partition.stream_uid == uid)
    found = [partition_of(row) for row in newest_rows(connection, query, _LIFE, portion)]
    states = {one.token: {"state": "active" if one.end is None else "ended"} for one in found}
    return _tree(connection, uid, found, states)


def _partitions_of_group(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    failure = (_read.failed_run, _read.failed_task, _read.error)
    query = (
        sa.select(partitions, _read.state, _read.watermark_at, _read.chunks, *failure)
        .join(consumer_groups, _group.stream_uid == _partition.stream_uid)
        .join(group_partitions, (_read.group_uid == _group.uid) & (_read.token == _partition.token))
        .where(_group.uid == uid)
    )
    rows = newest_rows(connection, query, _LIFE, portion)
    states = {row["token"]: _progress(row) for row in rows}
    stream_uid = rows[0]["stream_uid"] if rows else ""
    return _tree(connection, stream_uid, [partition_of(row) for row in rows], states)


def _count(connection: sa.Connection, uid: str) -> int:
    counted = sa.select(sa.func.count()).select_from(partitions).where(_partition.stream_uid == uid)
    return int(connection.execute(counted).scalar_one())


def _count_of_group(connection: sa.Connection, uid: str) -> int:
    """Partitions that the group has not met yet are not its own."""
    of_group = (
        sa.select(sa.func.count())
        .select_from(partitions)
        .join(consumer_groups, _group.stream_uid == _partition.stream_uid)
        .join(group_partitions, (_read.group_uid == _group.uid) & (_read.token == _partition.token))
        .where(_group.uid == uid)
    )
    return int(connection.execute(of_group).scalar_one())


def _progress(row: sa.RowMapping) -> dict[str, Any]:
    state = row["state"] if row["failed_run"] is None else "failed"
    task = {"run": row["failed_task"], "error": row["error"]}
    told = {"watermark": row["watermark_at"], "chunks": row["chunks"], **task}
    return {"state": state, **told}


def _tree(
    connection: sa.Connection, stream_uid: str, found: list[Partition], states: Mapping[str, Mapping[str, Any]]
) -> list[Point]:
    """Two queries, and one more of each sort for every further 500 partitions."""
    children = _children(connection, stream_uid, found)
    load = _loads(connection, stream_uid, [one.token for one in found])
    return [
        Point(
            (one.start, one.token),
            {
                "at": one.start,
                "end": one.end,
                "token": one.token,
                "lo": one.lo,
                "hi": one.hi,
                "rows": load.get(one.token, 0),
                "parents": list(one.parents),
                "children": children.get(one.token, []),
                **states[one.token],
            },
        )
        for one in found
    ]


def _children(connection: sa.Connection, stream_uid: str, found: Iterable[Partition]) -> dict[str, list[str]]:
    """They begin where their parents end."""
    begun: dict[str, list[str]] = {}
    for child in started_at(connection, stream_uid, (one.end for one in found if one.end is not None)):
        for parent in child.parents:
            begun.setdefault(parent, []).append(child.token)
    return begun


def _loads(connection: sa.Connection, stream_uid: str, tokens: list[str]) -> dict[str, int]:
    total = sa.select(_load.token, sa.func.sum(_load.rows)).where(_load.stream_uid == stream_uid).group_by(_load.token)
    found: dict[str, int] = {}
    for some in portions(tokens):
        rows = connection.execute(total.where(_load.token.in_(some)))
        found.update((token, int(count)) for token, count in rows)
    return found


_STATE = Field("state", "State", Unit.TEXT)
_ROWS = Field("rows", "Rows", Unit.ROWS)
_TREE = (
    AT,
    Field("end", "End", Unit.TIME),
    Field("token", "Partition", Unit.TEXT),
    Field("lo", "Keys from", Unit.NUMBER),
    Field("hi", "Keys to", Unit.NUMBER),
    _STATE,
    _ROWS,
    Field("parents", "Parents", Unit.TEXTS),
    Field("children", "Children", Unit.TEXTS),
)
_DRAWN = Chart(
    "tree",
    "Partitions over time",
    "The life of each partition, with its parents. Colours tell its state, and a wider bar had more rows.",
    ("lo", "hi"),
    Shape.TREE,
)

_BATCHES = HistoryPart(
    "batches",
    "Captured batches, the newest first",
    (
        AT,
        Field("run", "Run", Unit.RUN),
        Field("number", "Batch", Unit.NUMBER),
        _STATE,
        Field("transactions", "Transactions", Unit.NUMBER),
        Field("records", "Records", Unit.NUMBER),
        _ROWS,
        Field("published_until", "Captured until", Unit.TIME),
        Field("seconds", "Seconds", Unit.SECONDS),
        Field("lag_seconds", "Lag at its end", Unit.SECONDS),
    ),
    (
        Chart("rows", "Rows of batches", "The rows that each batch brought into the log.", ("rows",), Shape.BARS),
        Chart("lag", "Lag of the capture", "How far the log was behind when each batch ended.", ("lag_seconds",)),
    ),
    (int,),
    _batches,
)
_PARTITIONS = HistoryPart(
    "partitions", "Partitions, the newest first", _TREE, (_DRAWN,), (datetime, str), _partitions, _count
)
_CHUNKS = HistoryPart(
    "chunks",
    "Committed chunks, the newest first",
    (
        AT,
        Field("token", "Partition", Unit.TEXT),
        Field("number", "Chunk", Unit.NUMBER),
        _ROWS,
        Field("lag_seconds", "Lag at its commit", Unit.SECONDS),
        Field("run", "Run", Unit.RUN),
    ),
    (
        Chart("lag", "Lag of the group", "The age of the last record of each chunk at its commit.", ("lag_seconds",)),
        Chart("rows", "Rows of chunks", "The rows of each chunk.", ("rows",), Shape.BARS),
    ),
    (datetime, str, int),
    _chunks,
)
_PARTITIONS_OF_GROUP = HistoryPart(
    "partitions",
    "Partitions as the group has read them, the newest first",
    (
        *_TREE,
        Field("watermark", "Watermark", Unit.TIME),
        Field("chunks", "Chunks", Unit.NUMBER),
        Field("run", "Failed in", Unit.RUN),
        Field("error", "Error", Unit.TEXT, private=True),
    ),
    (_DRAWN,),
    (datetime, str),
    _partitions_of_group,
    _count_of_group,
)

CHANGE_STREAM_HISTORY = (_PARTITIONS, _BATCHES)
CONSUMER_GROUP_HISTORY = (_PARTITIONS_OF_GROUP, _CHUNKS)
