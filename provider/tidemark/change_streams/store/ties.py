"""The ties of change streams and consumer groups: watched tables, and the tables that groups write."""

from __future__ import annotations

import json
from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.change_streams.store.schema import change_streams, consumer_groups, group_sinks, watched_tables
from tidemark.control.ties import Flow, TableAt, Tie

__all__ = ["change_stream_ties", "group_ties"]

_stream, _group, _watched, _sink = change_streams.c, consumer_groups.c, watched_tables.c, group_sinks.c


def change_stream_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The tables that each change stream watches. One query."""
    query = (
        sa.select(_watched.stream_uid, _watched.watched)
        .join(change_streams, _stream.uid == _watched.stream_uid)
        .where(_stream.dropped_at.is_(None))
    )
    watched = ((row.stream_uid, json.loads(row.watched)["table"]) for row in connection.execute(query))
    return tuple(Tie(uid, Flow.READS, TableAt(table["name"], table["path"])) for uid, table in watched)


def group_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The change stream of each group, and the tables that the group writes, by their paths. Two queries."""
    live = _group.dropped_at.is_(None)
    groups = connection.execute(sa.select(_group.uid, _group.stream_uid).where(live))
    reads = [Tie(row.uid, Flow.READS, ("change_stream", row.stream_uid)) for row in groups]
    sinks = sa.select(_sink.group_uid, _sink.table_path).join(consumer_groups, _group.uid == _sink.group_uid)
    writes = (
        Tie(row.group_uid, Flow.WRITES, TableAt(row.table_path, row.table_path))
        for row in connection.execute(sinks.where(live))
    )
    return (*reads, *writes)
