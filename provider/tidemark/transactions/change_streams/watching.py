"""Which tables a change stream is to watch, found by their logs before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidemark.errors import ChangeStreamRefused, NotADeltaTable, RowTrackingDisabled, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.change_streams import ChangeStream, WatchedTable
from tidemark.model.streams import TableRef
from tidemark.planning.change_streams.definition import (
    FoundTable,
    TableAsk,
    WatchAsk,
    decide_keys,
    decide_watch,
)
from tidemark.planning.source_support import require_readable

__all__ = ["LakeTables", "find_new_tables", "find_watched"]

BEFORE_ITS_FIRST = -1  # version from which on a table is captured that came after the stream


@dataclass(frozen=True)
class LakeTables:
    """How tables are found: by name, by reference, and all that there are. `turn_on`: turns row tracking on where it
    is off; None: a table without it is refused.
    """

    reference: Callable[[str], TableRef]
    open: Callable[[TableRef], DeltaLog]
    names: Callable[[], Sequence[str]]
    turn_on: Callable[[TableRef], None] | None = None


def find_watched(
    stream: str,
    watch: WatchAsk,
    keys: Mapping[str, tuple[str, ...]],
    tables: LakeTables,
    known: Sequence[WatchedTable] = (),
) -> tuple[WatchedTable, ...]:
    """The tables of `watch` as they are now, each watched from its newest version on; `known` ones as they stand.

    Row tracking is turned on, if it may be, only after everything else was found right. Raises ChangeStreamRefused,
    InvalidArgument, RowTrackingDisabled, UnsupportedTableFeature.
    """
    asks = tuple(TableAsk(name) for name in tables.names()) if watch.everything else watch.tables
    found = [(ask, _found(stream, ask.name, tables)) for ask in asks]
    watched = decide_watch(stream, found, keys, known)
    old = {table.table.table_id for table in known}
    return tuple(table if table.table.table_id in old else _tracked(table, tables) for table in watched)


def find_new_tables(stream: ChangeStream, tables: LakeTables) -> tuple[WatchedTable, ...]:
    """What a stream FOR ALL does not watch yet: tables that came after it, each from its first version on.

    Nothing for any other stream. Raises ChangeStreamRefused for a table without key, RowTrackingDisabled,
    UnsupportedTableFeature.
    """
    if not stream.everything:
        return ()
    known = {table.table.table_id for table in stream.tables}
    new = []
    for name in tables.names():
        found = _found(stream.name, name, tables)
        if found.ref.table_id in known:
            continue
        require_readable(tables.open(found.ref).state(), name)
        keys = decide_keys(stream.name, name, found.metadata, ())
        new.append(WatchedTable(table=found.ref, keys=keys, columns=None, captured=BEFORE_ITS_FIRST))
    return tuple(new)


def _found(stream: str, name: str, tables: LakeTables) -> FoundTable:
    try:
        ref = _reference(name, tables)
    except (TableNotFound, NotADeltaTable) as error:
        raise ChangeStreamRefused(stream=stream, problem=f"{name} cannot be watched. {error}") from error
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
