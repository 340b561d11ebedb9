"""Kept queries in the store: each move by name, with its condition."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.kept_tables import Keeper
from tidemark.control.objects import touch
from tidemark.errors import KeptViewNotFound
from tidemark.materialized.model.definitions import (
    FloatSums,
    Initialize,
    KeptKind,
    KeptView,
    RefreshMode,
    TargetLag,
)
from tidemark.materialized.model.shapes import KeptShape
from tidemark.materialized.planning.names import without_catalog
from tidemark.materialized.store.schema import kept_views
from tidemark.model.codec import from_json, to_json
from tidemark.model.own_tables import PARTIALS_SUFFIX
from tidemark.model.streams import Addressing, TableRef
from tidemark.sql.alike import alike
from tidemark.streams.store.schema import offset_moves, streams

__all__ = [
    "ask_for_refresh",
    "create_view",
    "created_by",
    "dropped_by",
    "end_view",
    "find_view",
    "keepers",
    "kept_paths",
    "live_views",
    "lookup_view",
    "move_bases",
    "note_fresh",
    "note_problem",
    "note_refresh",
    "partial_tables",
    "resume_view",
    "set_comment",
    "set_target_lag",
    "suspend_view",
    "views_named",
    "views_with_uids",
]

_of = kept_views.c
_NO_PROBLEM = {"problem": None, "problem_at": None, "problem_run": None}
_DROPPED = "its view was dropped"  # as the log of its stream says it
_MOST_NAMES = 10_000  # that are compared with a name that does not exist
_SHOWN = 3


def lookup_view(connection: sa.Connection, name: str) -> KeptView | None:
    """The live view of that name, in any case, or None."""
    row = connection.execute(_live().where(_of.folded_name == name.strip().casefold())).mappings().first()
    return None if row is None else _of_row(row)


def views_named(connection: sa.Connection, names: Sequence[str]) -> tuple[KeptView, ...]:
    """The live views of these names, in any case."""
    folded = {name.strip().casefold() for name in names}
    return tuple(_of_row(row) for row in connection.execute(_live().where(_of.folded_name.in_(folded))).mappings())


def find_view(connection: sa.Connection, name: str) -> KeptView:
    """The live view of that name. Raises KeptViewNotFound."""
    found = lookup_view(connection, name)
    if found is None:
        raise KeptViewNotFound(view=name, hint=_hint(connection, name))
    return found


def views_with_uids(connection: sa.Connection, uids: Sequence[str]) -> tuple[KeptView, ...]:
    """Those of the uids whose view lives."""
    return tuple(_of_row(row) for row in connection.execute(_live().where(_of.uid.in_(uids))).mappings())


def live_views(connection: sa.Connection, kind: KeptKind | None = None) -> tuple[KeptView, ...]:
    """All views that are not dropped, by name; sorted here, since databases differ in how they sort."""
    query = _live() if kind is None else _live().where(_of.kind == kind.value)
    found = map(_of_row, connection.execute(query).mappings())
    return tuple(sorted(found, key=lambda view: view.name.casefold()))


def kept_paths(connection: sa.Connection) -> frozenset[str]:
    """The path of each table that a view keeps or kept, also of dropped views."""
    return frozenset(connection.execute(sa.select(_of.kept_path)).scalars())


def keepers(connection: sa.Connection, paths: Sequence[str]) -> Mapping[str, Keeper]:
    """The live view that keeps the table at each of these paths; others are left out. One query."""
    mine = sa.select(_of.kept_path, _of.kind, _of.name).where(_of.ended_at.is_(None), _of.kept_path.in_(paths))
    return {row.kept_path: Keeper(row.kind, row.name) for row in connection.execute(mine)}


def partial_tables(connection: sa.Connection) -> frozenset[tuple[str, str]]:
    """Path and id of each table of partial aggregates that a view keeps or kept, also of dropped views. One query.

    A view whose own name has the suffix keeps rows of its query, unless its table has the suffix twice.
    """
    rows = connection.execute(sa.select(_of.name, _of.kept_name, _of.kept_path, _of.kept_table_id))
    return frozenset((row.kept_path, row.kept_table_id) for row in rows if row.kept_name == row.name + PARTIALS_SUFFIX)


def created_by(connection: sa.Connection, view: KeptView) -> str | None:
    """The creator of the view, by the log of the streams that pin its bases; None if that is gone."""
    moves = _acts([view.stream]).order_by(offset_moves.c.id).limit(1)
    return next(iter(connection.execute(moves).scalars()), None)


def dropped_by(connection: sa.Connection, name: str) -> frozenset[str]:
    """The people and runs that have dropped views of that name."""
    ended = sa.select(_of.stream).where(_of.folded_name == name.strip().casefold(), _of.ended_at.is_not(None))
    moves = _acts(connection.execute(ended).scalars().all()).where(offset_moves.c.why == _DROPPED)
    return frozenset(connection.execute(moves).scalars())


def create_view(connection: sa.Connection, view: KeptView, *, by: str) -> None:
    """Add a view, whose name must be free. `by`: the key of the run, or who does it."""
    connection.execute(kept_views.insert().values(_values(view)))
    touch(connection, view.kind.value, [view.uid], by=by)


def end_view(connection: sa.Connection, view: KeptView, *, at: datetime, by: str) -> bool:
    """End a view; True if it lived. Its row, its history and its kept table stay, and its name is free."""
    return _change(connection, view, by=by, ended_at=at)


def suspend_view(
    connection: sa.Connection, view: KeptView, *, why: str, problem: str | None, at: datetime, by: str
) -> bool:
    """The view is not refreshed from now on; True if it was. `problem`: of a base, which makes it a failure."""
    found: dict[str, Any] = {} if problem is None else {"problem": problem, "problem_at": at, "problem_run": by}
    return _change(connection, view, _of.suspended.is_(None), by=by, suspended=why, **found)


def resume_view(connection: sa.Connection, view: KeptView, *, by: str) -> bool:
    """The view is refreshed again; True if it was suspended for the reason that was read."""
    return _change(connection, view, _of.suspended == view.suspended, by=by, suspended=None, **_NO_PROBLEM)


def ask_for_refresh(connection: sa.Connection, view: KeptView, *, at: datetime, by: str) -> bool:
    """The next run that refreshes due views takes the view with it; True if the view lives and is not suspended. A
    later request replaces an earlier one.
    """
    return _change(connection, view, _of.suspended.is_(None), by=by, asked_at=at)


def set_target_lag(connection: sa.Connection, view: KeptView, lag: TargetLag, *, by: str) -> bool:
    """Give the view another lag; True if it lives."""
    return _change(connection, view, by=by, target_lag=to_json(lag))


def set_comment(connection: sa.Connection, view: KeptView, comment: str | None, *, by: str) -> bool:
    """Give the view another comment, None for none; True if it lives."""
    return _change(connection, view, by=by, comment=comment)


def move_bases(
    connection: sa.Connection, view: KeptView, shape: KeptShape, read: Mapping[str, Mapping[str, str]], *, by: str
) -> bool:
    """The bases of the view are at other paths, as `shape` and `read` have them; True if it lives. `read`: path → the
    columns that are compared.
    """
    return _change(connection, view, by=by, shape=to_json(shape), columns_read=to_json(read))


def note_refresh(
    connection: sa.Connection,
    view: KeptView,
    *,
    fresh_at: datetime,
    kept_version: int | None,
    kept_rows: int | None,
    groups: int | None,
    by: str,
) -> bool:
    """A refresh has ended well. None: the kept table has the version, the rows and the groups that it had. A request
    from before it is done. False for a dropped view, and if a later refresh was noted.
    """
    newest = _of.fresh_at.is_(None) | (_of.fresh_at <= fresh_at)
    found = {"kept_version": kept_version, "kept_rows": kept_rows, "groups": groups}
    values = {name: value for name, value in found.items() if value is not None}
    _change(connection, view, _of.asked_at <= fresh_at, by=by, asked_at=None)
    return _change(connection, view, newest, by=by, fresh_at=fresh_at, **values, **_NO_PROBLEM)


def note_fresh(connection: sa.Connection, view: KeptView, *, fresh_at: datetime) -> bool:
    """No base had changed by then, so the rows of the last refresh are right for that point, too. False for a view
    that was dropped, fails, or has a later point.
    """
    older = kept_views.update().where(
        _of.uid == view.uid, _of.ended_at.is_(None), _of.problem.is_(None), _of.fresh_at < fresh_at
    )
    return connection.execute(older.values(fresh_at=fresh_at)).rowcount == 1


def note_problem(connection: sa.Connection, view: KeptView, *, problem: str, at: datetime, by: str) -> bool:
    """A refresh has failed. False for a dropped view, and if a later problem was noted."""
    newest = _of.problem_at.is_(None) | (_of.problem_at <= at)
    return _change(connection, view, newest, by=by, problem=problem, problem_at=at, problem_run=by)


def _live() -> sa.Select[tuple[object, ...]]:
    return sa.select(kept_views).where(_of.ended_at.is_(None))


def _acts(names: Sequence[str]) -> sa.Select[Any]:
    """The actors in the log of the streams of these names, also of ended ones."""
    own = sa.select(streams.c.uid).where(streams.c.folded_name.in_([name.casefold() for name in names]))
    return sa.select(offset_moves.c.who).where(offset_moves.c.stream_uid.in_(own))


def _hint(connection: sa.Connection, name: str) -> str:
    """Up to three live views with names like it, or the one that has the name without its catalog."""
    meant = without_catalog(name)
    if meant is not None and lookup_view(connection, meant) is not None:
        return f"Did you mean {meant!r}? No catalog is part of a view's name. "
    query = sa.select(_of.name).where(_of.ended_at.is_(None)).limit(_MOST_NAMES)
    found = [repr(one) for one in alike(name, connection.execute(query).scalars())][:_SHOWN]
    return f"Did you mean {' or '.join(found)}? " if found else ""


def _change(
    connection: sa.Connection, view: KeptView, *expected: sa.ColumnElement[bool], by: str, **values: Any
) -> bool:
    standing = kept_views.update().where(_of.uid == view.uid, _of.ended_at.is_(None), *expected)
    changed = connection.execute(standing.values(**values)).rowcount == 1
    if changed:
        touch(connection, view.kind.value, [view.uid], by=by)
    return changed


def _values(view: KeptView) -> dict[str, Any]:
    return {
        "uid": view.uid,
        "name": view.name,
        "folded_name": view.name.casefold(),
        "kind": view.kind.value,
        "text": view.text,
        "kept_name": view.kept.name,
        "kept_path": view.kept.path,
        "kept_table_id": view.kept.table_id,
        "kept_addressing": view.kept.addressing.value,
        "shape": to_json(view.shape),
        "stream": view.stream,
        "created_at": view.created_at,
        "target_lag": None if view.target_lag is None else to_json(view.target_lag),
        "mode": view.mode.value,
        "initialize": view.initialize.value,
        "float_sums": view.float_sums.value,
        "cluster_by": to_json(view.cluster_by),
        "comment": view.comment,
        "fresh_at": view.fresh_at,
        "suspended": view.suspended,
        "kept_version": view.kept_version,
        "kept_rows": view.kept_rows,
        "groups": view.groups,
        "columns_read": to_json(view.columns_read),
    }


def _of_row(row: sa.RowMapping) -> KeptView:
    kept = TableRef(row["kept_name"], row["kept_path"], row["kept_table_id"], Addressing(row["kept_addressing"]))
    return KeptView(
        uid=row["uid"],
        name=row["name"],
        kind=KeptKind(row["kind"]),
        text=row["text"],
        kept=kept,
        shape=from_json(KeptShape, row["shape"]),
        stream=row["stream"],
        created_at=row["created_at"],
        target_lag=None if row["target_lag"] is None else from_json(TargetLag, row["target_lag"]),
        mode=RefreshMode(row["mode"]),
        initialize=Initialize(row["initialize"]),
        float_sums=FloatSums(row["float_sums"]),
        cluster_by=tuple(json.loads(row["cluster_by"])),
        comment=row["comment"],
        fresh_at=row["fresh_at"],
        suspended=row["suspended"],
        kept_version=row["kept_version"],
        kept_rows=row["kept_rows"],
        groups=row["groups"],
        columns_read=json.loads(row["columns_read"]),
        problem=row["problem"],
        problem_at=row["problem_at"],
        problem_run=row["problem_run"],
        asked_at=row["asked_at"],
    )
