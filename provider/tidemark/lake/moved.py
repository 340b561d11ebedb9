"""The place of a registered table whose path is gone: its Delta table id at another path, under any name (R90)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidemark.errors import InvalidArgument, SourceCopied, SourceError, SourceMoved, StorageRefused, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.listing import table_names
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage
from tidemark.lake.tables import location_of
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.identifiers import spelled
from tidemark.sql.table_names import table_name

__all__ = ["Finder", "below_the_root", "beside", "by_name", "look_at_all", "open_registered", "table_at"]

AT_ONCE = 16
"""Places that are looked at together for a table that is gone: a place in an object store takes several requests."""

_PARENT = re.compile(r"(\w+://.*[^/])/[^/]+")
_HIDDEN = ("_", ".")

Finder = Callable[[TableRef], Iterable[TableRef]]
"""Places at which the table exists now. Raises TableNotFound if its name leads nowhere, with a hint."""


def open_registered(table: TableRef, finders: Sequence[Finder], options: Mapping[str, str] | None = None) -> DeltaLog:
    """The log of a registered table. `finders` are asked in turn, and only if the table is not at its path.

    Raises TableNotFound and NotADeltaTable. Raises SourceMoved, a TableNotFound, if the table exists at exactly one
    other path, and SourceCopied, a TableNotFound, too, if at several.
    """
    try:
        return DeltaLog.open(table.path, options)
    except TableNotFound as gone:
        raise _moved(table, finders, gone) from gone


def by_name(find: Callable[[str], tuple[str, Addressing]], options: Mapping[str, str] | None = None) -> Finder:
    """Asks where the table's own name leads now; a path leads nowhere else."""

    def found(table: TableRef) -> Iterator[TableRef]:
        if table.addressing is Addressing.PATH:
            return
        try:
            uri, addressing = find(table.name)
        except TableNotFound:
            raise
        except (SourceError, InvalidArgument):  # a view by now, two tables, or a catalog must be asked
            return
        yield from table_at(table, uri, table.name, addressing, options)

    return found


def beside(options: Mapping[str, str] | None = None) -> Finder:
    """Looks through the directory in which the table was: there a catalog keeps a managed table that it renames."""

    def found(table: TableRef) -> Iterator[TableRef]:
        parent = _PARENT.fullmatch(table.path)
        if parent is None:
            return

        def look(directory: str) -> Sequence[TableRef]:
            uri = f"{parent[1]}/{directory}"
            name = uri if table.addressing is Addressing.PATH else _in_its_schema(table.name, directory)
            return tuple(table_at(table, uri, name, table.addressing, options))

        yield from look_at_all(_directories(Storage(parent[1], options)), look)

    return found


def below_the_root(lake_root: str, options: Mapping[str, str] | None = None) -> Finder:
    """Looks through all tables of the lake, for a table that had its name there."""

    def found(table: TableRef) -> Iterator[TableRef]:
        if table.addressing is not Addressing.LAKE:
            return

        def look(name: str) -> Sequence[TableRef]:
            return tuple(table_at(table, location_of(name, lake_root)[0], name, Addressing.LAKE, options))

        yield from look_at_all(table_names(lake_root, options), look)

    return found


def look_at_all(places: Sequence[str], look: Callable[[str], Sequence[TableRef]]) -> Iterator[TableRef]:
    """The tables that `look` finds, in the order of the places. It looks at all of them, however many they are, since
    any may have a second copy of the table.
    """
    if not places:
        return
    with ThreadPoolExecutor(min(AT_ONCE, len(places))) as pool:
        for found in pool.map(look, places):
            yield from found


def table_at(
    table: TableRef, uri: str, name: str, addressing: Addressing, options: Mapping[str, str] | None = None
) -> Iterator[TableRef]:
    """The table under its other name, if that is the one at `uri`; nothing if another table or none is."""
    try:
        if not Storage(uri, options).exists(LOG_DIRECTORY):
            return
        log = DeltaLog.open(uri, options)
        if log.state().table_id == table.table_id:
            yield TableRef(name, log.uri, table.table_id, addressing)
    except (SourceError, StorageRefused):  # a neighbour that cannot be read hides no other
        return


def _moved(table: TableRef, finders: Sequence[Finder], gone: TableNotFound) -> TableNotFound:
    """The error for a table that is gone: the first finder that knows it decides."""
    hint = gone.hint
    for finder in finders:
        try:
            places = {one.path: one for one in finder(table)}
        except TableNotFound as nowhere:  # it knows where the name was looked for, and names that are like it
            hint = nowhere.hint
            continue
        if len(places) > 1:
            return SourceCopied(path=table.path, places=", ".join(sorted(places)))
        to = next(iter(places.values()), None)
        if to is not None:
            return SourceMoved(
                name=to.name,
                old_path=table.path,
                path=to.path,
                table_id=to.table_id,
                addressing=to.addressing.value,
            )
    return TableNotFound(path=table.path, hint=hint)


def _in_its_schema(name: str, directory: str) -> str:
    return ".".join(spelled(part) for part in (*table_name(name).parts[:-1], directory))


def _directories(storage: Storage) -> list[str]:
    try:
        return [name for name in storage.names() if not name.startswith(_HIDDEN)]
    except (FileNotFoundError, NotADirectoryError):
        return []
