"""CREATE, ALTER and DROP of change streams, for the client and for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.change_streams.model.change_streams import ChangeStream, Partition, WatchedTable
from tidemark.change_streams.planning.definition import (
    WatchRequest,
    parse_keys,
    parse_watch,
    require_name,
    require_partitions,
    require_room,
    tables_that_restart,
    watch_of,
)
from tidemark.change_streams.planning.options import changed_options, parse_options
from tidemark.change_streams.store import partitions
from tidemark.change_streams.worker import definitions
from tidemark.change_streams.worker.definitions import OpenLog
from tidemark.change_streams.worker.sinks import own_tables
from tidemark.change_streams.worker.watching import LakeTables, find_restarted, find_watched
from tidemark.control.store import ControlStore
from tidemark.errors import ChangeStreamNotFound, ChangeStreamRefused, InvalidArgument
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import remove_log
from tidemark.model.streams import TableRef

__all__ = ["alter", "create", "drop", "find", "open_partitions", "resume"]


def create(
    store: ControlStore,
    name: str,
    *,
    watch: Any,
    keys: Any = None,
    options: Mapping[str, Any],
    tables: LakeTables,
    logs: str,
    initial_partitions: int = 1,
    if_not_exists: bool = False,
) -> ChangeStream:
    """A new change stream whose log is a directory of its own below `logs`; with `if_not_exists` the existing one.

    Everything is looked at before anything is written; FOR ALL leaves tables out that cannot be watched. Raises
    ChangeStreamExists, ChangeStreamRefused, InvalidArgument, RowTrackingDisabled, UnsupportedTableFeature.
    """
    require_name(name)
    if if_not_exists and (kept := find(store, name)) is not None:
        return kept
    require_partitions(initial_partitions)
    asked, chosen = parse_watch(watch), parse_options(name, options)
    by_table = parse_keys(keys, asked.tables)
    others = [one for one in definitions.list_change_streams(store) if one.name.casefold() != name.casefold()]
    require_room(name, (), others, everything=asked.everything, new=True)
    watched = find_watched(name, asked, by_table, tables, store.read(own_tables))
    require_room(name, watched, others, everything=asked.everything, new=True)
    return definitions.create_change_stream(
        store,
        name=name,
        tables=watched,
        everything=asked.everything,
        options=chosen,
        log_path=f"{logs.rstrip('/')}/{store.new_id()}",
        initial_partitions=initial_partitions,
        if_not_exists=if_not_exists,
    )


def alter(
    store: ControlStore,
    name: str,
    *,
    watch: Any = None,
    keys: Any = None,
    options: Mapping[str, Any],
    tables: LakeTables,
    restart: Any = None,
    open_log: OpenLog = DeltaLog.open,
) -> ChangeStream:
    """Other tables, unless `watch` is None, and other options, of those that are given.

    A table that it continues to watch stays where it is captured. A new table is watched from its newest version on, as
    is one in `restart`, a table or a list of them. The versions between are not captured; that is the way past a
    version that cannot be captured. Both hold from the next capture on; a batch that is open is discarded, unless the
    log has it. A second run changes nothing, but restarts at what is newest then. `open_log` opens the stream's own
    log. Raises ChangeStreamNotFound and what `create` raises. Raises InvalidArgument for a restart of what is not
    watched, and for other keys of a table that does not restart.
    """
    stream = definitions.get_change_stream(store, name)
    chosen = changed_options(stream.name, stream.options, options)
    if watch is not None or restart:
        asked = watch_of(stream) if watch is None else parse_watch(watch)
        anew = find_restarted(restart, stream, asked, tables)
        watched = _watched_from_now_on(store, stream, asked, keys, tables, anew)
        stream = definitions.watch(
            store,
            stream.name,
            watched,
            asked.everything,
            known=stream.tables,
            restarted={one.table_id for one in anew},
            open_log=open_log,
        )
    return definitions.set_options(store, stream.name, chosen) if options else stream


def _watched_from_now_on(
    store: ControlStore,
    stream: ChangeStream,
    asked: WatchRequest,
    keys: Any,
    tables: LakeTables,
    anew: tuple[TableRef, ...],
) -> tuple[WatchedTable, ...]:
    restarted = tables_that_restart(stream, anew)
    known = tuple(one for one in stream.tables if one not in restarted)
    others = [one for one in definitions.list_change_streams(store) if one.uid != stream.uid]
    own = store.read(lambda connection: own_tables(connection, stream.uid))
    watched = find_watched(
        stream.name, asked, parse_keys(keys, asked.tables), tables, own, known=known, restarted=restarted
    )
    if asked.everything and stream.everything:  # the next capture takes up what came after it, from its beginning
        stay = {one.table.table_id for one in known} | {one.table_id for one in anew}  # under other names, too
        watched = tuple(one for one in watched if one.table.table_id in stay)
    require_room(stream.name, watched, others, everything=asked.everything, new=False)
    return watched


def resume(
    store: ControlStore,
    name: str,
    *,
    watch: Any,
    keys: Any = None,
    tables: LakeTables,
    open_log: OpenLog = DeltaLog.open,
) -> ChangeStream:
    """Let a suspended change stream watch again: each of these tables, or ALL, from its newest version on.

    A change stream that watches just these stays as it is, so a second run changes nothing. A change stream that
    watches others is refused, as it would lose them. Raises InvalidArgument if nothing is named, and what `alter`
    raises.
    """
    asked, stream = parse_watch(watch), definitions.get_change_stream(store, name)
    if not asked.everything and not asked.tables:
        raise InvalidArgument(argument="watch", value=watch, problem="name a table at least, or ALL")
    watched = {one.table.name.casefold() for one in stream.tables}
    if not watched and not stream.everything:
        return alter(store, name, watch=asked, keys=keys, options={}, tables=tables, open_log=open_log)
    wanted = {one.name.casefold() for one in asked.tables}
    if asked.everything != stream.everything or not (asked.everything or wanted == watched):
        names = "ALL" if stream.everything else ", ".join(one.table.name for one in stream.tables)
        problem = f"it is not suspended, it watches {names}. Suspend it first, or alter what it watches."
        raise ChangeStreamRefused(stream=stream.name, problem=problem)
    return stream


def drop(store: ControlStore, name: str, storage_options: Mapping[str, str] | None = None) -> ChangeStream:
    """End the change stream and its consumer groups, then delete its records; what it was is returned.

    Killed in between it leaves a directory that nobody reads. Raises ChangeStreamNotFound; so does a second run.
    """
    dropped = definitions.drop_change_stream(store, name)
    remove_log(dropped.log_path, storage_options)
    return dropped


def open_partitions(store: ControlStore, stream: ChangeStream) -> tuple[Partition, ...]:
    """The partitions that have not ended, for readers of a change stream whose log is still to come."""
    return store.read(lambda connection: partitions.active(connection, stream.uid))


def find(store: ControlStore, name: str) -> ChangeStream | None:
    """The change stream of that name, in any case; None if there is none."""
    try:
        return definitions.get_change_stream(store, name)
    except ChangeStreamNotFound:
        return None
