"""Which tables a change stream is to watch, found by their logs before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from tidemark.change_streams.model.change_streams import ChangeStream, WatchedTable
from tidemark.change_streams.planning.definition import (
    FoundTable,
    TableRequest,
    WatchRequest,
    decide_keys,
    decide_watch,
    require_asked,
)
from tidemark.change_streams.planning.own_tables import OwnTables
from tidemark.change_streams.worker.sinks import own_tables
from tidemark.changes.planning.source_support import require_readable
from tidemark.control.store import ControlStore
from tidemark.errors import ChangeStreamRefused, NotADeltaTable, RowTrackingDisabled, SourceError, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef

__all__ = ["LakeTables", "LeftOut", "find_new_tables", "find_watched", "tables_left_out"]

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
    known: Sequence[WatchedTable] = (),
) -> tuple[WatchedTable, ...]:
    """The tables of `watch` as they are now, each watched from its newest version on; `known` ones from where they are
    captured.

    FOR ALL leaves those out with a warning that cannot be watched, as `find_new_tables` does; one that is named is
    refused. Row tracking is turned on, if it may be, only after everything else was found right. `own`: what change
    streams write. Raises ChangeStreamRefused, InvalidArgument, RowTrackingDisabled, UnsupportedTableFeature.
    """
    old = {table.table.table_id for table in known}
    if watch.everything:
        return _all_that_can_be(stream, keys, tables, own, known)
    found = [(request, _found(stream, request.name, tables, own)) for request in watch.tables]
    watched = decide_watch(stream, found, keys, known)
    return tuple(table if table.table.table_id in old else _tracked(table, tables) for table in watched)


def find_new_tables(
    store: ControlStore,
    stream: ChangeStream,
    tables: LakeTables,
    left_out: Callable[[str], object] = lambda name: None,
    lost: Sequence[WatchedTable] = (),
) -> tuple[WatchedTable, ...]:
    """The tables that a stream FOR ALL does not watch yet, as they came after it. Each is watched from its first
    version on. It is watched from its newest one if the log has lost the first, or row tracking was turned on later.

    A table cannot be watched if it has no key or no row tracking, or a group of the stream writes it. It stops none of
    the others: it is left out with a warning, and `left_out` gets its name. `lost`: tables that were watched in another
    place; one that is found is watched as before. Nothing for any other stream.
    """
    places = {table.table.table_id: table for table in lost}
    new, left = _look_at_all(store, stream, tables, places)
    for one in left:
        _warn(stream.name, one)
        left_out(one.name)
    for watched in new:
        if watched.captured != BEFORE_ITS_FIRST and watched.table.table_id not in places:
            said = "Change stream %s watches %s from version %s on; changes before it have no record."
            log.warning(said, stream.name, watched.table.name, watched.captured)
    return new


def tables_left_out(store: ControlStore, stream: ChangeStream, tables: LakeTables) -> tuple[LeftOut, ...]:
    """The tables of the lake as it is now that a stream FOR ALL cannot watch; none for any other stream."""
    return _look_at_all(store, stream, tables, {})[1]


def _look_at_all(
    store: ControlStore, stream: ChangeStream, tables: LakeTables, lost: Mapping[str, WatchedTable]
) -> tuple[tuple[WatchedTable, ...], tuple[LeftOut, ...]]:
    if not stream.everything:
        return (), ()
    own = store.read(lambda connection: own_tables(connection, stream.uid))
    known = {table.table.table_id for table in stream.tables}
    new: list[WatchedTable] = []
    left: list[LeftOut] = []
    for name in tables.names():
        try:
            found = _new_table(stream.name, name, tables, own, known, lost)
        except (ChangeStreamRefused, SourceError) as error:
            left.append(LeftOut(name, str(error)))
            continue
        if found is not None:
            new.append(found)
            known.add(found.table.table_id)
    return tuple(new), tuple(left)


def _new_table(
    stream: str,
    name: str,
    tables: LakeTables,
    own: OwnTables,
    known: Collection[str],
    lost: Mapping[str, WatchedTable],
) -> WatchedTable | None:
    """The table, if it is not known; one of `lost` as it was. None: a question, not a failure. Raises as
    `find_watched`.
    """
    ref = _reference(name, tables)
    if ref.table_id in known:
        return None
    _require_not_own(stream, ref, own, everything=True)
    if ref.table_id in lost:
        return replace(lost[ref.table_id], table=ref)
    opened = tables.open(ref)
    state = opened.state()
    require_readable(state, name)
    keys = decide_keys(stream, name, state.metadata, ())
    whole = opened.goes_on_from(BEFORE_ITS_FIRST) and opened.state(0).row_tracking
    return WatchedTable(table=ref, keys=keys, columns=None, captured=BEFORE_ITS_FIRST if whole else state.version)


def _all_that_can_be(
    stream: str,
    keys: Mapping[str, tuple[str, ...]],
    tables: LakeTables,
    own: OwnTables,
    known: Sequence[WatchedTable],
) -> tuple[WatchedTable, ...]:
    """Every table of the lake, but those that cannot be watched. A table that is watched already is not left out, as
    its place would be lost: its problem is raised. Raises InvalidArgument for keys of no table.
    """
    old = {table.table.table_id for table in known}
    names_of_old = {table.table.name.casefold() for table in known}
    chosen: dict[str, WatchedTable] = {}
    asked = tables.names()
    require_asked(keys, asked)
    for name in asked:
        with nullcontext() if name.casefold() in names_of_old else _left_out(stream, name):
            found = [(TableRequest(name), _found(stream, name, tables, own, everything=True))]
            given = {key: columns for key, columns in keys.items() if key == name.casefold()}
            (watched,) = decide_watch(stream, found, given, known)
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
