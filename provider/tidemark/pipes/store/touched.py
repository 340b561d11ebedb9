"""The pipes that tasks ran, and the task that ran each last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.newest import values_of_each
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.samples import newest_run, sums_of_runs
from tidemark.pipes.store.pipes import KIND
from tidemark.pipes.store.schema import pipes

__all__ = ["pipe_runs", "pipes_of_runs"]

_of = pipes.c


def pipe_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that ran each last; before it was kept, the one that took files last. One query."""
    return values_of_each(connection, _of.uid, uids, _of.last_run, newest_run(KIND, _of.uid))


def pipes_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The pipes from which these tasks took files, by uid, with files and rows. Of runs without files the last of a
    pipe alone is known. Two queries, which read the pipes that the DAG owns.
    """
    met = sa.case((part.has(_of.problem_run), _of.problem))
    query = sa.select(_of.uid, met.label("problem")).where(_of.uid.in_(part.owned(KIND)), part.has(_of.last_run))
    last = {row.uid: row.problem for row in connection.execute(query)}
    sums = sums_of_runs(connection, KIND, part)
    return {uid: Touch(_words(sums.get(uid)), last.get(uid)) for uid in dict.fromkeys((*last, *sums))}


def _words(sums: Mapping[str, float] | None) -> str:
    if sums is None:
        return "run, no file loaded"
    loaded, bad = round(sums["files_loaded"]), round(sums["files_with_errors"])
    said = f"{loaded:,} file{'s' if loaded != 1 else ''} loaded, {round(sums['rows']):,} rows"
    return f"{said}; {bad:,} with errors" if bad else said
