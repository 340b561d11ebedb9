"""The tables that a change stream is to watch: as the user names them, and as the existing tables allow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.change_streams.model.change_streams import ChangeStream, WatchedTable
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.source_keys import require_keys
from tidemark.errors import ChangeStreamRefused, InvalidArgument
from tidemark.model.streams import TableRef
from tidemark.model.table_log import Metadata

__all__ = [
    "PRIMARY_KEY",
    "STREAMS_AT_MOST",
    "STREAMS_ON_A_TABLE",
    "FoundTable",
    "TableRequest",
    "WatchRequest",
    "decide_keys",
    "decide_watch",
    "keys_by_name",
    "names_of_restart",
    "parse_keys",
    "parse_watch",
    "require_name",
    "require_partitions",
    "require_room",
    "tables_that_restart",
    "watch_of",
]

PRIMARY_KEY = "tidemark.primaryKey"  # a table property: the key columns, with commas between them
STREAMS_AT_MOST = 10  # in one control store
STREAMS_ON_A_TABLE = 3
FIRST_PARTITIONS = 1_024  # at most: every capture's plan names all partitions
_GENERATED = "delta.generationExpression"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True)
class TableRequest:
    """A table in FOR, by the name that the user gave. `columns`: None: all; () the key alone."""

    name: str
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class WatchRequest:
    """The content of FOR. `everything`: FOR ALL. No table at all: the stream is suspended."""

    everything: bool = False
    tables: tuple[TableRequest, ...] = ()


@dataclass(frozen=True)
class FoundTable:
    """A table as it is now; `since`: the version from which on it is watched, exclusive."""

    ref: TableRef
    metadata: Metadata
    since: int


def require_name(name: str) -> None:
    """Say nothing if a change stream can have that name: READ_ and the name are a function. Raises InvalidArgument."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        problem = "a letter, then letters, digits and underscores, 128 at most: READ_ and the name are a SQL function"
        raise InvalidArgument(argument="change_stream", value=name, problem=problem)


def require_partitions(count: int) -> None:
    """Say nothing if a change stream can begin with this many partitions. Raises InvalidArgument."""
    if not 1 <= count <= FIRST_PARTITIONS:
        problem = f"from 1 to {FIRST_PARTITIONS}; load splits them further"
        raise InvalidArgument(argument="initial_partitions", value=count, problem=problem)


def parse_watch(watch: Any) -> WatchRequest:
    """`"ALL"`, the name of a table, a list of names, or a mapping from names to columns; None watches nothing.

    Columns: None for all of the table, also later ones; a list; an empty one for the key alone. Raises InvalidArgument.
    """
    if watch is None:
        return WatchRequest()
    if isinstance(watch, WatchRequest):
        return watch
    if isinstance(watch, str):
        return (
            WatchRequest(everything=True)
            if watch.strip().upper() == "ALL"
            else WatchRequest(tables=(_ask(watch, None),))
        )
    if isinstance(watch, Mapping):
        return WatchRequest(tables=tuple(_ask(name, columns) for name, columns in watch.items()))
    if isinstance(watch, Sequence):
        return WatchRequest(tables=tuple(_ask(name, None) for name in watch))
    raise _invalid(watch, 'give "ALL", a table, a list of tables, or {table: None | [columns] | []}')


def names_of_restart(restart: Any) -> tuple[str, ...]:
    """The names of tables. Raises InvalidArgument for what is no list of names."""
    if not restart:
        return ()
    names = [restart] if isinstance(restart, str) else restart
    if not isinstance(names, Sequence) or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidArgument(argument="restart", value=restart, problem="give a table, or a list of tables")
    return tuple(name.strip() for name in names)


def watch_of(stream: ChangeStream) -> WatchRequest:
    """The tables that the stream watches, as its user would ask for them."""
    if stream.everything:
        return WatchRequest(everything=True)
    return WatchRequest(tables=tuple(TableRequest(one.table.name, one.columns) for one in stream.tables))


def tables_that_restart(stream: ChangeStream, found: Sequence[TableRef]) -> tuple[WatchedTable, ...]:
    """The watched tables that these are, by their ids. Of a table that was replaced, the one that was at its path."""
    known = {one.table.table_id for one in stream.tables}
    ids, replaced = {ref.table_id for ref in found}, {ref.path for ref in found if ref.table_id not in known}
    return tuple(one for one in stream.tables if one.table.table_id in ids or one.table.path in replaced)


