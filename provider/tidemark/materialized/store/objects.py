"""Materialized views and dynamic tables among all objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from tidemark.control.object_kinds import Advice, Lag, ObjectEntry, ObjectKind, Severity
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning.lags import lag_in_words
from tidemark.materialized.planning.states import ViewState, is_late, lag_of, state_of
from tidemark.materialized.store.views import views_with_uids

__all__ = ["DYNAMIC_TABLE", "MATERIALIZED_VIEW", "view_lags"]

_SEVERITIES: Mapping[ViewState, Severity] = {
    ViewState.BROKEN: Severity.FAILED,
    ViewState.SUSPENDED: Severity.WAITING,
    ViewState.FAILING: Severity.WARNING,
    ViewState.INITIALIZING: Severity.WAITING,
    ViewState.ACTIVE: Severity.OK,
}


_HISTORY = "airflow tidemark views history {name}"
_ADVICE = {
    ViewState.SUSPENDED.value: Advice(
        "It is not refreshed until it is resumed. Its readers among dynamic tables wait, too.",
        ("airflow tidemark views resume {name}", _HISTORY),
    ),
    ViewState.BROKEN.value: Advice(
        "A change of a table that it reads has suspended it. Fix that table or create the view again, then resume it.",
        ("airflow tidemark views describe {name}", "airflow tidemark views resume {name}"),
    ),
    ViewState.FAILING.value: Advice("Fix the problem. The next refresh tries again.", (_HISTORY,)),
    "": Advice(
        "Refresh it, or look at the cost of its refreshes.", ("airflow tidemark views refresh {name}", _HISTORY)
    ),
}


def view_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since the point that each view shows. A view that is behind its target lag is overdue."""
    return {view.uid: _lag(view, now) for view in views_with_uids(connection, uids)}


def _entries(kind: KeptKind, connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    return [_entry(view) for view in views_with_uids(connection, uids) if view.kind is kind]


def _entry(view: KeptView) -> ObjectEntry:
    met_in = () if view.problem is None or view.problem_run is None else (view.problem_run,)
    state = state_of(view)
    why = view.suspended if state is ViewState.SUSPENDED else None
    severity = _SEVERITIES[state]
    return ObjectEntry(view.uid, view.name, state.value, severity, view.problem, met_in=met_in, stopped_for=why)


def _lag(view: KeptView, now: datetime) -> Lag:
    lag = lag_of(view, now)
    late = f"it is behind its target lag of {lag_in_words(view.target_lag)}; refresh it, or raise the lag"
    return Lag(None if lag is None else lag.total_seconds(), overdue=late if is_late(view, now) else None)


def _kind(kind: KeptKind) -> ObjectKind:
    entries: Callable[[sa.Connection, Sequence[str]], Sequence[ObjectEntry]] = partial(_entries, kind)
    return ObjectKind(
        kind.value,
        entries,
        "materialized.store.objects:view_lags",
        stopped=frozenset({ViewState.SUSPENDED.value}),
        advice=_ADVICE,
        acts="materialized.worker.acts:VIEW_ACTS",
        ties=f"materialized.store.ties:{kind.value}_ties",
        highs=None if kind is KeptKind.DYNAMIC_TABLE else "materialized.store.highs:view_highs",
        touched="materialized.store.touched:views_of_runs",
        last_runs="materialized.store.touched:view_runs",
        stops=frozenset({"suspend"}),
    )


MATERIALIZED_VIEW = _kind(KeptKind.MATERIALIZED_VIEW)
DYNAMIC_TABLE = _kind(KeptKind.DYNAMIC_TABLE)
