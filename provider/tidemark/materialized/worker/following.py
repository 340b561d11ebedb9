"""Views follow bases that were renamed or moved, as streams follow their tables: rows and history stay (R90)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import LakeError, RelocationRefused, SourceError, SourceMoved
from tidemark.materialized.model.definitions import KeptView
from tidemark.materialized.model.shapes import KeptShape
from tidemark.materialized.store import refreshes, views
from tidemark.model.streams import Addressing, Stream, TableRef
from tidemark.model.views import ViewQuery
from tidemark.sql.statements import path_name
from tidemark.streams.store import streams
from tidemark.streams.worker.following import FOLLOWED_BY, relocate_bases
from tidemark.streams.worker.opening import Tables

__all__ = ["follow_bases"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Reader:
    """A live view and the stream that pins its bases."""

    view: KeptView
    stream: Stream


def follow_bases(store: ControlStore, tables: Tables, paths: Collection[str], *, of: str | None = None) -> bool:
    """Point all views at the places to which their bases at `paths` were renamed or moved. True: some were.

    The windows of open refreshes and the planned ends of waves are moved, too. A second run changes nothing. Bases that
    are where they were, or that nobody finds, stay. So do bases of a view that cannot follow: `of` is the name of the
    view whose RelocationRefused is raised then.
    """
    readers = store.read(lambda connection: _readers(connection, paths))
    places = _places(readers, paths, tables)
    able = [reader for reader in readers if places and _may_follow(reader, places, tables, of)]
    if able:
        store.write(lambda connection: _move_all(connection, store, able, places))
    for reader in able:
        log.warning("%s continues on its bases where they are now: %s.", reader.view.name, _words(reader, places))
    return bool(able)


def _readers(connection: sa.Connection, paths: Collection[str]) -> list[_Reader]:
    """The views that read a table at one of the paths, if that is no table of another view."""
    live = views.live_views(connection)
    own = streams.lookup_all(connection, [view.stream for view in live])
    wanted = set(paths) - {view.kept.path for view in live}
    pairs = [(view, own.get(view.stream.casefold())) for view in live]
    return [
        _Reader(view, stream)
        for view, stream in pairs
        if stream is not None and any(base.table.path in wanted for base in stream.bases)
    ]


def _places(readers: Collection[_Reader], paths: Collection[str], tables: Tables) -> dict[str, TableRef]:
    """The path of each table that was moved → the table where it is now."""
    found: dict[str, TableRef] = {}
    for table in {base.table.path: base.table for reader in readers for base in reader.stream.bases}.values():
        if table.path not in paths:
            continue
        try:
            tables(table)
        except SourceMoved as moved:
            found[table.path] = moved.to
        except (SourceError, LakeError, OSError) as error:  # its refresh says it
            log.debug("The base %s was not found: %s", table.name, error)
    return found


def _may_follow(reader: _Reader, places: Mapping[str, TableRef], tables: Tables, of: str | None) -> bool:
    problem = _problem(reader, places, tables)
    if problem is not None and reader.view.name == of:
        raise RelocationRefused(stream=reader.view.name, problem=problem)
    return problem is None and any(base.table.path in places for base in reader.stream.bases)


def _problem(reader: _Reader, places: Mapping[str, TableRef], tables: Tables) -> str | None:
    """The reason not to follow; None for none. A view of a catalog still names the table as it was."""
    named = sorted((reader.stream.view.views if reader.stream.view else None) or {})
    for base in reader.stream.bases:
        to = places.get(base.table.path)
        if to is None:
            continue
        if named:
            problem = f"it reads the view {named[0]}, and a table was moved to {to.path}"
            return f"{problem}; rename the table back, or create the view again"
        head = tables(to.path).head()
        if head < base.version:
            problem = f"its base exists at {to.path} only up to version {head}, and version {base.version} is needed"
            return f"{problem}; restore the table, or create the view again"
    return None


def _move_all(
    connection: sa.Connection, store: ControlStore, readers: Collection[_Reader], places: Mapping[str, TableRef]
) -> None:
    for reader in readers:
        _move(connection, store, reader.view, places)


def _move(connection: sa.Connection, store: ControlStore, view: KeptView, places: Mapping[str, TableRef]) -> None:
    """As read in this transaction."""
    live = next(iter(views.views_with_uids(connection, [view.uid])), None)
    stream = streams.lookup(connection, view.stream)
    if live is None or stream is None or stream.view is None:
        return
    pairs = zip(stream.view.bases, stream.bases, strict=True)
    texts = {text: _text(places[base.table.path]) for text, base in pairs if base.table.path in places}
    relocate_bases(connection, store, stream, places, _over(stream.view, texts))
    paths = {path: to.path for path, to in places.items()}
    read = {paths.get(path, path): columns for path, columns in live.columns_read.items()}
    views.move_bases(connection, live, _shape_over(live.shape, texts), read, by=FOLLOWED_BY)
    refreshes.move_ends(connection, live.uid, paths)


def _text(to: TableRef) -> str:
    """The table as a query names it."""
    return to.name if to.addressing is Addressing.CATALOG else path_name(to.path)


def _shape_over(shape: KeptShape, texts: Mapping[str, str]) -> KeptShape:
    query = None if shape.query is None else _over(shape.query, texts)
    return replace(shape, followed=_over(shape.followed, texts), query=query)


def _over(query: ViewQuery, texts: Mapping[str, str]) -> ViewQuery:
    return replace(query, bases=tuple(texts.get(base, base) for base in query.bases))


def _words(reader: _Reader, places: Mapping[str, TableRef]) -> str:
    moved = [places[base.table.path] for base in reader.stream.bases if base.table.path in places]
    return ", ".join(f"{to.name} at {to.path}" for to in moved)