def parse_keys(keys: Any, asks: Sequence[TableRequest]) -> dict[str, tuple[str, ...]]:
    """Key columns by the name of the table, as it is given; a plain list is that of the only table.

    Raises InvalidArgument.
    """
    if not keys:
        return {}
    if isinstance(keys, Mapping):
        return {str(name): _columns("keys", columns) for name, columns in keys.items()}
    if len(asks) != 1:
        raise InvalidArgument(argument="keys", value=keys, problem="more than one table: give {table: [columns]}")
    return {asks[0].name: _columns("keys", keys)}


def keys_by_name(keys: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The keys under the names of these tables: the table of exactly that name, else the only one in another case.

    Raises InvalidArgument for keys of no table, or of several.
    """
    found: dict[str, tuple[str, ...]] = {}
    for given in sorted(keys, key=lambda given: given in names):  # an exact name counts over one in another case
        of = {given} if given in names else {name for name in names if name.casefold() == given.casefold()}
        if not of:
            raise InvalidArgument(argument="keys", value=[given], problem="the stream does not watch such a table")
        if len(of) > 1:
            problem = f"it may be {' or '.join(sorted(of))}: give the name in its case"
            raise InvalidArgument(argument="keys", value=[given], problem=problem)
        found[of.pop()] = keys[given]
    return found


def decide_watch(
    stream: str,
    found: Sequence[tuple[TableRequest, FoundTable]],
    keys: Mapping[str, tuple[str, ...]],
    known: Sequence[WatchedTable] = (),
    restarted: Sequence[WatchedTable] = (),
) -> tuple[WatchedTable, ...]:
    """The tables as the stream is to watch them. Tables that it watches already (`known`) stay where they are captured.
    They keep their keys, and their name unless their path has changed. Those in `restarted` keep their keys unless
    others are given.

    Raises ChangeStreamRefused for a table or column that is named twice, and for a table without key. Raises it also
    for a column that does not exist, is in the key or is generated. Raises InvalidArgument for keys that cannot be one,
    and other keys of a table that stays.
    """
    watched: dict[str, WatchedTable] = {}
    by_id = {table.table.table_id: table for table in known}
    by_name = keys_by_name(keys, [request.name for request, _ in found])
    for request, table in found:
        if table.ref.table_id in watched:
            raise _refused(stream, f"table {request.name} is listed in FOR more than once")
        old = by_id.get(table.ref.table_id)
        given = by_name.get(request.name, ())
        given = _keys_of_new(given, table.ref, restarted) if old is None else _keys_that_stay(given, request, old)
        key = decide_keys(stream, table.ref.name, table.metadata, given)
        watched[table.ref.table_id] = WatchedTable(
            table=table.ref if old is None or old.table.path != table.ref.path else old.table,
            keys=key,
            columns=_watched_columns(stream, request, table.metadata, key),
            captured=table.since if old is None else old.captured,
        )
    return tuple(watched.values())


def _keys_of_new(given: tuple[str, ...], table: TableRef, restarted: Sequence[WatchedTable]) -> tuple[str, ...]:
    before = (one.keys for one in restarted if one.table.is_table(table.path, table.table_id))
    return given or next(before, ())


def _keys_that_stay(given: tuple[str, ...], request: TableRequest, old: WatchedTable) -> tuple[str, ...]:
    """Raises InvalidArgument for others: its records are in partitions by its keys, and a merge knows rows by them."""
    if given and {key.casefold() for key in given} != {key.casefold() for key in old.keys}:
        problem = (
            f"the records of {request.name} know rows by {', '.join(old.keys)}; to change that, name it in restart"
        )
        raise InvalidArgument(argument="keys", value=list(given), problem=problem)
    return old.keys


def decide_keys(stream: str, table: str, metadata: Metadata, given: Sequence[str]) -> tuple[str, ...]:
    """The key columns of a table, as it spells them: those given, else those of its property.

    Raises ChangeStreamRefused if there are none, or the property's cannot be one; InvalidArgument for those given.
    """
    if given:
        return require_keys(metadata, given, table)
    named = [name.strip().strip("`") for name in metadata.configuration.get(PRIMARY_KEY, "").split(",")]
    if not any(named):
        problem = (
            f"table {table} has no primary key, which Delta does not keep. Give keys={{{table!r}: [columns]}}, or say"
            f" it once: ALTER TABLE {table} SET TBLPROPERTIES ('{PRIMARY_KEY}' = 'id')"
        )
        raise _refused(stream, problem)
    try:
        return require_keys(metadata, [name for name in named if name], table)
    except InvalidArgument as error:
        problem = f"table property {PRIMARY_KEY} of {table}: {error.facts['problem']}"
        raise _refused(stream, problem) from error


def require_room(
    stream: str, tables: Sequence[WatchedTable], others: Sequence[ChangeStream], *, everything: bool, new: bool
) -> None:
    """Say nothing if each table is named once, and no column or table is watched by more than may. If the change stream
    is `new`, there must be room for one more, and its functions in SQL must be no other's.

    `others`: all change streams but this one. A change stream that watches ALL counts for each table. Raises
    ChangeStreamRefused.
    """
    if new and len(others) >= STREAMS_AT_MOST:
        raise _refused(stream, f"there are {len(others)} change streams, and {STREAMS_AT_MOST} is the most; drop one")
    if new:
        _require_its_own_functions(stream, others)
    all_tables = sum(other.everything for other in others)
    if everything and all_tables >= STREAMS_ON_A_TABLE:
        raise _refused(stream, f"{all_tables} change streams watch ALL, and {STREAMS_ON_A_TABLE} is the most")
    ids = [table.table.table_id for table in tables]
    for table in tables:
        if ids.count(table.table.table_id) > 1:
            raise _refused(stream, f"table {table.table.name} is listed in FOR more than once")
        crowded = _crowded(table, others)
        if crowded is not None:
            what = f"table {table.table.name}" if crowded == "" else f"column {crowded} of table {table.table.name}"
            raise _refused(stream, f"{what} is watched by {STREAMS_ON_A_TABLE} change streams, which is the most")


def _require_its_own_functions(stream: str, others: Sequence[ChangeStream]) -> None:
    """READ_<stream> of `json_x` is read_json_<stream> of `x`."""
    for other in others:
        longer, shorter = sorted((stream.casefold(), other.name.casefold()), key=len, reverse=True)
        if longer == f"json_{shorter}":
            problem = f"read_{longer} would be a function of change stream {other.name}, too; take another name"
            raise _refused(stream, problem)


def _crowded(wanted: WatchedTable, others: Sequence[ChangeStream]) -> str | None:
    """A column that has as many watchers as there may be, "" for the table itself; None if there is room.

    Watchers of the whole are watchers of each column, and those of the key alone only of the table.
    """
    same = [table for other in others for table in other.tables if table.table.table_id == wanted.table.table_id]
    unseen = sum(other.everything and wanted.table.table_id not in _ids(other) for other in others)
    whole = unseen + sum(table.columns is None for table in same)
    key_only = sum(table.columns == () for table in same)
    if whole >= STREAMS_ON_A_TABLE or (not wanted.columns and whole + key_only >= STREAMS_ON_A_TABLE):
        return ""
    counted = Counter(column for table in same for column in table.columns or ())
    columns = counted if wanted.columns is None else wanted.columns
    return next((column for column in columns if counted[column] + whole >= STREAMS_ON_A_TABLE), None)


def _ids(stream: ChangeStream) -> set[str]:
    return {table.table.table_id for table in stream.tables}


def _watched_columns(
    stream: str, request: TableRequest, metadata: Metadata, keys: Sequence[str]
) -> tuple[str, ...] | None:
    if request.columns is None:
        return None
    there = {field.name.casefold(): field for field in source_schema.fields(metadata)}
    chosen: list[str] = []
    for column in request.columns:
        field = there.get(column.casefold())
        if field is None:
            raise _refused(stream, f"table {request.name} has no column {column}; it has {_names(metadata)}")
        if field.name in chosen:
            raise _refused(stream, f"column {field.name} of table {request.name} is listed in FOR more than once")
        if field.name in keys:
            problem = (
                f"FOR should not list {field.name}, which is in the primary key of table {request.name}. Its records"
                " always have the key"
            )
            raise _refused(stream, problem)
        if _GENERATED in field.form.get("metadata", {}):
            raise _refused(stream, f"column {field.name} of table {request.name} is generated, and cannot be watched")
        chosen.append(field.name)
    return tuple(field.name for field in there.values() if field.name in chosen)


def _names(metadata: Metadata) -> str:
    return ", ".join(field.name for field in source_schema.fields(metadata))


def _ask(name: Any, columns: Any) -> TableRequest:
    if not isinstance(name, str) or not name.strip():
        raise _invalid(name, "the name of a table is a text")
    return TableRequest(name.strip(), None if columns is None else _columns("watch", columns))


def _columns(argument: str, columns: Any) -> tuple[str, ...]:
    if isinstance(columns, str):
        columns = [part.strip() for part in columns.split(",") if part.strip()]
    if not isinstance(columns, Sequence) or not all(isinstance(one, str) and one for one in columns):
        raise InvalidArgument(argument=argument, value=columns, problem="columns are a list of names")
    return tuple(columns)


def _invalid(value: object, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="watch", value=value, problem=problem)


def _refused(stream: str, problem: str) -> ChangeStreamRefused:
    return ChangeStreamRefused(stream=stream, problem=f"{problem}.")
