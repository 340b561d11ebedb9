"""Loads of files from a notebook: COPY INTO, stages, file formats and pipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.client.context import ClientContext
from tidemark.client.copying import run_copy
from tidemark.client.notifications import channels_of
from tidemark.client.pipe_histories import (
    copy_history_of,
    facts_of,
    insert_report_of,
    load_history_of,
)
from tidemark.errors import InvalidArgument
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.model.jobs import QueuedFiles, RunPipeReport
from tidemark.pipes.model.pipes import NamedFormat, Pipe, Stage
from tidemark.pipes.planning.copy_text import copy_text, format_ref
from tidemark.pipes.planning.formats import file_format as checked_format
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.planning.sql_copy import copy_into as parsed_copy
from tidemark.pipes.worker import definitions, file_formats, running, stages
from tidemark.pipes.worker.needs import needed_objects
from tidemark.pipes.worker.notified import channel_facts
from tidemark.pipes.worker.status import pipe_status as status_of
from tidemark.sql.text import Cursor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["PipesOfALake"]

GivenFormat = str | Mapping[str, Any] | FileFormat
"""The name of a file format, or options as `{"TYPE": "CSV", "SKIP_HEADER": 1}`."""


class PipesOfALake:
    """The part of `Lake` that loads files. Names of stages, file formats and pipes are found in any case."""

    _context: ClientContext

    def copy_into(
        self,
        table: str,
        location_or_stage: str,
        *,
        files: Sequence[str] = (),
        pattern: str | None = None,
        prefix: str = "",
        file_format: GivenFormat | None = None,
        columns: Sequence[str] = (),
        select: str | None = None,
        on_error: str = "ABORT_STATEMENT",
        match_by_column_name: str = "NONE",
        size_limit: int | None = None,
        purge: bool = False,
        force: bool = False,
        load_uncertain_files: bool = False,
        truncate_columns: bool = False,
        return_failed_only: bool = False,
        enable_schema_evolution: bool = False,
        validation_mode: str | None = None,
    ) -> DataFrame:
        """Load files into a table, each once: COPY INTO with its options as arguments.

        `location_or_stage`: '@stage/path' or a URI. `file_format`: the name of one, or {"TYPE": …} with its options.
        `select`: the items of a transformation, such as "$1, $2". The answer has a row for each file, or the rows or
        errors that `validation_mode` finds. Raises SqlCompilationError for options that exclude each other,
        CopyAborted, CopyRefused, BatchMissing, FilesNotFound, StageLocationMissing, StageNotFound, FileFormatNotFound,
        TableNotFound.
        """
        options = {
            "FILES": tuple(files),
            "PATTERN": pattern,
            "PREFIX": prefix,
            "ON_ERROR": on_error,
            "MATCH_BY_COLUMN_NAME": match_by_column_name,
            "SIZE_LIMIT": size_limit,
            "PURGE": purge,
            "FORCE": force,
            "LOAD_UNCERTAIN_FILES": load_uncertain_files,
            "TRUNCATECOLUMNS": truncate_columns,
            "RETURN_FAILED_ONLY": return_failed_only,
            "ENABLE_SCHEMA_EVOLUTION": enable_schema_evolution,
            "VALIDATION_MODE": validation_mode,
        }
        text = copy_text(
            table, location_or_stage, columns=columns, select=select, file_format=file_format, options=options
        )
        return run_copy(self._context, parsed_copy(Cursor(text)))

    def create_stage(
        self,
        name: str,
        url: str,
        *,
        file_format: GivenFormat | None = None,
        comment: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> Stage:
        """A stage on a directory or the prefix of a bucket, which need not exist yet.

        Raises StageExists, FileFormatNotFound, InvalidArgument.
        """
        ref = format_ref(file_format)
        return stages.create_stage(
            self._context.store,
            name,
            url,
            format=None if ref is None else ref.format,
            format_name=None if ref is None else ref.name,
            comment=comment,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )

    def drop_stage(self, name: str, *, if_exists: bool = False) -> None:
        """End a stage; its files stay, and pipes that read it stop. Raises StageNotFound."""
        stages.drop_stage(self._context.store, name, if_exists=if_exists)

    def create_file_format(
        self,
        name: str,
        type: str,
        options: Mapping[str, Any] | None = None,
        *,
        comment: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> NamedFormat:
        """A file format; `options` have the names of the source system. Raises FileFormatExists, InvalidArgument,
        NotYetSupported for an option that Spark cannot honour.
        """
        return file_formats.create_file_format(
            self._context.store,
            name,
            checked_format(type, options),
            comment=comment,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )

    def drop_file_format(self, name: str, *, if_exists: bool = False) -> None:
        """End a file format; pipes that use it stop. Raises FileFormatNotFound."""
        file_formats.drop_file_format(self._context.store, name, if_exists=if_exists)

    def create_pipe(
        self,
        name: str,
        copy_statement: str,
        *,
        auto_ingest: bool = True,
        notification_channel: str | None = None,
        comment: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> Pipe:
        """A pipe with a COPY statement. With `auto_ingest` its runs look for new files; in SQL the default is FALSE.

        `or_replace` changes the statement of an existing pipe, which keeps its queue and its history. Raises
        PipeExists, SqlCompilationError, NotYetSupported, InvalidArgument for a client without a lake root.
        """
        context = self._context
        if context.lake_root is None:
            problem = "a pipe keeps its queue below the root of the lake; give lake_root to connect()"
            raise InvalidArgument(argument="lake_root", value=None, problem=problem)
        return definitions.create_pipe(
            context.store,
            name,
            copy_statement,
            queue=queue_path(context.lake_root, name),
            auto_ingest=auto_ingest,
            notification_channel=notification_channel,
            comment=comment,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            by=context.who,
        )

    def drop_pipe(self, name: str, *, if_exists: bool = False) -> None:
        """End a pipe; COPY_HISTORY still shows its loads. Raises PipeNotFound."""
        definitions.drop_pipe(self._context.store, name, if_exists=if_exists, by=self._context.who)

    def pause_pipe(self, name: str) -> Pipe:
        """The pipe loads nothing until it is resumed; its queue may grow. Raises PipeNotFound."""
        return definitions.pause_pipe(self._context.store, name, by=self._context.who)

    def resume_pipe(self, name: str, *, force: bool = False) -> Pipe:
        """The pipe loads files again. `force`: also after a pause of more than 14 days. Raises PipeNotFound,
        PipeStale.
        """
        return definitions.resume_pipe(self._context.store, name, force=force, by=self._context.who)

    def show_pipes(self, *, like: str | None = None) -> tuple[Pipe, ...]:
        """All pipes by name. `like` knows % and _ and no case."""
        return definitions.list_pipes(self._context.store, like)

    def pipe_status(self, pipe: str) -> Mapping[str, Any]:
        """The fields of SYSTEM$PIPE_STATUS by their names there. Raises PipeNotFound.

        The notifications that wait are counted. A channel that cannot be reached has no number, and `error` says why.
        """
        context = self._context
        found = definitions.get_pipe(context.store, pipe)
        needed = needed_objects(context.store, found, context.tables)
        return status_of(
            found,
            facts_of(context, found),
            context.store.clock(),
            channel_facts=channel_facts(found, channels_of(context)),
            stage_exists=needed.stage,
            format_exists=needed.file_format,
            table_exists=needed.table,
        )

    def run_pipe(self, pipe: str, *, notifications: bool = True, **limits: Any) -> RunPipeReport:
        """Load the files that wait, and new ones if the pipe is one of AUTO_INGEST. A second run finds nothing to do.

        A pipe with a notification channel takes the files that are announced there, and lists its location once an
        hour. With `notifications=False` the run lists it, and leaves the channel alone. `limits`: the fields of
        PipeRun, such as `max_files`, `batches`, `prefix`, `modified_after`, `force` and `list_files`. Raises
        PipeNotFound, PipePaused, TableNotFound, CopyRefused, BatchMissing, StageLocationMissing,
        NotificationsUnreachable, NotificationsNotInstalled.
        """
        context = self._context
        run = f"client/{context.store.new_id()}/{pipe}"
        channels = channels_of(context) if notifications else None
        return running.run_pipe(context.runtime, pipe, running.PipeRun(**limits), by=run, channel_of=channels)

    def insert_files(self, pipe: str, files: Sequence[str]) -> QueuedFiles:
        """Put up to 5,000 files of the pipe's location into its queue; the next run loads them. Files that do not exist
        are left out. Raises PipeNotFound, InvalidArgument, StageNotFound.
        """
        names = (files,) if isinstance(files, str) else tuple(files)
        return running.insert_files(self._context.runtime, pipe, names)

    def refresh_pipe(self, pipe: str, prefix: str | None = None, modified_after: datetime | None = None) -> QueuedFiles:
        """Put all files that the pipe did not load into its queue, also those that failed. `prefix`: behind that of
        the statement. Raises PipeNotFound, StageLocationMissing, StageNotFound.
        """
        return running.refresh_pipe(self._context.runtime, pipe, prefix=prefix or "", modified_after=modified_after)

    def insert_report(self, pipe: str) -> DataFrame:
        """The files that wait, are being loaded, or were loaded in the last 10 minutes; at most 10,000, newest first.

        The columns are those of `load_history`. Raises PipeNotFound.
        """
        return insert_report_of(self._context, pipe)

    def load_history(self, pipe: str, start: datetime | None = None, end: datetime | None = None) -> DataFrame:
        """The files whose load ended from `start` on and before `end`; all of the last 14 days by default.

        The columns have the names of the source system's report. Of the file: path, stageLocation, fileSize,
        timeReceived, lastInsertTime, complete, status. Of its rows: rowsInserted, rowsParsed, errorsSeen, errorLimit.
        Of its errors: firstError, firstErrorLineNum, firstErrorCharacterPos, firstErrorColumnName, systemError. Raises
        PipeNotFound.
        """
        return load_history_of(self._context, pipe, start, end)

    def copy_history(self, table: str, start: datetime, end: datetime | None = None) -> DataFrame:
        """The loads into a table by COPY statements (64 days) and pipes (14 days), also by dropped ones, between two
        times. The columns are those of COPY_HISTORY in the source system. Raises TableNotFound.
        """
        return copy_history_of(self._context, table, start, end)
