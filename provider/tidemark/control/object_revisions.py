"""The revision of an object: the facts that a person saw before deciding, and a token of them for pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.object_kinds import kind_named
from tidemark.control.object_list import ObjectsWish, live
from tidemark.control.schema import acts, objects
from tidemark.control.words import value_of, word_of
from tidemark.errors import InvalidArgument

__all__ = ["ACTED", "Facts", "differences", "facts_now", "facts_of", "facts_of_token", "token_of"]

Facts = Mapping[str, str]
ACTED = "acts"  # the fact that each act on an object changes
_of = objects.c


def facts_of(connection: sa.Connection, kind: str, uids: Sequence[str]) -> dict[str, Facts]:
    """The facts of the live ones among these objects, by uid, as this transaction sees them. A problem's text is not
    among them, as not everybody may read it; its digest is. So is the number of its newest act: no act is done twice by
    one revision.
    """
    query = sa.select(_of.uid, _of.state, _of.severity, _of.since, _of.problem)
    rows = connection.execute(query.where(*live(ObjectsWish(kind=kind)), _of.uid.in_(uids))).all()
    marks = kind_named(kind).marks
    further = {} if marks is None else marks(connection, [row.uid for row in rows])
    acted = _newest_acts(connection, kind, uids)
    return {
        row.uid: {
            "state": row.state,
            "severity": row.severity,
            "since": row.since.isoformat(),
            "problem": _digest(row.problem),
            ACTED: str(acted.get(row.uid, "")),
            **further.get(row.uid, {}),
        }
        for row in rows
    }


def facts_now(connection: sa.Connection, kind: str, uid: str, name: str) -> tuple[str, Facts] | None:
    """Uid and facts of the object, or of the one that has replaced it under its name; None if there is neither."""
    named = sa.select(_of.uid).where(*live(ObjectsWish(kind=kind)), _of.folded_name == name.casefold())
    found = facts_of(connection, kind, [uid]) or facts_of(connection, kind, connection.execute(named).scalars().all())
    return next(iter(found.items()), None)


def _newest_acts(connection: sa.Connection, kind: str, uids: Sequence[str]) -> Mapping[str, int]:
    theirs = (acts.c.kind == kind) & acts.c.uid.in_(uids)
    rows = connection.execute(sa.select(acts.c.uid, sa.func.max(acts.c.id)).where(theirs).group_by(acts.c.uid))
    return {uid: number for uid, number in rows}


def token_of(facts: Facts) -> str:
    """The facts as one word."""
    text = json.dumps(dict(facts), sort_keys=True, separators=(",", ":"))
    return word_of(text)


def facts_of_token(token: str) -> Facts:
    """The facts of such a word. Raises InvalidArgument for another one."""
    try:
        found = value_of(token)
    except ValueError as error:
        raise InvalidArgument(argument="revision", value=token, problem="it is not one that was shown") from error
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidArgument(argument="revision", value=token, problem="it is not one that was shown")
    return found


def differences(shown: Facts, now: Facts) -> dict[str, tuple[str, str]]:
    """The facts that differ, each as it was shown and as it is now; an absent one is empty."""
    names = sorted(shown.keys() | now.keys())
    pairs = {name: (shown.get(name, ""), now.get(name, "")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _digest(problem: str | None) -> str:
    return "" if problem is None else hashlib.sha256(problem.encode()).hexdigest()[:12]
