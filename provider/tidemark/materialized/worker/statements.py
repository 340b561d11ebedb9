"""Statements of SQL that create, change, refresh or drop views, for the client and for a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.errors import KeptViewNotFound
from tidemark.materialized.model.definitions import Initialize, KeptView
from tidemark.materialized.model.refreshes import Refreshed
from tidemark.materialized.model.shapes import KeptShape
from tidemark.materialized.planning import statements as said
from tidemark.materialized.planning.names import title_of
from tidemark.materialized.worker import views
from tidemark.materialized.worker.defining import Lakes, ViewRequest, create_view

__all__ = [
    "Answer",
    "Desk",
    "Made",
    "ViewDefinition",
    "create_and_fill",
    "outcome_of",
    "run_statement",
    "words_of_shape",
]

ViewDefinition = (
    said.CreateView | said.AlterView | said.SuspendView | said.ResumeView | said.RefreshView | said.DropView
)
"""A statement that makes, changes, refreshes or drops a view."""

_DONE = "Statement executed successfully."


@dataclass(frozen=True)
class Desk:
    """The means of statements. `path`: of the kept table of a view by its name. `refresh`: refreshes a view by its
    name, and before it the dynamic tables that it reads; its own outcome is the last. `once`: `who` is one run, so a
    view that it has created or dropped is left as it is. `created`, `dropped`: called with a view afterwards.
    """

    store: ControlStore
    who: str
    lakes: Lakes
    path: Callable[[str], str]
    refresh: Callable[[str], tuple[Refreshed, ...]]
    once: bool = False
    created: Callable[[KeptView], None] = lambda _: None
    dropped: Callable[[KeptView], None] = lambda _: None


@dataclass(frozen=True)
class Made:
    """A view with its first refreshes. `created`: it did not exist before, or was replaced. `left`: the path of the
    table of the view that it has replaced, if it has another one.
    """

    view: KeptView
    created: bool
    refreshed: tuple[Refreshed, ...] = ()
    left: str | None = None

    @property
    def words_of_left(self) -> str:
        """The words of CREATE about the old table, behind its first sentence."""
        return "" if self.left is None else f" The rows of the replaced view stay in the table at {self.left}."


@dataclass(frozen=True)
class Answer:
    """The result in the words of the source system, and the refreshes that it made. `notices`: the parts of the
    statement that change nothing here.
    """

    status: str
    notices: tuple[str, ...] = ()
    refreshed: tuple[Refreshed, ...] = ()


def create_and_fill(desk: Desk, request: ViewRequest) -> Made:
    """The view, after its first refresh if it is to have one at once. A second run refreshes a view without rows.

    Raises what `create_view` and the refresh raise.
    """
    made = create_view(desk.store, request, by=desk.who, lakes=desk.lakes, once=desk.once)
    view = made.view
    refreshed: tuple[Refreshed, ...] = ()
    waits = view.initialize is Initialize.ON_SCHEDULE or view.suspended is not None
    if not waits and view.fresh_at is None:
        refreshed = desk.refresh(view.name)
    desk.created(view)
    old = None if made.replaced is None else made.replaced.kept
    left = old.path if old is not None and old.table_id != view.kept.table_id else None
    return Made(views.get_view(desk.store, view.name), made.created, refreshed, left)


def run_statement(desk: Desk, statement: ViewDefinition) -> Answer:
    """The answer to one statement. With IF [NOT] EXISTS a second run changes nothing, as with `once`.

    Raises what `create_and_fill`, the refresh and the moves of `worker.views` raise.
    """
    match statement:
        case said.CreateView():
            return _create(desk, statement)
        case said.DropView():
            return Answer(_drop(desk, statement))
        case said.RefreshView():
            return _refresh(desk, statement)
        case _:
            return _alter(desk, statement)


def _create(desk: Desk, create: said.CreateView) -> Answer:
    existing = views.find_view(desk.store, create.name)
    request = ViewRequest(
        name=create.name,
        kind=create.kind,
        text=create.text,
        path=desk.path(create.name),
        target_lag=create.target_lag,
        mode=create.mode,
        initialize=create.initialize,
        cluster_by=create.cluster_by,
        comment=create.comment,
        columns=create.columns,
        or_replace=create.or_replace,
        if_not_exists=create.if_not_exists,
    )
    made = create_and_fill(desk, request)
    if existing is not None and create.if_not_exists:
        return Answer(f"{create.name} already exists, statement succeeded.", create.notices, made.refreshed)
    if not made.created:
        return Answer(f"{made.view.name} was created by an earlier attempt of this run.", (), made.refreshed)
    more = f"{made.words_of_left}{words_of_shape(made.view.shape)}"
    status = f"{title_of(create.kind)} {create.name} successfully created.{more}"
    return Answer(status, create.notices, made.refreshed)


def words_of_shape(shape: KeptShape) -> str:
    """The words of CREATE about the refreshes of a view, behind its first sentence."""
    if shape.why_in_full is not None:
        return f" It is refreshed in full: {shape.why_in_full}"
    return f" Note: {shape.note}." if shape.note else ""


def _refresh(desk: Desk, refresh: said.RefreshView) -> Answer:
    if refresh.if_exists and views.find_view(desk.store, refresh.name) is None:
        return Answer(_DONE)
    view = views.get_view(desk.store, refresh.name, refresh.kind)
    refreshed = desk.refresh(view.name)
    own = outcome_of(refreshed, view.name)
    how = own.state.value if own.how is None else own.how.value
    status = f"{view.name} refreshed ({how}): {own.rows} rows written. {own.why or ''}".strip()
    return Answer(status, refreshed=refreshed)


def outcome_of(refreshed: Sequence[Refreshed], view: str) -> Refreshed:
    """The view's own outcome among those of a refresh. Raises KeptViewNotFound if it was dropped in between."""
    for one in refreshed:
        if one.view == view:
            return one
    raise KeptViewNotFound(view=view, hint="It was dropped during the refresh. ")


def _alter(desk: Desk, alter: said.AlterView | said.SuspendView | said.ResumeView) -> Answer:
    store, who = desk.store, desk.who
    notices = alter.notices if isinstance(alter, said.AlterView) else ()
    if alter.if_exists and views.find_view(store, alter.name) is None:
        return Answer(_DONE, notices)
    name = views.get_view(store, alter.name, alter.kind).name
    match alter:
        case said.SuspendView():
            views.suspend_view(store, name, by=who)
        case said.ResumeView():
            views.resume_view(store, name, by=who)
        case said.AlterView():
            if alter.target_lag is not None:
                views.set_lag(store, name, alter.target_lag, by=who)
            if alter.comment is not None or alter.unset_comment:
                views.comment_on_view(store, name, alter.comment, by=who)
    return Answer(_DONE, notices)


def _drop(desk: Desk, drop: said.DropView) -> str:
    gone = desk.once and views.was_dropped_by(desk.store, drop.name, desk.who)
    ended = views.drop_view(desk.store, drop.name, kind=drop.kind, if_exists=drop.if_exists or gone, by=desk.who)
    if ended is None:
        return f"Drop statement executed successfully ({drop.name} already dropped)."
    desk.dropped(ended)
    return f"{drop.name} successfully dropped. Its rows stay in the table at {ended.kept.path}."
