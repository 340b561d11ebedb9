"""Clustered tables among all objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.clustering.model.tables import ClusteredTable
from tidemark.clustering.planning.states import TableHealth, state_of
from tidemark.clustering.store.tables import tables_with_uids
from tidemark.control.object_kinds import Advice, Lag, ObjectEntry, ObjectKind, Severity

__all__ = ["CLUSTERED_TABLE", "table_lags"]

_SEVERITIES: Mapping[TableHealth, Severity] = {
    TableHealth.FAILING: Severity.WARNING,
    TableHealth.DEEP: Severity.WARNING,
    TableHealth.SUSPENDED: Severity.WAITING,
    TableHealth.NEW: Severity.WAITING,
    TableHealth.CLUSTERED: Severity.OK,
}


def table_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """No lags: the depth of a table is in its state, and only its log knows what has arrived since."""
    return {}


def _entries(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    return [_entry(table) for table in tables_with_uids(connection, uids)]


def _entry(table: ClusteredTable) -> ObjectEntry:
    state = state_of(table)
    met_in = () if table.problem is None or table.problem_run is None else (table.problem_run,)
    severity, why = _SEVERITIES[state], table.suspended
    return ObjectEntry(table.uid, table.name, state.value, severity, table.problem, met_in=met_in, stopped_for=why)


_HISTORY = "airflow tidemark clustering history {name}"
_ADVICE = {
    "suspended": Advice("It gets deeper with each write. Resume it.", ("airflow tidemark clustering resume {name}",)),
    "failing": Advice("Read the log of the failed task, and fix the cause. The next run tries again.", (_HISTORY,)),
    "deep": Advice("Budget or conflicts have left it deeper than its goal. Raise its budget, or wait.", (_HISTORY,)),
    "": Advice("Look at what was rewritten for its key.", (_HISTORY,)),
}


CLUSTERED_TABLE = ObjectKind(
    "clustered_table",
    _entries,
    "clustering.store.objects:table_lags",
    stopped=frozenset({TableHealth.SUSPENDED.value}),
    advice=_ADVICE,
    acts="clustering.worker.acts:CLUSTERED_TABLE_ACTS",
    touched="clustering.store.touched:tables_of_runs",
    ties="clustering.store.ties:clustered_ties",
    last_runs="clustering.store.touched:table_runs",
)
