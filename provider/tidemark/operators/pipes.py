"""Pipes: making them, running them, and putting files of their location into their queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.errors import NotYetSupported, PipePaused, SqlCompilationError
from tidemark.operators._base import TidemarkOperator, flag_of, key_of, whole_number_of
from tidemark.operators._constants import check_constants
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._pipes import (
    copy_in_pipe,
    listing_of,
    packages_of,
    pipe_of,
    prefix_of,
    say_failed,
    tell_outlets,
    time_of,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.pipes.model.jobs import RunPipeReport
    from tidemark.pipes.worker.running import PipeRun

__all__ = ["CreatePipeOperator", "RefreshPipeOperator", "RunPipeOperator"]


class CreatePipeOperator(TidemarkOperator):
    """Creates a pipe with its COPY statement, or keeps the existing one. No JVM starts.

    A second run changes nothing. With `or_replace` an existing pipe gets this definition, and keeps its queue, its
    history and its pause. Stage, file format and table may be created later. Returns {pipe, table, queue, created}.
    Raises SqlCompilationError with the place in the text, NotYetSupported, InvalidArgument.

    :param pipe: name of the pipe, of one to three parts. (templated)
    :param copy_statement: the COPY INTO statement; a name that ends in `.sql` is a file of it. (templated)
    :param auto_ingest: whether runs look for new files; else they load what is in the queue. (templated)
    :param notification_channel: the address of a queue of notifications about new files. (templated)
    :param comment: shown with the pipe. (templated)
    :param or_replace: give an existing pipe this definition. (templated)
    """

    template_fields: Sequence[str] = (
        "pipe", "copy_statement", "auto_ingest", "notification_channel", "comment", "or_replace", "conn_id",
    )  # fmt: skip
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"copy_statement": "sql"}

    def __init__(
        self,
        *,
        pipe: str,
        copy_statement: str,
        auto_ingest: bool | str = True,
        notification_channel: str | None = None,
        comment: str | None = None,
        or_replace: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipe = pipe
        self.copy_statement = copy_statement
        self.auto_ingest = auto_ingest
        self.notification_channel = notification_channel
        self.comment = comment
        self.or_replace = or_replace
        check_constants(self, pipe=pipe_of, copy_statement=copy_in_pipe, auto_ingest=flag_of, or_replace=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The pipe's name, the table that it loads, the path of its queue, and whether it is new."""
        from tidemark.pipes.planning.queues import queue_path
        from tidemark.pipes.worker.definitions import create_pipe, find_pipe

        hook, replaces = self.hook, flag_of("or_replace", self.or_replace)
        statement, store = copy_in_pipe("copy_statement", self.copy_statement), hook.open_store()
        before = find_pipe(store, pipe_of("pipe", self.pipe))
        pipe = create_pipe(
            store,
            self.pipe,
            self.copy_statement,
            queue=queue_path(hook.settings.lake_root, self.pipe),
            auto_ingest=flag_of("auto_ingest", self.auto_ingest),
            notification_channel=self.notification_channel or None,
            comment=self.comment or None,
            or_replace=replaces,
            if_not_exists=not replaces,
            by=str(key_of(context)),
        )
        created = before is None or before.uid != pipe.uid
        if not created and pipe.copy_statement.strip() != self.copy_statement.strip():
            self.log.warning("Pipe %s exists with another statement, and keeps it. or_replace changes it.", pipe.name)
        return {"pipe": pipe.name, "table": statement.table, "queue": pipe.queue, "created": created}


