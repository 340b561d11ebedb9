"""Views as users define, suspend, resume and drop them, and their history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, KeptViewNotFound
from tidemark.materialized.model.definitions import KeptKind, KeptView, TargetLag
from tidemark.materialized.model.refreshes import Refresh
from tidemark.materialized.store import refreshes, views
from tidemark.materialized.worker.streams import drop_stream_of
from tidemark.materialized.worker.waves import require_active

__all__ = [
    "MOST_REFRESHES",
    "ask_for_refresh",
    "comment_on_view",
    "drop_view",
    "find_view",
    "find_views",
    "get_view",
    "list_views",
    "resume_view",
    "set_lag",
    "suspend_view",
    "view_history",
    "was_dropped_by",
]

MOST_REFRESHES = 1_000  # of a history


def find_view(store: ControlStore, name: str) -> KeptView | None:
    """The view of that name, in any case; None if there is none."""
    return store.read(lambda connection: views.lookup_view(connection, name))


def find_views(store: ControlStore, names: Collection[str]) -> dict[str, KeptView]:
    """The views among `names`, by the name as it was given."""
    if not names:
        return {}
    found = {view.name.casefold(): view for view in store.read(lambda c: views.views_named(c, tuple(names)))}
    return {name: found[key] for name in names if (key := name.strip().casefold()) in found}


def get_view(store: ControlStore, name: str, kind: KeptKind | None = None) -> KeptView:
    """The view of that name, if it is of that kind. Raises KeptViewNotFound with similar names."""
    return store.read(lambda connection: _find(connection, name, kind))


def list_views(store: ControlStore, kind: KeptKind | None = None) -> tuple[KeptView, ...]:
    """All views that are not dropped, by name."""
    return store.read(lambda connection: views.live_views(connection, kind))


def view_history(store: ControlStore, name: str, *, limit: int = MOST_REFRESHES) -> tuple[Refresh, ...]:
    """The refreshes of the view, newest first. Raises KeptViewNotFound."""

    def look(connection: sa.Connection) -> tuple[Refresh, ...]:
        return refreshes.history(connection, [views.find_view(connection, name).uid], limit)

    return store.read(look)


def drop_view(
    store: ControlStore, name: str, *, kind: KeptKind | None = None, if_exists: bool = False, by: str
) -> KeptView | None:
    """End the view and its stream, and return what it was. Its kept table stays, as a table of its own. None if it did
    not exist with `if_exists`. Raises KeptViewNotFound, and TransactionOpen during a refresh.
    """

    def drop(connection: sa.Connection) -> KeptView | None:
        view = _lookup(connection, name, kind) if if_exists else _find(connection, name, kind)
        if view is not None:
            drop_stream_of(connection, store, view, who=by, action="dropped")
            views.end_view(connection, view, at=store.clock(), by=by)
        return view

    return store.write(drop)


def was_dropped_by(store: ControlStore, name: str, who: str) -> bool:
    """Whether no view has the name, and `who` has dropped one that had it."""

    def look(connection: sa.Connection) -> bool:
        return views.lookup_view(connection, name) is None and who in views.dropped_by(connection, name)

    return store.read(look)


def suspend_view(
    store: ControlStore, name: str, *, kind: KeptKind | None = None, why: str | None = None, by: str
) -> KeptView:
    """The view is not refreshed until it is resumed. A second run changes nothing. Raises KeptViewNotFound."""

    def suspend(connection: sa.Connection) -> KeptView:
        view = _find(connection, name, kind)
        reason = why or f"by {by}"
        if view.suspended is None:
            views.suspend_view(connection, view, why=reason, problem=None, at=store.clock(), by=by)
        return views.find_view(connection, name)

    return store.write(suspend)


def resume_view(store: ControlStore, name: str, *, kind: KeptKind | None = None, by: str) -> KeptView:
    """The view is refreshed again. A second run changes nothing. Raises KeptViewNotFound."""

    def resume(connection: sa.Connection) -> KeptView:
        view = _find(connection, name, kind)
        if view.suspended is not None:
            views.resume_view(connection, view, by=by)
        return views.find_view(connection, name)

    return store.write(resume)


def ask_for_refresh(store: ControlStore, name: str, *, by: str) -> KeptView:
    """The next run that refreshes due views takes the view with it, at any lag. No Spark is started.

    A second request replaces the first. A refresh that began after the request ends it; one that fails leaves it.
    Raises KeptViewNotFound, KeptViewSuspended.
    """

    def ask(connection: sa.Connection) -> KeptView:
        view = views.find_view(connection, name)
        require_active(view)
        views.ask_for_refresh(connection, view, at=store.clock(), by=by)
        return views.find_view(connection, name)

    return store.write(ask)


def set_lag(store: ControlStore, name: str, lag: TargetLag, *, by: str) -> KeptView:
    """Give a dynamic table another lag. Raises KeptViewNotFound, and InvalidArgument for a materialized view."""

    def change(connection: sa.Connection) -> KeptView:
        view = views.find_view(connection, name)
        if view.kind is not KeptKind.DYNAMIC_TABLE:
            problem = f"{view.name} is a materialized view, which always answers for its newest bases"
            raise InvalidArgument(argument="target_lag", value=lag.at_most, problem=problem)
        views.set_target_lag(connection, view, lag, by=by)
        return replace(view, target_lag=lag)

    return store.write(change)


def comment_on_view(
    store: ControlStore, name: str, comment: str | None, *, kind: KeptKind | None = None, by: str
) -> KeptView:
    """Give the view another comment, None for none. Raises KeptViewNotFound."""

    def change(connection: sa.Connection) -> KeptView:
        view = _find(connection, name, kind)
        views.set_comment(connection, view, comment or None, by=by)
        return replace(view, comment=comment or None)

    return store.write(change)


def _lookup(connection: sa.Connection, name: str, kind: KeptKind | None) -> KeptView | None:
    found = views.lookup_view(connection, name)
    return found if found is None or kind is None or found.kind is kind else None


def _find(connection: sa.Connection, name: str, kind: KeptKind | None) -> KeptView:
    found = views.find_view(connection, name)
    if kind is not None and found.kind is not kind:
        hint = f"{found.name} is a {found.kind.value.replace('_', ' ')}. "
        raise KeptViewNotFound(view=name, hint=hint)
    return found
