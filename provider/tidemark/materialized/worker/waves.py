"""Waves: refreshes that are planned together and written ahead, so that all of them show one point in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import groupby

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import KeptViewSuspended, LakeError, SourceError
from tidemark.materialized.model.definitions import KeptKind, KeptView, RefreshMode
from tidemark.materialized.model.refreshes import Level, Refresh, Wave
from tidemark.materialized.planning.graph import RUNS_EVERY, Node, ancestors, due, levels, roots, still_fresh
from tidemark.materialized.store import refreshes, views
from tidemark.materialized.worker.following import follow_bases
from tidemark.materialized.worker.graph import nodes_of
from tidemark.streams.worker.opening import Tables

__all__ = ["plan_due", "plan_named", "require_active"]


def plan_due(
    store: ControlStore,
    tables: Tables,
    run: str,
    names: Sequence[str] | None = None,
    *,
    if_changed: bool = False,
    runs_every: timedelta = RUNS_EVERY,
) -> Wave:
    """The wave of the views that are due, among `names` or all, with the dynamic tables that they read.

    `if_changed`: a dynamic table with a lag of its own is also due if a base has changed. `runs_every`: the time to the
    next call, for which its lag must last. A second call of the run finds its wave. Raises KeptViewNotFound.
    """

    def choose(nodes: Sequence[Node]) -> Sequence[Node]:
        found = due(nodes, store.clock(), if_changed=if_changed, runs_every=runs_every)
        if names is None:
            return found
        wanted = {_named(nodes, store, name).view.uid for name in names}
        return ancestors(nodes, [node for node in found if node.view.uid in wanted])

    return _plan(store, tables, run, choose, None)


def plan_named(
    store: ControlStore, tables: Tables, run: str, names: Sequence[str], mode: RefreshMode | None = None
) -> Wave:
    """The wave of these views, with the dynamic tables that they read. `mode`: of the named ones, in place of theirs.

    A second call of the run finds its wave, and adds a view that has replaced one of it. Raises KeptViewNotFound,
    KeptViewSuspended.
    """
    asked = {name.strip().casefold() for name in names}

    def choose(nodes: Sequence[Node]) -> Sequence[Node]:
        found = ancestors(nodes, [_named(nodes, store, name) for name in names])
        for node in found:
            require_active(node.view)
        return found

    def mode_of(view: KeptView) -> RefreshMode:
        return mode if mode is not None and view.name.casefold() in asked else view.mode

    return _plan(store, tables, run, choose, mode_of, names)


def require_active(view: KeptView) -> None:
    """Nothing, or KeptViewSuspended."""
    if view.suspended is not None:
        kind = "DYNAMIC TABLE" if view.kind is KeptKind.DYNAMIC_TABLE else "MATERIALIZED VIEW"
        raise KeptViewSuspended(view=view.name, kind=kind, why=view.suspended)


def _plan(
    store: ControlStore,
    tables: Tables,
    run: str,
    choose: Callable[[Sequence[Node]], Sequence[Node]],
    mode_of: Callable[[KeptView], RefreshMode] | None,
    names: Sequence[str] = (),
) -> Wave:
    planned = store.read(lambda connection: refreshes.wave_of(connection, run))
    named = store.read(lambda connection: {views.find_view(connection, name).uid for name in names})
    if not planned or named - {one.view_uid for one in planned}:
        seen_at = store.clock()
        seen = nodes_of(store, tables)
        nodes = choose(seen)
        as_of = store.clock()
        ends = _heads(nodes, store, tables)
        gone = [path for path in roots(nodes) if path not in ends]
        if gone and follow_bases(store, tables, gone):
            nodes = choose(nodes_of(store, tables))
            ends = _heads(nodes, store, tables)
        wanted = [
            Refresh(
                view_uid=node.view.uid,
                run=run,
                planned_at=as_of,
                as_of=as_of,
                asked=node.view.mode if mode_of is None else mode_of(node.view),
                level=number,
                ends={path: ends[path] for path in node.bases if path in ends},
            )
            for number, level in enumerate(levels(nodes))
            for node in level
        ]
        store.write(lambda c: _keep(c, wanted, still_fresh(seen, seen_at), seen_at))
        planned = store.read(lambda connection: refreshes.wave_of(connection, run))
    return store.read(lambda connection: _wave(connection, store, run, planned))


def _keep(connection: sa.Connection, wanted: Sequence[Refresh], still: Sequence[Node], seen_at: datetime) -> None:
    """The refreshes, written ahead. Views that are `still` fresh were so at that time, but for those with a refresh."""
    for refresh in wanted:
        refreshes.plan_refresh(connection, refresh)
    for node in still:
        if refreshes.is_idle(connection, node.view.uid):
            views.note_fresh(connection, node.view, fresh_at=seen_at)


def _wave(connection: sa.Connection, store: ControlStore, run: str, planned: Sequence[Refresh]) -> Wave:
    names = {view.uid: view.name for view in views.views_with_uids(connection, [one.view_uid for one in planned])}
    found = tuple(
        Level(number, tuple(names[one.view_uid] for one in level if one.view_uid in names))
        for number, level in groupby(planned, key=lambda one: one.level)
    )
    as_of = planned[0].as_of if planned else store.clock()
    return Wave(run, as_of, tuple(level for level in found if level.views))


def _heads(nodes: Sequence[Node], store: ControlStore, tables: Tables) -> dict[str, int]:
    """The newest version of each table at which the wave begins. An unreadable table has none: its readers fail."""
    found: dict[str, int] = {}
    for path in roots(nodes):
        try:
            found[path] = tables(path).head()
        except (SourceError, LakeError, OSError):
            continue
    return found


def _named(nodes: Sequence[Node], store: ControlStore, name: str) -> Node:
    """Raises KeptViewNotFound."""
    view = store.read(lambda connection: views.find_view(connection, name))
    return next(node for node in nodes if node.view.uid == view.uid)
