"""Which tables a change stream is to watch, found by their logs before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from tidemark.change_streams.model.change_streams import CLOCKS_DIFFER, ChangeStream, WatchedTable
from tidemark.change_streams.planning.definition import (
    FoundTable,
    TableRequest,
    WatchRequest,
    decide_keys,
    decide_watch,
    keys_by_name,
    names_of_restart,
    require_room,
)
from tidemark.change_streams.planning.key_texts import rewritten_key
from tidemark.change_streams.planning.own_tables import OwnTables
from tidemark.change_streams.planning.sinks import named_table
from tidemark.change_streams.store import capture_batches, change_streams
from tidemark.change_streams.worker.sinks import own_tables
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.source_support import require_readable, row_tracking
from tidemark.control.store import ControlStore
from tidemark.errors import (
    ChangeStreamRefused,
    InvalidArgument,
    NotADeltaTable,
    RowTrackingDisabled,
    SourceError,
    TableNotFound,
    UnsupportedTableFeature,
    VersionNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.model.table_log import TableState

__all__ = ["LakeTables", "LeftOut", "find_new_tables", "find_restarted", "find_watched", "tables_left_out"]

log = logging.getLogger(__name__)

BEFORE_ITS_FIRST = -1  # version from which on a table is captured that came after the stream


@dataclass(frozen=True)
class LakeTables:
    """How tables are found: by name, by reference, and all that there are. `turn_on`: turns row tracking on if it is
    off; None: a table without it is refused.
    """

    reference: Callable[[str], TableRef]
    open: Callable[[TableRef], DeltaLog]
    names: Callable[[], Sequence[str]]
    turn_on: Callable[[TableRef], None] | None = None


@dataclass(frozen=True)
class LeftOut:
    """A table of the lake that FOR ALL cannot watch, and why."""

    name: str
    why: str


def find_watched(
    stream: str,
    watch: WatchRequest,
    keys: Mapping[str, tuple[str, ...]],
    tables: LakeTables,
    own: OwnTables,
    *,
    known: Sequence[WatchedTable] = (),
    restarted: Sequence[WatchedTable] = (),
) -> tuple[WatchedTable, ...]:
    """The tables of `watch` as they are now, each watched from its newest version on; `known` ones from where they are
    captured. Those in `restarted` keep their keys, unless others are given.

    FOR ALL leaves those out with a warning that cannot be watched, as `find_new_tables` does; one that is named is
    refused. FOR ALL passes over the partial aggregates of views. Row tracking is turned on, if it may be, only after
    everything else was found right. `own`: what change streams write. Raises ChangeStreamRefused, InvalidArgument,
    RowTrackingDisabled, UnsupportedTableFeature.
    """
    old = {table.table.table_id for table in known}
    if watch.everything:
        return _all_that_can_be(stream, keys, tables, own, known, restarted)
    found = [(request, _found(stream, request.name, tables, own)) for request in watch.tables]
    watched = decide_watch(stream, found, keys, known, restarted)
    return tuple(table if table.table.table_id in old else _tracked(table, tables) for table in watched)


def find_restarted(restart: Any, stream: ChangeStream, asked: WatchRequest, tables: LakeTables) -> tuple[TableRef, ...]:
    """The tables whose watch is to restart, under any of their names. Raises InvalidArgument for one that the stream is
    not to watch, and for what is no list of names.
    """
    names = names_of_restart(restart)
    if not names:
        return ()
    asks = [one.name for one in asked.tables]
    watched = [one.table for one in stream.tables] if asked.everything else _there(asks, stream, tables)
    found = {name: _there([name], stream, tables) for name in names}
    unknown = [
        name
        for name, refs in found.items()
        if not any(one.is_table(r.path, r.table_id) for r in refs for one in watched)
    ]
    if unknown:
        listed = ", ".join(asks or [one.name for one in watched]) or "nothing"
        problem = f"it does not watch {', '.join(sorted(unknown))}; it is to watch {listed}"
        raise InvalidArgument(argument="restart", value=restart, problem=problem)
    return tuple(ref for refs in found.values() for ref in refs)


def _there(names: Sequence[str], stream: ChangeStream, tables: LakeTables) -> list[TableRef]:
    """The tables of these names, as they are now. A table that is gone is as the stream watches it, if it does."""
    found: list[TableRef] = []
    for name in names:
        try:
            found.append(_reference(name, tables))
        except (TableNotFound, NotADeltaTable):
            found += [one.table for one in (named_table(stream.tables, name),) if one is not None]
    return found


def find_new_tables(
    store: ControlStore,
    stream: ChangeStream,
    tables: LakeTables,
    left_out: Callable[[str], object] = lambda name: None,
    lost: Sequence[WatchedTable] = (),
) -> tuple[WatchedTable, ...]:
    """The tables that a stream FOR ALL does not watch yet. A table that came after the stream is watched from its first
    version on. An older table is watched from the time on at which the stream was made. A table that was watched before
    continues where it was captured, if it is among the last MOST_LEFT that left.

    Older versions that cannot be captured are skipped: the table may have been replaced, or had another key. If the log
    has lost the versions, the table is watched from the newest one.

    A table cannot be watched without key, row tracking and room, or if a group of the stream writes it.
    It stops none of the others: it is left out with a warning, and `left_out` gets its name. The partial aggregates of
    views are passed over. `lost`: tables that were
    watched in another place; one that is found is watched as before. Nothing for any other stream.
    """
    new, left = _look_at_all(store, stream, tables, partial(_begins, store, stream), lost)
    for one in left:
        _warn(stream.name, one)
        left_out(one.name)
    return new


def tables_left_out(store: ControlStore, stream: ChangeStream, tables: LakeTables) -> tuple[LeftOut, ...]:
    """The tables of the lake as it is now that a stream FOR ALL cannot watch; none for any other stream."""
    return _look_at_all(store, stream, tables, lambda watched, opened, now: now.version)[1]


def _look_at_all(
    store: ControlStore,
    stream: ChangeStream,
    tables: LakeTables,
    begins: Callable[[WatchedTable, DeltaLog, TableState], int],
    lost: Sequence[WatchedTable] = (),
) -> tuple[tuple[WatchedTable, ...], tuple[LeftOut, ...]]:
    """The tables that are taken in, and those that cannot be. `begins`: the version after which one is captured. It
    may read a long log, so it is asked for those alone that are taken in.
    """
    if not stream.everything:
        return (), ()
    own = store.read(lambda connection: own_tables(connection, stream.uid))
    others = [one for one in store.read(change_streams.live) if one.uid != stream.uid]
    places = {table.table.table_id: table for table in lost}
    known = {table.table.table_id for table in stream.tables}
    new: list[WatchedTable] = []
    left: list[LeftOut] = []
    for name in tables.names():
        try:
            ref = _reference(name, tables)
            if ref.table_id in known or own.is_partial(ref):
                continue
            _require_not_own(stream.name, ref, own, everything=True)
            if ref.table_id in places:
                found = replace(places[ref.table_id], table=ref)
            else:
                found = _new_table(stream, ref, tables.open(ref), others, begins)
        except (ChangeStreamRefused, SourceError) as error:
            left.append(LeftOut(name, str(error)))
            continue
        new.append(found)
        known.add(ref.table_id)
    return tuple(new), tuple(left)


def _new_table(
    stream: ChangeStream,
    ref: TableRef,
    opened: DeltaLog,
    others: Sequence[ChangeStream],
    begins: Callable[[WatchedTable, DeltaLog, TableState], int],
) -> WatchedTable:
    """Raises as `find_watched`."""
    now = opened.state()
    require_readable(now, ref.name)
    keys = decide_keys(stream.name, ref.name, now.metadata, ())
    watched = WatchedTable(table=ref, keys=keys, columns=None, captured=now.version)
    require_room(stream.name, (watched,), others, everything=False, new=False)
    return replace(watched, captured=begins(watched, opened, now))


def _begins(store: ControlStore, stream: ChangeStream, watched: WatchedTable, opened: DeltaLog, now: TableState) -> int:
    """The version after which the table is captured, with a warning about changes that the stream never has."""
    ref = watched.table
    place = store.read(lambda connection: capture_batches.captured_up_to(connection, stream.uid, ref.table_id))
    if place is None:
        first = _first_after(opened, stream.created_at - CLOCKS_DIFFER)
    else:
        first = place if place <= now.version and opened.goes_on_from(place) else None
    begins = _unbroken_from(opened, now, watched, first)
    if begins not in (place, BEFORE_ITS_FIRST):
        said = "Change stream %s watches %s after version %s; changes up to it have no record."
        log.warning(said, stream.name, ref.name, begins)
    return begins


def _first_after(log: DeltaLog, made: datetime) -> int | None:
    """The version after which all commits are of this time or later; None if the log has lost it."""
    if log.goes_on_from(BEFORE_ITS_FIRST) and log.timestamp(0) >= made:
        return BEFORE_ITS_FIRST
    try:
        version = log.version_at(made)
    except VersionNotFound:
        return None
    return version if log.goes_on_from(version) else None


def _unbroken_from(opened: DeltaLog, now: TableState, watched: WatchedTable, first: int | None) -> int:
    """The earliest version, from `first` on, after which every version can be captured as one of the table now."""
    if first is None:
        return now.version
    state = opened.state(max(first, 0))
    begins = first if _is_as_now(state, now, watched) else None
    for commit in opened.commits(state.version, now.version):
        if commit.metadata is None and commit.protocol is None:
            continue
        state = replace(state, metadata=commit.metadata or state.metadata, protocol=commit.protocol or state.protocol)
        if not _is_as_now(state, now, watched):
            begins = None
        elif begins is None:
            begins = commit.version
    return now.version if begins is None else begins


def _is_as_now(state: TableState, now: TableState, watched: WatchedTable) -> bool:
    """Whether a stream can read `state` as the table now: with its row ids, and its key as the same texts."""
    try:
        require_readable(state, watched.table.name)
    except (RowTrackingDisabled, UnsupportedTableFeature):
        return False
    there = {field.name.casefold() for field in source_schema.fields(state.metadata)}
    return (
        (state.table_id, row_tracking(state.metadata)) == (now.table_id, row_tracking(now.metadata))
        and there.issuperset(key.casefold() for key in watched.keys)
        and rewritten_key(watched.keys, state.metadata, now.metadata) is None
    )


def _all_that_can_be(
    stream: str,
    keys: Mapping[str, tuple[str, ...]],
    tables: LakeTables,
    own: OwnTables,
    known: Sequence[WatchedTable],
    restarted: Sequence[WatchedTable],
) -> tuple[WatchedTable, ...]:
    """Every table of the lake, but those that cannot be watched. A table that is watched already is not left out, as
    its place would be lost: its problem is raised. Raises InvalidArgument for keys of no table.
    """
    old = {table.table.table_id for table in known}
    names_of_old = {table.table.name.casefold() for table in known}
    chosen: dict[str, WatchedTable] = {}
    asked = tables.names()
    by_name = keys_by_name(keys, asked)
    for name in asked:
        with nullcontext() if name.casefold() in names_of_old else _left_out(stream, name):
            found = _found(stream, name, tables, own, everything=True)
            given = {name: by_name[name]} if name in by_name else {}
            if name.casefold() not in names_of_old and own.is_partial(found.ref):
                keys_by_name(given, ())  # it is not watched, so it takes none
                continue
            (watched,) = decide_watch(stream, [(TableRequest(name), found)], given, known, restarted)
            chosen.setdefault(watched.table.table_id, watched)
    tracked: list[WatchedTable] = []
    for watched in chosen.values():
        with _left_out(stream, watched.table.name):
            tracked.append(watched if watched.table.table_id in old else _tracked(watched, tables))
    return tuple(tracked)


@contextmanager
def _left_out(stream: str, name: str) -> Iterator[None]:
    """A table that cannot be watched stops no other."""
    try:
        yield
    except (ChangeStreamRefused, SourceError) as error:
        _warn(stream, LeftOut(name, str(error)))


def _warn(stream: str, left: LeftOut) -> None:
    log.warning("Change stream %s leaves %s out. %s", stream, left.name, left.why)


def _require_not_own(stream: str, table: TableRef, own: OwnTables, *, everything: bool) -> None:
    """Raises ChangeStreamRefused for what change streams write themselves."""
    problem = own.why_not(table, everything=everything)
    if problem is not None:
        raise ChangeStreamRefused(stream=stream, problem=f"{problem}.")


def _found(stream: str, name: str, tables: LakeTables, own: OwnTables, *, everything: bool = False) -> FoundTable:
    try:
        ref = _reference(name, tables)
    except (TableNotFound, NotADeltaTable) as error:
        raise ChangeStreamRefused(stream=stream, problem=f"{name} cannot be watched. {error}") from error
    _require_not_own(stream, ref, own, everything=everything)
    state = tables.open(ref).state()
    require_readable(state, name, row_ids=False)
    return FoundTable(ref, state.metadata, state.version)


def _reference(name: str, tables: LakeTables) -> TableRef:
    """The table of that name, or the only one that differs in case alone. Raises TableNotFound, NotADeltaTable."""
    try:
        return tables.reference(name)
    except TableNotFound:
        alike = [other for other in tables.names() if other.casefold() == name.casefold() and other != name]
        if len(alike) != 1:
            raise
        return tables.reference(alike[0])


def _tracked(watched: WatchedTable, tables: LakeTables) -> WatchedTable:
    """The table from its newest version on, in which row tracking is on."""
    state = tables.open(watched.table).state()
    try:
        require_readable(state, watched.table.name)
    except RowTrackingDisabled:
        if tables.turn_on is None:
            raise
        tables.turn_on(watched.table)
        state = tables.open(watched.table).state()
        require_readable(state, watched.table.name)
    return replace(watched, captured=state.version)
