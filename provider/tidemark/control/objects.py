"""The table of all objects, kept by the moves of the subjects. A move says which object it touched. Before the
transaction is stored, the row of each touched object follows the subject's own rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from tidemark.control.object_kinds import ObjectEntry, ObjectKind, kind_named
from tidemark.control.schema import objects
from tidemark.model.statements import CLIENT_DAG, CLIENT_TASKS

__all__ = ["dag_of", "forget_touched", "portions", "settle_touched", "touch", "touched"]

T = TypeVar("T")

_AT_ONCE = 500  # values in one statement: every database allows as many
_TOUCHED = "tidemark_touched"
_TASK = re.compile(r"(?P<dag>[^/#\s]+)/.+/(?P<task>[^/]+)/-?\d+(?:#\d+@\S*)?", re.DOTALL)
_of = objects.c

Touched = dict[str, dict[str, str | None]]


def touch(connection: sa.Connection, kind: str, uids: Iterable[str], *, by: str | None = None) -> None:
    """These objects have moved, were created or have ended in this transaction. `by`: the key of the run that did it,
    or another name of who did. A second call for the same object keeps the last run that is known.
    """
    moved: Touched = connection.info.setdefault(_TOUCHED, {})
    of_kind = moved.setdefault(kind, {})
    for uid in uids:
        of_kind[uid] = by if dag_of(by) is not None else of_kind.get(uid)


def touched(connection: sa.Connection) -> Mapping[str, Collection[str]]:
    """The uids of the objects that this transaction has touched so far, by kind."""
    moved: Touched = connection.info.get(_TOUCHED, {})
    return {kind: tuple(uids) for kind, uids in moved.items() if uids}


def forget_touched(connection: sa.Connection) -> None:
    """A transaction begins that has touched nothing: an earlier one on this connection may have been rolled back."""
    connection.info.pop(_TOUCHED, None)


def settle_touched(connection: sa.Connection, *, at: datetime, hide: Callable[[str], str] = str) -> None:
    """Give each touched object a row that says what the subject's rows say. It is inserted if absent, changed if
    another state or problem holds, and ended if the object lives no more. An object that replaces another one of its
    name keeps that one's owner. A second run changes nothing.
    """
    moved: Touched = connection.info.pop(_TOUCHED, {})
    for name, runs in moved.items():
        kind = kind_named(name)
        for uids in portions(sorted(runs)):
            _settle(connection, kind, uids, runs, at=at, hide=hide)


def dag_of(run: str | None) -> str | None:
    """The DAG in the key of a run `dag/run/task/index`, also of one with its attempt; None for people and notebooks."""
    found = None if run is None else _TASK.fullmatch(run)
    if found is None or (found["dag"] == CLIENT_DAG and found["task"] in CLIENT_TASKS):
        return None
    return found["dag"]


def _settle(
    connection: sa.Connection,
    kind: ObjectKind,
    uids: Sequence[str],
    runs: Mapping[str, str | None],
    *,
    at: datetime,
    hide: Callable[[str], str],
) -> None:
    mine = (_of.kind == kind.name) & _of.uid.in_(uids)
    kept = {row["uid"]: row for row in connection.execute(sa.select(objects).where(mine)).mappings()}
    found = {entry.uid: entry for entry in kind.entries(connection, uids)}
    ends = {row["folded_name"]: row["owner_dag"] for uid, row in kept.items() if uid not in found and _lives(row)}
    new: list[dict[str, Any]] = []
    for uid in uids:
        entry, row = found.get(uid), kept.get(uid)
        if entry is None:
            _end(connection, kind.name, uid, row, at=at)
        elif row is None:
            owner = ends.get(entry.full_name.casefold())  # of the one that it replaces: rights stay
            new.append({"kind": kind.name, "uid": uid, "since": at, **_values(entry, owner, runs[uid], hide)})
        else:
            _change(connection, row, _values(entry, row["owner_dag"], runs[uid], hide), at=at)
    if new:
        connection.execute(objects.insert(), new)


def _end(connection: sa.Connection, kind: str, uid: str, row: sa.RowMapping | None, *, at: datetime) -> None:
    if row is not None and _lives(row):
        connection.execute(objects.update().where(_of.kind == kind, _of.uid == uid).values(ended_at=at))


def _lives(row: sa.RowMapping) -> bool:
    return row["ended_at"] is None


def _change(connection: sa.Connection, row: sa.RowMapping, values: dict[str, Any], *, at: datetime) -> None:
    """Compare and set: `since` moves with state and severity, and nothing is written if nothing differs."""
    changed = {name: value for name, value in values.items() if row[name] != value}
    if not changed:
        return
    if changed.keys() & {"state", "severity"}:
        changed["since"] = at
    same = (_of.kind == row["kind"]) & (_of.uid == row["uid"]) & (_of.state == row["state"])
    connection.execute(objects.update().where(same, _of.severity == row["severity"]).values(changed))


def _values(entry: ObjectEntry, kept_owner: str | None, run: str | None, hide: Callable[[str], str]) -> dict[str, Any]:
    owner = dag_of(run) or kept_owner
    problem = None if entry.problem is None else hide(entry.problem)
    return {
        "name": entry.full_name,
        "folded_name": entry.full_name.casefold(),
        "within": entry.within,
        "owner_dag": owner,
        "state": entry.state,
        "severity": entry.severity.value,
        "problem": problem,
        "problem_dags": None if problem is None else _dags(entry, owner),
        "ended_at": None,
    }


def _dags(entry: ObjectEntry, owner: str | None) -> str | None:
    """The owner, and the DAGs whose runs met the problem. A problem that was met in a notebook is shown to nobody."""
    met = {dag_of(run) for run in entry.met_in}
    known = sorted({dag for dag in (*met, owner) if dag is not None})
    return json.dumps(known) if known and None not in met else None


def portions(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in parts that one statement of every database takes: 500 at a time."""
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))
