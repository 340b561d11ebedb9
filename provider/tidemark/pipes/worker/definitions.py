"""Pipes as users define, pause, resume and drop them, and the ends of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.samples import keep_sample
from tidemark.control.store import ControlStore
from tidemark.errors import PipeExists, PipeStale
from tidemark.lake.storage import canonical_uri
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.planning.channel_addresses import require_channel
from tidemark.pipes.planning.names import key_of, listed, require_one_way
from tidemark.pipes.planning.sql_copy import copy_of_pipe
from tidemark.pipes.planning.states import STALE_AFTER, is_stale
from tidemark.pipes.store import pipes
from tidemark.sql.text import Cursor

__all__ = [
    "comment_on_pipe",
    "create_pipe",
    "drop_pipe",
    "find_pipe",
    "get_pipe",
    "list_pipes",
    "note_pipe_pull",
    "note_pipe_run",
    "pause_pipe",
    "resume_pipe",
]

_LONGEST_PROBLEM = 2_000  # characters


def create_pipe(
    store: ControlStore,
    name: str,
    copy_statement: str,
    *,
    queue: str,
    auto_ingest: bool = True,
    notification_channel: str | None = None,
    comment: str | None = None,
    or_replace: bool = False,
    if_not_exists: bool = False,
    by: str,
) -> Pipe:
    """The pipe of that name. `queue`: the path for the first pipe of the name (`queue_path`). A pipe that is created
    after another one was dropped gets a number in it.

    `or_replace` gives an existing pipe this definition. Its uid, its queue with the history, and its pause stay, so a
    second run changes nothing. `if_not_exists` keeps an existing one as it is. Names in the statement are not resolved
    here. Raises PipeExists, InvalidArgument, SqlCompilationError, NotYetSupported.
    """
    require_one_way(or_replace=or_replace, if_not_exists=if_not_exists)
    key_of(name)
    copy_of_pipe(Cursor(copy_statement))
    if notification_channel is not None:
        require_channel(notification_channel)
    wanted = Pipe(
        uid=store.new_id(),
        name=name.strip(),
        copy_statement=copy_statement,
        queue=canonical_uri(queue),
        auto_ingest=auto_ingest,
        notification_channel=notification_channel,
        comment=comment,
        created_at=store.clock(),
    )

    return store.write(lambda connection: _create(connection, wanted, or_replace, if_not_exists, by))


def drop_pipe(store: ControlStore, name: str, *, if_exists: bool = False, by: str) -> Pipe | None:
    """End the pipe and return what it was. Its queue stays, and COPY_HISTORY shows it. None if it did not exist with
    `if_exists`. Raises PipeNotFound.
    """

    def drop(connection: sa.Connection) -> Pipe | None:
        pipe = pipes.lookup_pipe(connection, name) if if_exists else pipes.find_pipe(connection, name)
        if pipe is not None:
            pipes.end_pipe(connection, pipe.uid, at=store.clock(), by=by)
        return pipe

    return store.write(drop)


def find_pipe(store: ControlStore, name: str) -> Pipe | None:
    """The pipe of that name; None if there is none."""
    return store.read(lambda connection: pipes.lookup_pipe(connection, name))


def get_pipe(store: ControlStore, name: str) -> Pipe:
    """The pipe of that name. Raises PipeNotFound with similar names, InvalidArgument for a bad name."""
    return store.read(lambda connection: pipes.find_pipe(connection, name))


def list_pipes(store: ControlStore, like: str | None = None) -> tuple[Pipe, ...]:
    """All pipes that are not dropped, by name. `like`: a pattern of LIKE for the last part of the name."""
    return listed(store.read(pipes.live_pipes), like)


def comment_on_pipe(store: ControlStore, name: str, comment: str | None, *, by: str) -> Pipe:
    """Give the pipe another comment, None for none. Raises PipeNotFound."""

    def comment_on(connection: sa.Connection) -> Pipe:
        pipe = pipes.find_pipe(connection, name)
        pipes.set_comment(connection, pipe.uid, comment=comment, by=by)
        return replace(pipe, comment=comment)

    return store.write(comment_on)


def pause_pipe(store: ControlStore, name: str, *, by: str) -> Pipe:
    """The pipe takes no files until it is resumed; its queue may grow. A second run changes nothing. Raises
    PipeNotFound.
    """

    def pause(connection: sa.Connection) -> Pipe:
        pipe, now = pipes.find_pipe(connection, name), store.clock()
        if pipe.paused_at is None and pipes.pause_pipe(connection, pipe.uid, at=now, by=by):
            return replace(pipe, paused_at=now)
        return pipe

    return store.write(pause)


def resume_pipe(store: ControlStore, name: str, *, force: bool = False, by: str) -> Pipe:
    """The pipe takes files again. A second run changes nothing. `force`: also after a pause that is longer than its
    history, so that older files are left out. Raises PipeNotFound, PipeStale.
    """

    def resume(connection: sa.Connection) -> Pipe:
        pipe = pipes.find_pipe(connection, name)
        if pipe.paused_at is None:
            return pipe
        if is_stale(pipe, store.clock()) and not force:
            since = f"{pipe.paused_at:%Y-%m-%d %H:%M} UTC"
            raise PipeStale(pipe=pipe.name, since=since, days=STALE_AFTER.days)
        pipes.resume_pipe(connection, pipe.uid, expected=pipe.paused_at, by=by)
        return replace(pipe, paused_at=None)

    return store.write(resume)


def note_pipe_run(
    store: ControlStore,
    uid: str,
    problem: str | None,
    stalled: PipeState | None,
    at: datetime,
    *,
    by: str | None = None,
    took_files: bool = True,
    figures: Mapping[str, float] | None = None,
) -> bool:
    """Keep the end of a run: `at` its time, `by` its key. False if nothing was kept, since the pipe was dropped or a
    later run has ended. A second run changes nothing.

    `stalled`: the run could load nothing. A problem without it is one of the files, as of a skipped one. A run without
    a problem clears an earlier one. If it `took_files` is False, the problem of earlier files stays.
    `figures`: the sample of the run for the history of the pipe; none if it took no files.
    """
    words = None if problem is None else store.hide(problem)[:_LONGEST_PROBLEM]

    def note(connection: sa.Connection) -> bool:
        if stalled is not None:
            return pipes.stall_pipe(connection, uid, stalled=stalled, problem=words or stalled.value, at=at, by=by)
        kept = pipes.note_run(connection, uid, problem=words, at=at, by=by, keep=not took_files)
        if kept and figures:
            keep_sample(connection, pipes.KIND, uid, at=at, run=by, figures=figures)
        return kept

    return store.write(note)


def note_pipe_pull(store: ControlStore, uid: str, at: datetime) -> bool:
    """Keep the time when a run took notifications. False if nothing was kept, since the pipe was dropped or a later run
    has taken some. A second run changes nothing.
    """
    return store.write(lambda connection: pipes.note_pull(connection, uid, at=at))


def _create(connection: sa.Connection, wanted: Pipe, or_replace: bool, if_not_exists: bool, by: str) -> Pipe:
    existing = pipes.lookup_pipe(connection, wanted.name)
    if existing is None:
        created = replace(wanted, queue=pipes.free_queue(connection, wanted.queue))
        pipes.create_pipe(connection, created, by=by)
        return created
    if if_not_exists:
        return existing
    if not or_replace:
        raise PipeExists(pipe=existing.name)
    pipes.replace_pipe(connection, replace(wanted, uid=existing.uid), by=by)
    return pipes.find_pipe(connection, wanted.name)
