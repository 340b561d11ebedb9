"""Of which base tables a window of a view reads rows as they were at its start, beside what has changed in them."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.changes.planning.views.parts import is_linear, numbered
from tidemark.changes.planning.views.terms import Role, roles_of
from tidemark.model.streams import StreamMode
from tidemark.model.views import ViewQuery

__all__ = ["read_at_start"]


def read_at_start(query: ViewQuery, changed: Collection[int], mode: StreamMode) -> frozenset[int]:
    """The numbers of these tables, where those with the numbers `changed` have changed in the window.

    A table that has not changed is read as it is at the end, but by an append-only stream as it was at the offset.
    Groups and optional partners are computed at both ends (R74, R77).
    """
    parts = numbered(query)
    if not is_linear(parts.tree):
        return frozenset(changed)
    found: set[int] = set()
    for delta in (number for number, base in parts.bases.items() if base in changed):
        roles = roles_of(parts, delta)
        if mode is StreamMode.APPEND_ONLY:
            found |= {parts.bases[scan] for scan, role in roles.items() if role in (Role.OLD, Role.NEW)}
        else:
            found |= {parts.bases[scan] for scan, role in roles.items() if role is Role.OLD} & set(changed)
    return frozenset(found)
