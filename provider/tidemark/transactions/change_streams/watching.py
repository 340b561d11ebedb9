"""Which tables a change stream is to watch, found by their logs before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tidemark.errors import ChangeStreamRefused, NotADeltaTable, RowTrackingDisabled, SourceError, TableNotFound
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

log = logging.getLogger(__name__)

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


def find_new_tables(
    stream: ChangeStream, tables: LakeTables, left_out: Callable[[str], object] = lambda name: None
) -> tuple[WatchedTable, ...]:
    """What a stream FOR ALL does not watch yet: tables that came after it, each from its first version on, or from its
    newest one where the log has lost the first, or row tracking was turned on later.

    One that cannot be watched, as it has no key or no row tracking, stops none of the others: it is left out with a
    warning, and `left_out` is told its name. Nothing for any other stream.
    """
    if not stream.everything:
        return ()
    known = {table.table.table_id for table in stream.tables}
    new = []
    for name in tables.names():
        try:
            new.append(_new_table(stream.name, name, tables, known))
        except (ChangeStreamRefused, SourceError) as error:
            log.warning("Change stream %s leaves %s out. %s", stream.name, name, error)
            left_out(name)
    return tuple(table for table in new if table is not None)


def _new_table(stream: str, name: str, tables: LakeTables, known: Collection[str]) -> WatchedTable | None:
    """The table, if it is not known; None: a question, not a failure. Raises as `find_watched`."""
    ref = _reference(name, tables)
    if ref.table_id in known:
        return None
    opened = tables.open(ref)
    state = opened.state()
    require_readable(state, name)
    keys = decide_keys(stream, name, state.metadata, ())
    whole = opened.goes_on_from(BEFORE_ITS_FIRST) and opened.state(0).row_tracking
    if not whole:
        log.warning(
            "Change stream %s watches %s from version %s on; before it no change is told.", stream, name, state.version
        )
    return WatchedTable(table=ref, keys=keys, columns=None, captured=BEFORE_ITS_FIRST if whole else state.version)


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
