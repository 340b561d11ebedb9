"""Tables that the store knows, found by what a user calls them. None is opened, so they may be gone."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.model.streams import TableRef

__all__ = ["table_known_as"]


def table_known_as(known: Iterable[TableRef], name: str, place: str | None) -> TableRef | None:
    """The table at `place`, else the only one that has the name, in any case. None if two have it, since a guess could
    act on the wrong one.
    """
    tables, wanted = tuple(known), name.strip().casefold()
    there = [table for table in tables if table.path == place]
    found = there or [table for table in tables if table.name.casefold() == wanted]
    return found[0] if len(found) == 1 else None
