"""Pipes among all objects. The store knows their state; their queues have their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_kinds import Advice, Lag, ObjectEntry, ObjectKind, Severity
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.planning.states import STALE_AFTER, is_stale, kept_state
from tidemark.pipes.store.pipes import KIND, pipes_with_uids

__all__ = ["PIPE", "pipe_lags"]


def _entries(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    return [_entry(pipe) for pipe in pipes_with_uids(connection, uids)]


def _entry(pipe: Pipe) -> ObjectEntry:
    met_in = () if pipe.problem is None or pipe.problem_run is None else (pipe.problem_run,)
    return ObjectEntry(pipe.uid, pipe.name, kept_state(pipe).value, _severity(pipe), pipe.problem, met_in=met_in)


def _severity(pipe: Pipe) -> Severity:
    """A paused pipe waits, also after a run that failed."""
    if kept_state(pipe) is PipeState.PAUSED:
        return Severity.WAITING
    if pipe.stalled is not None:
        return Severity.FAILED
    if pipe.problem is not None:
        return Severity.WARNING
    return Severity.OK if pipe.last_run_at is not None else Severity.WAITING


def pipe_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """The time since each pipe last ran. A pipe that is paused for too long is overdue."""
    return {pipe.uid: _lag(pipe, now) for pipe in pipes_with_uids(connection, uids)}


def _lag(pipe: Pipe, now: datetime) -> Lag:
    ran = pipe.last_run_at
    seconds = None if ran is None else max(0.0, (now - ran).total_seconds())
    return Lag(seconds, overdue=_overdue(pipe) if is_stale(pipe, now) else None)


def _overdue(pipe: Pipe) -> str:
    since = f"{pipe.paused_at:%Y-%m-%d %H:%M} UTC"
    return f"it is stale: paused since {since}, for more than {STALE_AFTER.days} days; resume it with force, or drop it"


_SHOW = "airflow tidemark pipes show {name}"
_ADVICE = {
    PipeState.PAUSED.value: Advice(
        "It loads nothing until it is resumed. After a long pause, older files that came since are left out.",
        ("airflow tidemark pipes resume {name}", _SHOW),
    ),
    "": Advice("Fix the problem, then run the pipe again.", (_SHOW,)),
}

PIPE = ObjectKind(
    KIND,
    _entries,
    "pipes.store.objects:pipe_lags",
    stopped=frozenset({PipeState.PAUSED.value}),
    advice=_ADVICE,
    acts="pipes.worker.acts:PIPE_ACTS",
    ties="pipes.store.ties:pipe_ties",
    touched="pipes.store.touched:pipes_of_runs",
    last_runs="pipes.store.touched:pipe_runs",
    stops=frozenset({"pause"}),
)