class RunPipeOperator(DeferrableOperator):
    """Loads the files that wait for a pipe, and new files of its location: the oldest first, each once.

    A retry finishes the batch that the last attempt began. A pipe that is paused skips the task. If a stage, file
    format or table is gone, the task fails before a JVM starts. The pipe is then stalled until a run succeeds. Returns
    {pipe, batches, files, files_loaded, files_with_errors, rows_loaded, bytes_loaded, errors_seen, pending, version,
    failed, left_out, first_left_out}. `failed` are the reports of the first 20 files with errors, which the log has as
    warnings. `left_out` are files older than the pipe's history, which no run has met before. Raises
    PipeNotFound, StageNotFound, FileFormatNotFound, TableNotFound, StageLocationMissing, CopyRefused, BatchMissing,
    SqlCompilationError, InvalidArgument, NotificationsUnreachable, NotificationsNotInstalled, FileFormatNotInstalled.

    A pipe with a notification channel takes the files that are announced there, and lists its location once an hour.
    `full_listing_seconds` of the connection is another time. The notifications are removed when the job has ended well.

    :param pipe: name of the pipe; a mapped task runs several. (templated)
    :param list_files: look for new files; `"all"` loads files again that were loaded before. None: if the pipe was
        created with auto_ingest, or if one of the next two asks for files. (templated)
    :param prefix: only new files whose names begin with this, after the prefix of the pipe. (templated)
    :param modified_after: only new files that were modified after this time, which has a zone. (templated)
    :param max_files: files in one batch. (templated)
    :param batches: batches in this run; the rest waits for the next one. (templated)
    :param skip_when_empty: end as skipped, without an asset event, when no file was loaded. (templated)
    :param aws_conn_id: Airflow connection for a notification channel that is a queue of SQS. (templated)
    """

    template_fields: Sequence[str] = (
        "pipe", "list_files", "prefix", "modified_after", "max_files", "batches", "skip_when_empty", "aws_conn_id",
        "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        pipe: str,
        list_files: bool | str | None = None,
        prefix: str | None = None,
        modified_after: datetime | str | None = None,
        max_files: int | str | None = 10_000,
        batches: int | str | None = 10,
        skip_when_empty: bool | str = False,
        aws_conn_id: str = "aws_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipe = pipe
        self.list_files = list_files
        self.prefix = prefix
        self.modified_after = modified_after
        self.max_files = max_files
        self.batches = batches
        self.skip_when_empty = skip_when_empty
        self.aws_conn_id = aws_conn_id
        check_constants(
            self,
            pipe=pipe_of,
            list_files=listing_of,
            prefix=prefix_of,
            modified_after=time_of,
            max_files=whole_number_of,
            batches=whole_number_of,
            skip_when_empty=flag_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The counts of the run, and the reports of files with errors."""
        from tidemark.hooks.notifications import channels_of_pipes
        from tidemark.model.codec import to_plain
        from tidemark.pipes.model.jobs import RUN_PIPE
        from tidemark.pipes.worker.definitions import get_pipe
        from tidemark.pipes.worker.running import run_pipe

        channels = channels_of_pipes(self.hook.settings.storage_options, self.aws_conn_id)
        key, wish, skips = key_of(context), self._wish(), flag_of("skip_when_empty", self.skip_when_empty)
        name = pipe_of("pipe", self.pipe)
        announced = get_pipe(self.hook.open_store(), name).notification_channel is not None
        leaves = () if announced else (RUN_PIPE,)  # the worker holds the notifications, and has others next time
        runtime = self.runtime(packages=_packages(self.hook, name), leaves=leaves)
        try:
            report = run_pipe(runtime, name, wish, by=str(key), key=key, channel_of=channels)
        except PipePaused as error:
            raise AirflowSkipException(str(error)) from error
        self._say(report)
        if skips and not report.files_loaded:
            raise AirflowSkipException(f"Pipe {name} loaded no file.")
        tell_outlets(context, self, _facts(name, report))
        return {"pipe": name, **to_plain(report)}

    def _wish(self) -> PipeRun:
        from tidemark.pipes.worker.running import PipeRun

        lists, force = listing_of("list_files", self.list_files)
        numbers = {name: whole_number_of(name, getattr(self, name)) for name in ("max_files", "batches")}
        return PipeRun(
            list_files=lists,
            prefix=prefix_of("prefix", self.prefix),
            modified_after=time_of("modified_after", self.modified_after),
            force=force,
            full_listing_seconds=self.hook.settings.full_listing_seconds,
            **{name: number for name, number in numbers.items() if number is not None},
        )

    def _say(self, report: RunPipeReport) -> None:
        from tidemark.pipes.planning.late_files import late_problem

        say_failed(f"Pipe {self.pipe}", report.failed)
        if (more := report.files_with_errors - len(report.failed)) > 0:
            self.log.warning("Pipe %s: %s more files have errors; load_history shows them.", self.pipe, more)
        if report.left_out:
            self.log.warning("Pipe %s: %s", self.pipe, late_problem(report.left_out, report.first_left_out))
        self.log.info(
            "Pipe %s: %s rows of %s files in %s batches; %s files wait.",
            *(self.pipe, report.rows_loaded, report.files_loaded, report.batches, report.pending),
        )


class RefreshPipeOperator(DeferrableOperator):
    """Puts the files of a pipe's location that it did not load into its queue, also those that failed.

    The next run of the pipe loads them. A second run finds them in the queue. Returns {pipe, queued, known}. Raises
    PipeNotFound, StageNotFound, FileFormatNotFound, TableNotFound, StageLocationMissing, InvalidArgument.

    :param pipe: name of the pipe. (templated)
    :param prefix: only files whose names begin with this, after the prefix of the pipe. (templated)
    :param modified_after: only files that were modified after this time, which has a zone. (templated)
    """

    template_fields: Sequence[str] = ("pipe", "prefix", "modified_after", "conn_id")

    def __init__(
        self,
        *,
        pipe: str,
        prefix: str | None = None,
        modified_after: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipe = pipe
        self.prefix = prefix
        self.modified_after = modified_after
        check_constants(self, pipe=pipe_of, prefix=prefix_of, modified_after=time_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """How many files are new in the queue, and how many were known."""
        from tidemark.pipes.model.jobs import QUEUE_FILES
        from tidemark.pipes.worker.running import refresh_pipe

        name = pipe_of("pipe", self.pipe)
        done = refresh_pipe(
            self.runtime(packages=_packages(self.hook, name), leaves=(QUEUE_FILES,)),
            name,
            prefix=prefix_of("prefix", self.prefix),
            modified_after=time_of("modified_after", self.modified_after),
            key=key_of(context),
        )
        self.log.info("Pipe %s: %s files are new in its queue, %s were known.", name, done.queued, done.known)
        return {"pipe": name, "queued": done.queued, "known": done.known}


def _packages(hook: TidemarkHook, name: str) -> Sequence[str]:
    """The jars that the pipe's files need. Raises PipeNotFound before a JVM is looked for."""
    from tidemark.pipes.worker.definitions import get_pipe
    from tidemark.pipes.worker.needs import copy_of

    pipe = get_pipe(hook.open_store(), name)
    try:
        return packages_of(hook, copy_of(pipe))
    except (SqlCompilationError, NotYetSupported):  # the run keeps it with the pipe
        return ()


def _facts(name: str, report: RunPipeReport) -> dict[str, Any]:
    return {
        "pipe": name,
        "files": report.files_loaded,
        "rows": report.rows_loaded,
        "bytes": report.bytes_loaded,
        "errors": report.errors_seen,
        "version": report.version,
    }
