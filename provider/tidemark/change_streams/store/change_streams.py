"""Change streams in the store: each state move by name, with its condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import ChangeStream, ChangeStreamOptions, WatchedTable
from tidemark.change_streams.store.schema import change_streams, watched_tables
from tidemark.control.objects import touch
from tidemark.errors import ChangeStreamNotFound
from tidemark.model.codec import from_json, to_json

__all__ = [
    "by_uid",
    "drop",
    "expire",
    "find",
    "insert",
    "live",
    "lookup",
    "note_run",
    "publish",
    "set_options",
    "skip_batch",
    "take_next_batch",
    "watch",
]

_of = change_streams.c


def lookup(connection: sa.Connection, name: str) -> ChangeStream | None:
    """The live change stream of that name, in any case, or None: a question, not a failure."""
    query = _live().where(_of.folded_name == name.casefold())
    row = connection.execute(query).mappings().first()
    return None if row is None else _stream(row, _watched(connection, [row["uid"]]))


def find(connection: sa.Connection, name: str) -> ChangeStream:
    """The live change stream of that name. Raises ChangeStreamNotFound."""
    stream = lookup(connection, name)
    if stream is None:
        raise ChangeStreamNotFound(stream=name, known=_known(connection))
    return stream


def by_uid(connection: sa.Connection, uid: str) -> ChangeStream:
    """The live change stream with that uid. Raises ChangeStreamNotFound; also for one that was dropped."""
    row = connection.execute(_live().where(_of.uid == uid)).mappings().first()
    if row is None:
        raise ChangeStreamNotFound(stream=uid, known=_known(connection))
    return _stream(row, _watched(connection, [uid]))


def live(connection: sa.Connection) -> tuple[ChangeStream, ...]:
    """All change streams that are not dropped, by name; sorted here, since databases differ in how they sort."""
    rows = connection.execute(_live()).mappings().all()
    watched = _watched(connection, [row["uid"] for row in rows])
    return tuple(sorted((_stream(row, watched) for row in rows), key=lambda stream: stream.name.casefold()))


def insert(connection: sa.Connection, stream: ChangeStream) -> None:
    """Add a change stream with its tables; its name must be free."""
    connection.execute(
        change_streams.insert().values(
            uid=stream.uid,
            name=stream.name,
            folded_name=stream.name.casefold(),
            everything=stream.everything,
            options=to_json(stream.options),
            created_at=stream.created_at,
            log_path=stream.log_path,
            published_until=stream.published_until,
            next_batch=stream.next_batch,
            expired_until=stream.expired_until,
        )
    )
    _insert_watched(connection, stream.uid, stream.tables)
    touch(connection, "change_stream", (stream.uid,))


def watch(connection: sa.Connection, uid: str, tables: Sequence[WatchedTable], *, everything: bool) -> None:
    """The change stream watches these tables from now on, each from its version; none: it is suspended."""
    connection.execute(change_streams.update().where(_of.uid == uid).values(everything=everything))
    connection.execute(watched_tables.delete().where(watched_tables.c.stream_uid == uid))
    _insert_watched(connection, uid, tables)
    touch(connection, "change_stream", (uid,))


def note_run(connection: sa.Connection, uid: str, run: str | None) -> None:
    """That task captures it now; its DAG owns it. A second time changes nothing, and neither does None: no task."""
    if run is not None:
        connection.execute(change_streams.update().where(_of.uid == uid).values(last_run=run))
        touch(connection, "change_stream", (uid,), by=run)


def set_options(connection: sa.Connection, uid: str, options: ChangeStreamOptions) -> None:
    """Batches that are opened from now on are captured by these options."""
    connection.execute(change_streams.update().where(_of.uid == uid).values(options=to_json(options)))


def publish(connection: sa.Connection, uid: str, *, batch: int, until: datetime) -> bool:
    """Nothing new comes before `until`, if `batch` still is the next one and the promise only grows; True if so."""
    standing = (_of.uid == uid) & (_of.next_batch == batch) & _of.dropped_at.is_(None)
    move = change_streams.update().where(standing, _of.published_until < until).values(published_until=until)
    return connection.execute(move).rowcount == 1


def take_next_batch(connection: sa.Connection, uid: str, *, captured: int, following: int, until: datetime) -> bool:
    """Batch `captured` is in the log, and all before `until` is, if nothing later was published; True if it was so.

    `following`: the next batch as it was: `captured` itself, or more if the batch had been discarded.
    """
    standing = (_of.uid == uid) & (_of.next_batch == following) & _of.dropped_at.is_(None)
    values = {"next_batch": max(following, captured + 1), "published_until": until}
    move = change_streams.update().where(standing, _of.published_until < until).values(values)
    return connection.execute(move).rowcount == 1


def skip_batch(connection: sa.Connection, uid: str, *, number: int) -> bool:
    """The number of a batch that was discarded is used up, if it was the next one; True if it was so."""
    standing = (_of.uid == uid) & (_of.next_batch == number) & _of.dropped_at.is_(None)
    return connection.execute(change_streams.update().where(standing).values(next_batch=number + 1)).rowcount == 1


def expire(connection: sa.Connection, uid: str, until: datetime) -> bool:
    """Records before `until` may be taken out of the log from now on; True if that is further than it was."""
    earlier = _of.expired_until.is_(None) | (_of.expired_until < until)
    move = change_streams.update().where(_of.uid == uid, _of.dropped_at.is_(None), earlier)
    return connection.execute(move.values(expired_until=until)).rowcount == 1


def drop(connection: sa.Connection, uid: str, *, at: datetime) -> None:
    """End a change stream, with its watch list; its uid is never used again."""
    connection.execute(watched_tables.delete().where(watched_tables.c.stream_uid == uid))
    connection.execute(change_streams.update().where(_of.uid == uid).values(dropped_at=at))
    touch(connection, "change_stream", (uid,))


def _live() -> sa.Select[tuple[Any, ...]]:
    return sa.select(change_streams).where(_of.dropped_at.is_(None))


def _known(connection: sa.Connection) -> str:
    names = connection.execute(sa.select(_of.name).where(_of.dropped_at.is_(None))).scalars()
    return ", ".join(sorted(names, key=str.casefold)) or "none"


def _watched(connection: sa.Connection, uids: Sequence[str]) -> dict[str, list[WatchedTable]]:
    found: dict[str, list[WatchedTable]] = {uid: [] for uid in uids}
    query = sa.select(watched_tables.c.stream_uid, watched_tables.c.watched).order_by(watched_tables.c.number)
    if len(uids) == 1:
        query = query.where(watched_tables.c.stream_uid == uids[0])
    for uid, text in connection.execute(query):
        if uid in found:
            found[uid].append(from_json(WatchedTable, text))
    return found


def _insert_watched(connection: sa.Connection, uid: str, tables: Sequence[WatchedTable]) -> None:
    rows = [
        {"stream_uid": uid, "number": number, "table_path": one.table.path, "watched": to_json(one)}
        for number, one in enumerate(tables)
    ]
    if rows:
        connection.execute(watched_tables.insert(), rows)


def _stream(row: Mapping[str, Any] | sa.RowMapping, watched: Mapping[str, Sequence[WatchedTable]]) -> ChangeStream:
    return ChangeStream(
        uid=row["uid"],
        name=row["name"],
        everything=row["everything"],
        tables=tuple(watched[row["uid"]]),
        options=from_json(ChangeStreamOptions, row["options"]),
        created_at=row["created_at"],
        log_path=row["log_path"],
        published_until=row["published_until"],
        next_batch=row["next_batch"],
        expired_until=row["expired_until"],
    )
