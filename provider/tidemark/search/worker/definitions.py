"""Adding, dropping and finding search optimization. No job is needed: the next upkeep builds and removes rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidemark.control.store import ControlStore
from tidemark.errors import SearchChanged, SearchNotFound, TableNotFound
from tidemark.model.streams import TableRef
from tidemark.model.table_log import Metadata
from tidemark.search.model.jobs import Kept
from tidemark.search.model.paths import Search, SearchPath
from tidemark.search.model.requests import Target
from tidemark.search.planning.defining import paths_added, paths_left, search_location, targets_without_paths
from tidemark.search.store import searches
from tidemark.streams.planning.known_tables import table_known_as

__all__ = [
    "add_search",
    "drop_again",
    "drop_search",
    "find_search",
    "get_search",
    "has_searches",
    "list_searches",
    "path_to_drop",
    "search_history",
]

_SHOWN = 100


def find_search(store: ControlStore, table_path: str) -> Search | None:
    """The search optimization of the table at a canonical path, or None."""
    return store.read(lambda connection: searches.search_of(connection, table_path))


def get_search(store: ControlStore, table_path: str, name: str) -> Search:
    """The same. Raises SearchNotFound under the `name` of the table."""
    found = find_search(store, table_path)
    if found is None:
        raise SearchNotFound(table=name, what="")
    return found


def list_searches(store: ControlStore) -> tuple[Search, ...]:
    """All search optimization, by the names of the tables."""
    return store.read(searches.live_searches)


def has_searches(store: ControlStore) -> bool:
    """Whether any table has search optimization. Statements ask it, so no row is read."""
    return store.read(searches.any_lives)


def search_history(store: ControlStore, search: Search, limit: int = _SHOWN) -> tuple[Kept, ...]:
    """The commits of the upkeep, newest first, with their costs."""
    return store.read(lambda connection: searches.upkeeps_of(connection, search, limit))


def add_search(
    store: ControlStore, table: TableRef, metadata: Metadata, targets: Sequence[Target], *, by: str
) -> Search:
    """Give the table these paths, beside those that it has; no targets: equality on each column that can be searched.

    A second run changes nothing. Raises SearchRefused, SearchChanged.
    """
    found = find_search(store, table.path)
    if found is None:
        paths, next_id = paths_added(table.name, metadata, (), 1, targets)
        new = Search(store.new_id(), table, search_location(table.path), paths, next_id, store.clock())
        store.write(lambda connection: searches.add_search(connection, new, by=by))
        return new
    paths, next_id = paths_added(table.name, metadata, found.paths, found.next_id, targets)
    if paths != found.paths:
        _set(store, found, paths, next_id, by=by)
    return get_search(store, table.path, table.name)


def path_to_drop(store: ControlStore, name: str, place: str | None, find: Callable[[str], str]) -> str:
    """The path of a table that may be gone: `place` if it has search optimization, else the one that `find` finds. The
    last resort is the only table that had the name. Raises the errors of `find`.

    `place` comes first, since search optimization is of a path: nothing else has to be found.
    """
    if place is not None and find_search(store, place) is not None:
        return place
    try:
        return find(name)
    except TableNotFound:
        known = table_known_as((one.table for one in list_searches(store)), name, place)
        if known is None:
            raise
        return known.path


def drop_search(
    store: ControlStore, table_path: str, name: str, targets: Sequence[Target], *, by: str
) -> Search | None:
    """Take these paths away; no targets, or the last path: all of it. The search optimization that is left, or None.

    Readers use a dropped path no more; the next upkeep removes its rows. The search table of a table without paths
    stays, and may be deleted. Raises SearchNotFound, SearchChanged.
    """
    found = get_search(store, table_path, name)
    left = paths_left(name, found.paths, targets)
    if left:
        _set(store, found, left, found.next_id, by=by)
        return find_search(store, table_path)
    now = store.clock()
    store.write(lambda connection: searches.end_search(connection, found, at=now, by=by))
    return None


def drop_again(
    store: ControlStore, table_path: str, name: str, targets: Sequence[Target], *, by: str
) -> tuple[Search | None, tuple[Target, ...]]:
    """The same, in which a second run changes nothing: also returns the targets that have no path, as after the first.

    Raises SearchChanged.
    """
    found = find_search(store, table_path)
    gone = targets_without_paths(() if found is None else found.paths, targets)
    left = tuple(target for target in targets if target not in gone)
    if found is None or (targets and not left):
        return found, gone
    return drop_search(store, table_path, name, left, by=by), gone


def _set(store: ControlStore, found: Search, paths: Sequence[SearchPath], next_id: int, *, by: str) -> None:
    changed = store.write(lambda connection: searches.set_paths(connection, found, paths, next_id, by=by))
    if not changed:
        raise SearchChanged(table=found.table.name)
