"""The base tables of a view that must also be read in full as of the window's start."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.changes.planning.views.parts import is_linear, numbered
from tidemark.changes.planning.views.terms import Role, roles_of
from tidemark.model.streams import StreamMode
from tidemark.model.views import ViewQuery

__all__ = ["read_at_start"]


def read_at_start(query: ViewQuery, changed: Collection[int], mode: StreamMode) -> frozenset[int]:
    """The numbers of these tables, if those with the numbers `changed` have changed in the window.

    An unchanged table is read as of the end, but by an append-only stream as of the offset. Groups and optional
    partners are computed at both ends (R74, R77).
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
