"""Search optimization of tables among all objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_kinds import Lag, ObjectEntry, ObjectKind, Severity
from tidemark.search.model.paths import Search
from tidemark.search.store.searches import searches_with_uids

__all__ = ["SEARCH_OPTIMIZATION", "search_lags"]


def search_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since the last upkeep, or since the definition before the first."""
    found = searches_with_uids(connection, uids)
    return {one.uid: Lag((now - (one.kept_at or one.created_at)).total_seconds()) for one in found}


def _entries(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    return [_entry(search) for search in searches_with_uids(connection, uids)]


def _entry(search: Search) -> ObjectEntry:
    state, severity = ("active", Severity.OK) if search.kept_version is not None else ("building", Severity.WAITING)
    if search.problem is not None:
        state, severity = "failing", Severity.WARNING
    met_in = () if search.problem is None or search.problem_run is None else (search.problem_run,)
    return ObjectEntry(search.uid, search.table.name, state, severity, search.problem, met_in=met_in)


SEARCH_OPTIMIZATION = ObjectKind(
    "search_optimization",
    _entries,
    "search.store.objects:search_lags",
    touched="search.store.touched:searches_of_runs",
    ties="search.store.ties:search_ties",
    last_runs="search.store.touched:search_runs",
)
