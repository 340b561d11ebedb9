"""Errors of COPY statements, of stages, file formats and pipes."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "BatchMissing",
    "CopyAborted",
    "CopyRefused",
    "FileFormatExists",
    "FileFormatNotFound",
    "FilesNotFound",
    "FilesNotQueued",
    "NotificationsNotInstalled",
    "NotificationsUnreachable",
    "PipeBusy",
    "PipeError",
    "PipeExists",
    "PipeForbidden",
    "PipeNotFound",
    "PipePaused",
    "PipeStale",
    "PipeStalled",
    "StageExists",
    "StageLocationMissing",
    "StageNotFound",
]


class PipeError(TidemarkError):
    """{message}"""


class StageNotFound(PipeError):
    """There is no stage {stage}. These exist: {known}. Name one of them, or create it with CREATE STAGE."""


class StageExists(PipeError):
    """Stage {stage} exists already. Use CREATE OR REPLACE STAGE, or another name."""


class StageLocationMissing(PipeError):
    """There is no directory {location}. Nothing was loaded. Create it, or correct the URL of the stage."""


class FileFormatNotFound(PipeError):
    """There is no file format {file_format}. These exist: {known}. Name one of them, or create it with
    CREATE FILE FORMAT.
    """


class FileFormatExists(PipeError):
    """File format {file_format} exists already. Use CREATE OR REPLACE FILE FORMAT, or another name."""


class PipeNotFound(PipeError):
    """There is no pipe {pipe}. These exist: {known}. Name one of them, or create it with CREATE PIPE."""


class PipeExists(PipeError):
    """Pipe {pipe} exists already. Change its statement with CREATE OR REPLACE PIPE, which keeps its history, or use
    another name.
    """


class PipePaused(PipeError):
    """Pipe {pipe} has been paused since {since} and loads nothing. Resume it with `ALTER PIPE {pipe} SET
    PIPE_EXECUTION_PAUSED = FALSE`.
    """


class PipeStale(PipeError):
    """Pipe {pipe} has been paused since {since}, which is longer than its history of {days} days. Older files that
    arrived since are left out, and older names in its queue are forgotten. To resume it all the same, run `SELECT
    SYSTEM$PIPE_FORCE_RESUME('{pipe}', 'STALENESS_CHECK_OVERRIDE')`.
    """


class PipeStalled(PipeError):
    """Pipe {pipe} loads nothing ({state}): {problem} Remove the cause. The next run tries again."""


class CopyRefused(PipeError):
    """The files cannot be loaded into table {table}: {problem} Nothing was loaded."""


class CopyAborted(PipeError):
    """Nothing was loaded into table {table}. The first error is in {place}: {problem}. Repair the file, or use
    ON_ERROR = CONTINUE or SKIP_FILE.
    """


class BatchMissing(PipeError):
    """Batch {batch} of files is not in table {table}: {problem}. {instead}"""


class FilesNotFound(PipeError):
    """{location} has no such files: {files}. Nothing was loaded. Correct the names in FILES, which begin below the
    location of the statement.
    """


class PipeForbidden(PipeError):
    """The token of {writer} may not use pipe {pipe}. It may use: {pipes}. Create a token for others with `airflow
    tidemark ingest tokens add --pipe`.
    """


class PipeBusy(PipeError):
    """The ingest service has too much to do for pipe {pipe}: {problem}. Nothing was done. Send the request again in
    {seconds} seconds.
    """


class FilesNotQueued(PipeError):
    """It is unknown whether the files are in the queue of pipe {pipe}: {problem} Send them again. A file that is in the
    queue already stays there once.
    """


class NotificationsUnreachable(PipeError):
    """The notifications of {channel} cannot be read: {problem}. They stay there. Check the address, {access}
    and its rights; the next run reads them again.
    """


class NotificationsNotInstalled(PipeError):
    """The notifications of {channel} are in a queue of Amazon, whose provider cannot be loaded: {problem}. Run
    pip install 'airflow-provider-tidemark[amazon]'.
    """
