"""Which tables the consumer groups of a change stream write: known as long as the stream, also of groups that ended."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.sinks import KnownSink
from tidemark.change_streams.store.schema import consumer_groups, group_sinks
from tidemark.model.streams import TableRef

__all__ = ["forget_stream", "keep", "of_stream"]

_of = group_sinks.c


def keep(connection: sa.Connection, group_uid: str, target: TableRef, *, at: datetime) -> None:
    """The group writes this table, and that is known from now on; of a recreated table, the new one."""
    standing = (_of.group_uid == group_uid) & (_of.table_path == target.path)
    known = connection.execute(sa.select(_of.table_id).where(standing)).scalar_one_or_none()
    if known is None:
        values = {"group_uid": group_uid, "table_path": target.path, "table_id": target.table_id, "since": at}
        connection.execute(group_sinks.insert().values(values))
    elif known != target.table_id:
        connection.execute(group_sinks.update().where(standing).values(table_id=target.table_id))


def of_stream(connection: sa.Connection, stream_uid: str) -> tuple[KnownSink, ...]:
    """The tables that its groups write or wrote, by group and path."""
    query = (
        sa.select(consumer_groups.c.name, consumer_groups.c.dropped_at, _of.table_path, _of.table_id)
        .join(consumer_groups, consumer_groups.c.uid == _of.group_uid)
        .where(consumer_groups.c.stream_uid == stream_uid)
        .order_by(_of.group_uid, _of.table_path)
    )
    return tuple(KnownSink(name, path, id_, gone is None) for name, gone, path, id_ in connection.execute(query))


def forget_stream(connection: sa.Connection, stream_uid: str) -> None:
    """Remove all of a change stream that is dropped."""
    groups = sa.select(consumer_groups.c.uid).where(consumer_groups.c.stream_uid == stream_uid)
    connection.execute(group_sinks.delete().where(_of.group_uid.in_(groups)))
