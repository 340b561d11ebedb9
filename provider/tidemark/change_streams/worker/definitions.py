"""Change streams as users define, alter and end them; what was captured stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    CaptureBatch,
    ChangeStream,
    ChangeStreamOptions,
    Partition,
    WatchedTable,
)
from tidemark.change_streams.planning.definition import require_partitions, require_room
from tidemark.change_streams.planning.tokens import first_partitions
from tidemark.change_streams.store import (
    capture_batches,
    change_streams,
    chunks,
    consumer_groups,
    group_partitions,
    group_sinks,
    partitions,
)
from tidemark.change_streams.worker.capture import discard
from tidemark.change_streams.worker.sinks import own_tables
from tidemark.control.store import ControlStore
from tidemark.errors import ChangeStreamExists, ChangeStreamRefused, NotADeltaTable, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import has_batch
from tidemark.streams.planning.names import require_name

__all__ = [
    "OpenLog",
    "create_change_stream",
    "drop_change_stream",
    "get_change_stream",
    "list_change_streams",
    "set_options",
    "suspend",
    "watch",
]

OpenLog = Callable[[str], DeltaLog]
"""Opens the log of a change stream by its path. Raises TableNotFound, NotADeltaTable."""


class _AnotherBatch(Exception):
    """A batch was opened or closed since the log was looked at."""


def create_change_stream(
    store: ControlStore,
    *,
    name: str,
    tables: Sequence[WatchedTable],
    everything: bool,
    options: ChangeStreamOptions,
    log_path: str | Callable[[str], str],
    initial_partitions: int = 1,
    if_not_exists: bool = False,
) -> ChangeStream:
    """Define a change stream over `tables`, each from behind the version that it names; without any it is suspended.

    `log_path`: where its log table is to lie, or what makes that of the new stream's uid. `if_not_exists` keeps an
    existing one as it is, so a second run changes nothing. Raises ChangeStreamExists, ChangeStreamRefused (a table
    twice, a fourth stream on a column, an eleventh at all), InvalidArgument.
    """
    require_name(name)
    require_partitions(initial_partitions)
    now, uid = store.clock(), store.new_id()
    wanted = ChangeStream(
        uid=uid,
        name=name,
        everything=everything,
        tables=tuple(tables),
        options=options,
        created_at=now,
        log_path=log_path if isinstance(log_path, str) else log_path(uid),
        published_until=now,
        next_batch=0,
    )

    first = first_partitions(uid, now, initial_partitions)
    return store.write(lambda connection: _create(connection, wanted, first, if_not_exists))


def watch(
    store: ControlStore,
    name: str,
    tables: Sequence[WatchedTable],
    everything: bool,
    *,
    known: Sequence[WatchedTable] | None = None,
    restarted: Collection[str] = (),
    open_log: OpenLog = DeltaLog.open,
) -> ChangeStream:
    """Watch these tables from now on. A table that was watched before continues from where it was captured up to, so
    nothing of it is lost. Tables with these ids (`restarted`) are watched from the version in `tables`.

    An open batch is discarded if this changes anything, since it may be one that can never be captured. The next batch
    takes the versions of the tables that stay. An open batch that the log already has stays open, and is captured by
    the old list. So is one whose capture has not begun (there is no log). `open_log` opens the log. A second run
    changes nothing.

    `known`: what was watched when `tables` were looked for. A capture of ALL may have taken up others since, and those
    stay. Off the list and on again, they would be captured twice. None: nothing was taken up since.

    Changes to a table that are not captured before it is taken off the list never are. Tables that groups of the stream
    write are not watched: ALL is without them, and naming one is refused. Raises ChangeStreamNotFound,
    ChangeStreamRefused as `create_change_stream`.
    """
    while True:
        seen = store.read(lambda connection: _open_batch(connection, name))
        obsolete = seen is not None and _may_be_discarded(seen, open_log)

        def alter(
            connection: sa.Connection, seen: CaptureBatch | None = seen, obsolete: bool = obsolete
        ) -> ChangeStream:
            stream = change_streams.find(connection, name)
            since = _taken_up_since(stream, tables, known) if everything and known is not None else ()
            going_on = _where_captured(stream, (*tables, *since), restarted)
            going_on = _not_its_own(connection, stream, going_on, everything=everything)
            altered = replace(stream, tables=going_on, everything=everything)
            if altered == stream:
                return stream
            if _open_batch(connection, name) != seen:
                raise _AnotherBatch
            _require_room(connection, altered, new=False)
            change_streams.watch(connection, stream.uid, altered.tables, everything=everything)
            return discard(connection, seen) if seen is not None and obsolete else altered

        try:
            return store.write(alter)
        except _AnotherBatch:  # nothing was written, so the look at the log is repeated for that batch
            continue


def suspend(store: ControlStore, name: str, *, open_log: OpenLog = DeltaLog.open) -> ChangeStream:
    """Watch nothing more; what was captured stays readable. `watch` says what becomes of an open batch. A second
    run changes nothing. Raises ChangeStreamNotFound.
    """
    return watch(store, name, (), everything=False, open_log=open_log)


def set_options(store: ControlStore, name: str, options: ChangeStreamOptions) -> ChangeStream:
    """Capture by these options from the next batch on; a shorter retention holds at once. A second run changes nothing.
    Raises ChangeStreamNotFound.
    """

    def alter(connection: sa.Connection) -> ChangeStream:
        stream = change_streams.find(connection, name)
        change_streams.set_options(connection, stream.uid, options)
        return replace(stream, options=options)

    return store.write(alter)


def drop_change_stream(store: ControlStore, name: str) -> ChangeStream:
    """End the change stream and its consumer groups, and return what it was; its log table is the caller's to remove.

    History keeps that it and its groups existed, and how many rows a backfill brought. Watch list, batches, partitions,
    their load and chunks are deleted. A capture or a reader that is under way finds nothing to close any more, and
    changes nothing. Raises ChangeStreamNotFound; so does a second run.
    """

    def drop(connection: sa.Connection) -> ChangeStream:
        stream = change_streams.find(connection, name)
        for group in consumer_groups.of_stream(connection, stream.uid):
            chunks.forget_group(connection, group.uid)
            group_partitions.forget_group(connection, group.uid)
        group_sinks.forget_stream(connection, stream.uid)
        partitions.forget_stream(connection, stream.uid)
        capture_batches.forget_stream(connection, stream.uid)
        now = store.clock()
        consumer_groups.end_all(connection, stream.uid, at=now)
        change_streams.drop(connection, stream.uid, at=now)
        return stream

    return store.write(drop)


def get_change_stream(store: ControlStore, name: str) -> ChangeStream:
    """The change stream of that name, in any case. Raises ChangeStreamNotFound."""
    return store.read(lambda connection: change_streams.find(connection, name))


def list_change_streams(store: ControlStore) -> tuple[ChangeStream, ...]:
    """Every change stream that is not dropped, by name."""
    return store.read(change_streams.live)


def _create(
    connection: sa.Connection, wanted: ChangeStream, first: Sequence[Partition], if_not_exists: bool
) -> ChangeStream:
    existing = change_streams.lookup(connection, wanted.name)
    if existing is not None:
        if if_not_exists:
            return existing
        raise ChangeStreamExists(stream=existing.name)
    _require_room(connection, wanted, new=True)
    change_streams.insert(connection, wanted)
    partitions.insert(connection, wanted.uid, first)
    return wanted


def _taken_up_since(
    stream: ChangeStream, tables: Sequence[WatchedTable], known: Sequence[WatchedTable]
) -> tuple[WatchedTable, ...]:
    ids = {one.table.table_id for one in (*tables, *known)}
    return tuple(one for one in stream.tables if one.table.table_id not in ids)


def _where_captured(
    stream: ChangeStream, tables: Sequence[WatchedTable], restarted: Collection[str]
) -> tuple[WatchedTable, ...]:
    captured = {one.table.table_id: one.captured for one in stream.tables if one.table.table_id not in restarted}
    return tuple(replace(one, captured=captured.get(one.table.table_id, one.captured)) for one in tables)


def _not_its_own(
    connection: sa.Connection, stream: ChangeStream, tables: Sequence[WatchedTable], *, everything: bool
) -> tuple[WatchedTable, ...]:
    """The tables without those that its groups write. Raises ChangeStreamRefused for one that was named."""
    own = own_tables(connection, stream.uid)
    problems = [own.why_not(one.table, everything=everything) for one in tables]
    named = next((problem for problem in problems if problem is not None), None)
    if named is not None and not everything:
        raise ChangeStreamRefused(stream=stream.name, problem=f"{named}.")
    return tuple(one for one, problem in zip(tables, problems, strict=True) if problem is None)


def _open_batch(connection: sa.Connection, name: str) -> CaptureBatch | None:
    return capture_batches.open_batch(connection, change_streams.find(connection, name).uid)


def _may_be_discarded(batch: CaptureBatch, open_log: OpenLog) -> bool:
    """Whether a capture of it has begun, as there is a log, and the log does not have it. The next capture recognizes a
    batch that commits after this look.
    """
    try:
        log = open_log(batch.stream.log_path)
    except (TableNotFound, NotADeltaTable):
        return False
    return not has_batch(log, batch.stream.uid, batch.number)


def _require_room(connection: sa.Connection, wanted: ChangeStream, *, new: bool) -> None:
    others = [stream for stream in change_streams.live(connection) if stream.uid != wanted.uid]
    require_room(wanted.name, wanted.tables, others, everything=wanted.everything, new=new)
