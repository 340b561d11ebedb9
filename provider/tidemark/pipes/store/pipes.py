"""Pipes in the store: each move by name, with its condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import touch
from tidemark.errors import PipeNotFound
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.planning.names import in_order, key_of
from tidemark.pipes.planning.queues import numbered
from tidemark.pipes.store import named
from tidemark.pipes.store.schema import pipes

__all__ = [
    "KIND",
    "create_pipe",
    "end_pipe",
    "find_pipe",
    "free_queue",
    "live_pipes",
    "lookup_pipe",
    "note_pull",
    "note_run",
    "pause_pipe",
    "pipes_ever",
    "pipes_with_uids",
    "replace_pipe",
    "resume_pipe",
    "set_comment",
    "stall_pipe",
]

KIND = "pipe"
_of = pipes.c
_NO_PROBLEM = {"stalled": None, "problem": None, "problem_at": None, "problem_run": None}


def lookup_pipe(connection: sa.Connection, name: str) -> Pipe | None:
    """The live pipe of that name, or None."""
    row = named.lookup_row(connection, pipes, name)
    return None if row is None else _of_row(row)


def find_pipe(connection: sa.Connection, name: str) -> Pipe:
    """The live pipe of that name. Raises PipeNotFound."""
    found = lookup_pipe(connection, name)
    if found is None:
        raise PipeNotFound(pipe=name, known=named.known(connection, pipes, name))
    return found


def pipes_with_uids(connection: sa.Connection, uids: Sequence[str]) -> tuple[Pipe, ...]:
    """Those of the uids whose pipe lives."""
    query = sa.select(pipes).where(_of.uid.in_(uids), _of.ended_at.is_(None))
    return tuple(_of_row(row) for row in connection.execute(query).mappings())


def live_pipes(connection: sa.Connection) -> tuple[Pipe, ...]:
    """All pipes that are not dropped, by name."""
    return tuple(map(_of_row, named.live_rows(connection, pipes)))


def pipes_ever(connection: sa.Connection) -> tuple[Pipe, ...]:
    """All pipes, also dropped ones, by name and age."""
    rows = connection.execute(sa.select(pipes)).mappings()
    return tuple(sorted(map(_of_row, rows), key=lambda one: (in_order(one.name), one.created_at)))


def free_queue(connection: sa.Connection, queue: str) -> str:
    """The path `queue`, or the first one with a number that no pipe has or had."""
    number = 1
    while connection.execute(sa.select(_of.uid).where(_of.queue == numbered(queue, number))).first() is not None:
        number += 1
    return numbered(queue, number)


def create_pipe(connection: sa.Connection, pipe: Pipe, *, by: str) -> None:
    """Add a pipe, whose name must be free. `by`: the key of the run, or who does it."""
    given = {"uid": pipe.uid, "queue": pipe.queue, "created_at": pipe.created_at, "paused_at": pipe.paused_at}
    connection.execute(pipes.insert().values(**given, **_definition(pipe)))
    touch(connection, KIND, [pipe.uid], by=by)


def replace_pipe(connection: sa.Connection, pipe: Pipe, *, by: str) -> bool:
    """Give the pipe of that uid another definition; True if it lives. Its uid, its queue and its pause stay, and the
    problem of the old definition is gone. So is the time of the last notifications, if the channel is another one.
    """
    same = _of.notification_channel.is_not_distinct_from(pipe.notification_channel)
    pulled = sa.case((same, _of.pulled_at), else_=sa.null())
    return _change(connection, pipe.uid, by=by, pulled_at=pulled, **_NO_PROBLEM, **_definition(pipe))


def set_comment(connection: sa.Connection, uid: str, *, comment: str | None, by: str) -> bool:
    """Give the pipe another comment; True if it lives."""
    return _change(connection, uid, by=by, comment=comment)


def pause_pipe(connection: sa.Connection, uid: str, *, at: datetime, by: str) -> bool:
    """The pipe takes no files from now on; True if it ran."""
    return _change(connection, uid, _of.paused_at.is_(None), by=by, paused_at=at)


def resume_pipe(connection: sa.Connection, uid: str, *, expected: datetime, by: str) -> bool:
    """The pipe takes files again; True if it was paused since `expected`."""
    return _change(connection, uid, _of.paused_at == expected, by=by, paused_at=None)


def note_pull(connection: sa.Connection, uid: str, *, at: datetime) -> bool:
    """A run has taken notifications. False for a dropped pipe, and if a later run has taken some."""
    return named.change(connection, pipes, uid, _of.pulled_at.is_(None) | (_of.pulled_at <= at), pulled_at=at)


def note_run(
    connection: sa.Connection, uid: str, *, problem: str | None, at: datetime, by: str | None, keep: bool = False
) -> bool:
    """A run of the pipe has ended. `problem`: of its files, which does not stop the pipe. `keep`: without a problem of
    its own the run leaves that of earlier files. False for a dropped pipe, and for a run that began before the last.
    """
    if problem is not None:
        found: dict[str, Any] = {"stalled": None, "problem": problem, "problem_at": at, "problem_run": by}
        return _after_the_last(connection, uid, at=at, by=by, **found)
    if keep and _after_the_last(connection, uid, _of.stalled.is_(None), at=at, by=by):
        return True
    return _after_the_last(connection, uid, at=at, by=by, **_NO_PROBLEM)


def stall_pipe(
    connection: sa.Connection, uid: str, *, stalled: PipeState, problem: str, at: datetime, by: str | None
) -> bool:
    """A run of the pipe could load nothing. False for a dropped pipe, and for a run that began before the last."""
    found = {"stalled": stalled.value, "problem": problem, "problem_at": at, "problem_run": by}
    return _after_the_last(connection, uid, at=at, by=by, **found)


def end_pipe(connection: sa.Connection, uid: str, *, at: datetime, by: str) -> bool:
    """End a pipe; True if it lived. Its row and its queue stay, and its uid is never used again."""
    return _change(connection, uid, by=by, ended_at=at)


def _after_the_last(
    connection: sa.Connection, uid: str, *expected: sa.ColumnElement[bool], at: datetime, by: str | None, **values: Any
) -> bool:
    newest = _of.last_run_at.is_(None) | (_of.last_run_at <= at)
    return _change(connection, uid, newest, *expected, by=by, last_run_at=at, last_run=by, **values)


def _change(
    connection: sa.Connection, uid: str, *expected: sa.ColumnElement[bool], by: str | None, **values: Any
) -> bool:
    changed = named.change(connection, pipes, uid, *expected, **values)
    if changed:
        touch(connection, KIND, [uid], by=by)
    return changed


def _definition(pipe: Pipe) -> dict[str, Any]:
    return {
        "name": pipe.name,
        "folded_name": key_of(pipe.name),
        "copy_statement": pipe.copy_statement,
        "auto_ingest": pipe.auto_ingest,
        "notification_channel": pipe.notification_channel,
        "comment": pipe.comment,
    }


def _of_row(row: sa.RowMapping) -> Pipe:
    values = {str(name): value for name, value in row.items() if name not in ("folded_name", "last_run")}
    return Pipe(**{**values, "stalled": None if row["stalled"] is None else PipeState(row["stalled"])})
