"""The places of objects that need attention, the worst first, by the table of objects and by the findings of looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import NamedTuple

import sqlalchemy as sa

from tidemark.control.cursors import cursor_after, key_of
from tidemark.control.object_kinds import KINDS, Finding, Severity, kind_named
from tidemark.control.object_list import ObjectsWish, among, live
from tidemark.control.schema import objects

__all__ = ["RANKS", "REASONS", "Key", "Place", "Reason", "findings_of", "place_of_cursor", "places"]

Key = tuple[str, str]
"""Kind and uid of an object."""

RANKS = {"failed": 0, "warning": 1, "stopped": 2}
"""The groups of the list, the worst first. `stopped`: a person has stopped it, and a person has to end that."""


@dataclass(frozen=True)
class Reason:
    """A reason for attention. `words`: for people. `group`: one of `RANKS`, under which it is listed and counted."""

    words: str
    group: str


REASONS = {
    "failed": Reason("failed", "failed"),
    "warning": Reason("warning", "warning"),
    "behind": Reason("behind", "warning"),
    "behind_usual": Reason("behind its usual lag", "warning"),
    "locked": Reason("locked", "warning"),
    "stopped": Reason("stopped", "stopped"),
}
"""All reasons for attention by their names. Page, route, command and notifier have these, and no others."""

_of = objects.c
_LIST = "overview"
_URGENT = (Severity.FAILED.value, Severity.WARNING.value)


class Place(NamedTuple):
    """The place of an object in the list. It moves only if the object's urgency or its name changes. A tuple, as
    thousands are sorted for each request.
    """

    rank: int
    kind: str
    folded_name: str
    uid: str

    @property
    def key(self) -> Key:
        """The object that has this place."""
        return self.kind, self.uid

    @property
    def cursor(self) -> str:
        """A text for a caller who wants what comes after it."""
        return cursor_after(_LIST, self)


def place_of_cursor(cursor: str) -> Place:
    """Raises InvalidArgument for a text that is no cursor."""
    return Place(*key_of(cursor, _LIST, (int, str, str, str)))


def places(
    connection: sa.Connection, wish: ObjectsWish, late: Mapping[Key, Severity], findings: Mapping[Key, Finding]
) -> list[Place]:
    """The places of all that need attention and fit the wish, in their order. `late`: objects that are worse than the
    store knows, by what their logs or their lags say. `findings`: see `findings_of`. Two queries, and one for each
    further 500 objects of `late` and `findings`.
    """
    found = _read(connection, wish, _needing(), late, findings)
    further = (late.keys() | findings.keys()).difference([place.key for place in found])
    for wanted in among(further):
        found += _read(connection, wish, wanted, late, findings)
    return sorted(found)


def findings_of(connection: sa.Connection, now: datetime) -> dict[Key, Finding]:
    """Facts that ask for somebody and that the subjects' rows have beside the states. One query for each kind that has
    such facts.
    """
    found: dict[Key, Finding] = {}
    for kind in KINDS:
        find = kind_named(kind).findings
        if find is not None:
            found.update(((kind, uid), finding) for uid, finding in find(connection, now).items())
    return found


@cache
def _needing() -> sa.ColumnElement[bool]:
    return sa.or_(_of.severity.in_(_URGENT), *(_stopped(kind) for kind in KINDS if kind_named(kind).stopped))


def _stopped(kind: str) -> sa.ColumnElement[bool]:
    return (_of.kind == kind) & _of.state.in_(sorted(kind_named(kind).stopped))


def _read(
    connection: sa.Connection,
    wish: ObjectsWish,
    wanted: sa.ColumnElement[bool],
    late: Mapping[Key, Severity],
    findings: Mapping[Key, Finding],
) -> list[Place]:
    columns = (_of.kind, _of.uid, _of.folded_name, _of.severity)
    rows = connection.execute(sa.select(*columns).where(*live(wish), wanted)).all()
    return [
        Place(_rank(severity, late.get((kind, uid)), found=(kind, uid) in findings), kind, folded_name, uid)
        for kind, uid, folded_name, severity in rows
    ]


def _rank(severity: str, looked: Severity | None, *, found: bool) -> int:
    """That of the worst that the store, a look and a finding say."""
    kept = RANKS.get(severity, RANKS["stopped"])
    late = kept if looked is None else RANKS.get(looked.value, kept)
    return min(kept, late, RANKS["warning"]) if found else min(kept, late)
