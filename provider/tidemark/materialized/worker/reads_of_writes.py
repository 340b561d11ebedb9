"""Views of ours that a write names: the kept rows of dynamic tables, and no materialized view."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidemark.control.store import ControlStore
from tidemark.errors import StatementRefused
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning.reading import over_kept
from tidemark.materialized.worker.reading import kept_read
from tidemark.materialized.worker.views import find_views
from tidemark.sql.statements import ParsedStatement, splice
from tidemark.streams.worker.opening import Tables

__all__ = ["materialized_views_among", "over_dynamic_tables"]


def materialized_views_among(store: ControlStore, names: Collection[str]) -> tuple[str, ...]:
    """Those of the names that are materialized views, whose kept tables lag behind what readers see."""
    return _materialized(find_views(store, names))


def over_dynamic_tables(store: ControlStore, tables: Tables, parsed: ParsedStatement, streams: Collection[str]) -> str:
    """The text of a write with the kept rows of dynamic tables in place of their names.

    The write runs as a job, and a retry runs it again. Raises StatementRefused for a materialized view, whose rows only
    a client can compute, and KeptViewNotReady.
    """
    known = {name.casefold() for name in streams}
    target = None if parsed.target is None else parsed.target.name
    found = find_views(store, [name for name in parsed.names if name.casefold() not in known and name != target])
    if refused := _materialized(found):
        problem = f"a write cannot read the materialized view {refused[0]}, but a dynamic table of that query"
        raise StatementRefused(problem=problem, sql=parsed.sql)
    for name in found:
        kept_read(store, name, tables)
    rows = {name: f"({over_kept(view.shape, view.kept.path)})" for name, view in found.items()}
    return splice(parsed, rows) if rows else parsed.sql


def _materialized(found: Mapping[str, KeptView]) -> tuple[str, ...]:
    return tuple(name for name, view in found.items() if view.kind is KeptKind.MATERIALIZED_VIEW)
