"""Runs: of a COPY statement, of a pipe, and files that are put into a pipe's queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, PipePaused, TidemarkError
from tidemark.model.statements import TransactionKey
from tidemark.pipes.model.copying import ErrorMode, Load, OnError
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.model.jobs import (
    COPY_FILES,
    QUEUE_FILES,
    RUN_PIPE,
    CopiedFiles,
    CopyFiles,
    QueuedFiles,
    QueueFiles,
    RunPipe,
    RunPipeReport,
)
from tidemark.pipes.model.notifications import NotificationChannel
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.planning.late_files import late_problem
from tidemark.pipes.planning.named_files import MOST_INSERTED
from tidemark.pipes.planning.statements import CopyInto
from tidemark.pipes.planning.states import stalled_by
from tidemark.pipes.worker.definitions import get_pipe, note_pipe_pull, note_pipe_run
from tidemark.pipes.worker.needs import copy_of
from tidemark.pipes.worker.notified import ChannelOf, acknowledged_after, notified_files
from tidemark.pipes.worker.resolve import load_of
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import Tables

__all__ = ["PipeRun", "copy_into", "insert_files", "load_of_pipe", "refresh_pipe", "run_pipe"]


@dataclass(frozen=True)
class PipeRun:
    """The wishes for a run; the fields are those of RunPipe. `list_files`: None looks for new files if the pipe is one
    of AUTO_INGEST, or if the run is asked for certain files.
    """

    list_files: bool | None = None
    prefix: str = ""
    modified_after: datetime | None = None
    force: bool = False
    full_listing_seconds: float = 3600
    max_files: int = 10_000
    max_bytes: int = 16 << 30
    batches: int = 10

    def __post_init__(self) -> None:
        for name in ("max_files", "max_bytes", "batches"):
            if getattr(self, name) < 1:
                raise InvalidArgument(argument=name, value=getattr(self, name), problem="it must be at least 1")

    def looks(self, pipe: Pipe) -> bool:
        """Whether the run looks for new files."""
        if self.list_files is not None:
            return self.list_files
        return pipe.auto_ingest or self.asks_for_files

    @property
    def asks_for_files(self) -> bool:
        """Whether the run is asked for certain files."""
        return self.force or bool(self.prefix) or self.modified_after is not None


def copy_into(runtime: Runtime, statement: CopyInto, run: str, *, key: TransactionKey | None = None) -> CopiedFiles:
    """Load files by a statement. `run`: a second run with it finishes or repeats the report of the first one.

    Raises CopyAborted, CopyRefused, BatchMissing, FilesNotFound, StageLocationMissing, and what `load_of` raises.
    """
    load = load_of(statement, store=runtime.store, tables=runtime.tables, default_error=OnError())
    return runtime.run_job(COPY_FILES, CopyFiles(load, run, statement.validation), key=key)


def load_of_pipe(store: ControlStore, pipe: Pipe, tables: Tables) -> Load:
    """The load of a pipe as its names resolve now. Raises what `copy_of` and `load_of` raise."""
    return load_of(copy_of(pipe), store=store, tables=tables, default_error=OnError(ErrorMode.SKIP_FILE))


def run_pipe(
    runtime: Runtime,
    name: str,
    wish: PipeRun | None = None,
    *,
    by: str,
    key: TransactionKey | None = None,
    channel_of: ChannelOf | None = None,
) -> RunPipeReport:
    """Load the files that wait for a pipe, and keep the end of the run with the pipe. `by`: the key of the run.

    If `channel_of` knows a channel of the pipe, the run takes the files of its notifications, and seldom lists the
    location. The notifications are removed after the job. A second run finds nothing to do; so does one with `force`,
    if it has the same `key`.

    Raises PipeNotFound, PipePaused, NotificationsUnreachable, NotificationsNotInstalled, and what the job raises.
    """
    wish, store = wish or PipeRun(), runtime.store
    pipe = get_pipe(store, name)
    if pipe.paused_at is not None:
        raise PipePaused(pipe=pipe.name, since=f"{pipe.paused_at:%Y-%m-%d %H:%M} UTC")
    began = store.clock()
    try:
        run = store.new_id() if key is None else str(key)
        request = _request(pipe, load_of_pipe(store, pipe, runtime.tables), wish, run)
        channel = None if channel_of is None or wish.asks_for_files else channel_of(pipe)
        report = _run(runtime, pipe, request, channel, key)
    except TidemarkError as error:
        stalled = stalled_by(error)
        if stalled is not None:
            note_pipe_run(store, pipe.uid, str(error), stalled, store.clock(), by=by)
        raise
    ended = store.clock()
    seconds = None if runtime.awaited is not None else (ended - began).total_seconds()
    figures = _figures(report, seconds)
    note_pipe_run(store, pipe.uid, _problem(report), None, ended, by=by, took_files=report.files > 0, figures=figures)
    return report


def _figures(report: RunPipeReport, seconds: float | None) -> Mapping[str, float]:
    """The sample of a run; empty if it took no files. `seconds`: None after a wait elsewhere, which nobody measured."""
    if not report.files:
        return {}
    return {
        "files": report.files,
        "files_loaded": report.files_loaded,
        "files_with_errors": report.files_with_errors,
        "rows": report.rows_loaded,
        "bytes": report.bytes_loaded,
        "errors": report.errors_seen,
        "pending": report.pending,
        **({} if seconds is None else {"seconds": max(0.0, seconds)}),
    }


def _run(
    runtime: Runtime, pipe: Pipe, request: RunPipe, channel: NotificationChannel | None, key: TransactionKey | None
) -> RunPipeReport:
    if channel is None:
        return runtime.run_job(RUN_PIPE, request, key=key)
    found = notified_files(pipe, request.load, channel)
    if found.received:
        note_pipe_pull(runtime.store, pipe.uid, runtime.store.clock())
    with acknowledged_after(channel, found):
        return runtime.run_job(RUN_PIPE, replace(request, has_channel=True, notified=found.files), key=key)


def insert_files(
    runtime: Runtime, name: str, files: tuple[str, ...], *, key: TransactionKey | None = None
) -> QueuedFiles:
    """Put files of these names into the queue of a pipe; its next run loads them. A second run finds them there.

    Names begin below the location of the pipe's statement. Raises PipeNotFound, InvalidArgument for no file, for more
    than 5,000, and for a name that leads out of the location.
    """
    if not 0 < len(files) <= MOST_INSERTED:
        problem = f"one call takes 1 to {MOST_INSERTED:,} names of files"
        raise InvalidArgument(argument="files", value=f"{len(files):,} names", problem=problem)
    return _queue(runtime, name, FileSource.INSERT_FILES, key, files=files)


def refresh_pipe(
    runtime: Runtime,
    name: str,
    *,
    prefix: str = "",
    modified_after: datetime | None = None,
    key: TransactionKey | None = None,
) -> QueuedFiles:
    """Put the files of a pipe's location that it did not load into its queue, also those that failed.

    A second run finds them there. Raises PipeNotFound, StageLocationMissing.
    """
    return _queue(runtime, name, FileSource.REFRESH, key, prefix=prefix, modified_after=modified_after)


def _queue(
    runtime: Runtime,
    name: str,
    source: FileSource,
    key: TransactionKey | None,
    *,
    files: tuple[str, ...] = (),
    prefix: str = "",
    modified_after: datetime | None = None,
) -> QueuedFiles:
    pipe = get_pipe(runtime.store, name)
    load = load_of_pipe(runtime.store, pipe, runtime.tables)
    request = QueueFiles(
        pipe=pipe.name,
        uid=pipe.uid,
        queue=pipe.queue,
        load=load,
        source=source,
        files=files,
        prefix=prefix,
        modified_after=modified_after,
    )
    return runtime.run_job(QUEUE_FILES, request, key=key)


def _request(pipe: Pipe, load: Load, wish: PipeRun, run: str) -> RunPipe:
    return RunPipe(
        pipe=pipe.name,
        uid=pipe.uid,
        queue=pipe.queue,
        load=load,
        list_files=wish.looks(pipe),
        prefix=wish.prefix,
        modified_after=wish.modified_after,
        force=wish.force,
        full_listing_seconds=wish.full_listing_seconds,
        max_files=wish.max_files,
        max_bytes=wish.max_bytes,
        batches=wish.batches,
        run=run,
    )


def _problem(report: RunPipeReport) -> str | None:
    """The first error of the files, and the files that were left out; None if there are none."""
    problems = []
    if report.failed:
        first = report.failed[0]
        count = f"{report.files_with_errors} of {report.files} files have errors"
        problems.append(f"{count}. The first one is in {first.place}: {first.system_error or first.first_error}")
    if report.left_out:
        problems.append(late_problem(report.left_out, report.first_left_out))
    return " ".join(problems) or None
