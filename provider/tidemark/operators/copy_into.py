"""COPY INTO: files into a table, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.errors import InvalidArgument, StatementRefused
from tidemark.operators._base import flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._pipes import MOST_SAID, packages_of, say_failed, tell_outlets

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.pipes.model.jobs import CopiedFiles
    from tidemark.pipes.planning.statements import CopyInto

__all__ = ["CopyIntoOperator"]


class CopyIntoOperator(DeferrableOperator):
    """Runs a COPY INTO statement: files of a directory or bucket into a Delta table, each file once.

    The next run loads the files that are new since. A retry or a clear continues what this run has planned, or returns
    its report. Returns {table, files, files_loaded, rows_loaded, bytes_loaded, errors_seen, version, failed}. `failed`
    are the reports of the first 20 files with errors, which the log has as warnings.

    Raises StatementRefused for other statements and for VALIDATION_MODE. Raises CopyAborted with the first error,
    SqlCompilationError with the place in the text, CopyRefused, FilesNotFound, StageLocationMissing, StageNotFound,
    FileFormatNotFound, TableNotFound, FileFormatNotInstalled, BatchMissing.

    :param sql: the statement, or the name of a file that ends in `.sql`. (templated)
    :param skip_when_empty: end as skipped, without an asset event, when no file was loaded. (templated)
    """

    template_fields: Sequence[str] = ("sql", "skip_when_empty", "conn_id")
    template_ext: Sequence[str] = (".sql",)

    def __init__(self, *, sql: str, skip_when_empty: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.skip_when_empty = skip_when_empty
        check_constants(self, sql=_statement_of, skip_when_empty=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The counts of the load, and the reports of files with errors."""
        from tidemark.pipes.model.jobs import COPY_FILES
        from tidemark.pipes.worker.running import copy_into

        statement, key = _statement_of("sql", self.sql), key_of(context)
        skips = flag_of("skip_when_empty", self.skip_when_empty)
        runtime = self.runtime(packages=packages_of(self.hook, statement), leaves=(COPY_FILES,))
        answer = self._answer(statement, copy_into(runtime, statement, str(key), key=key))
        if skips and not answer["files_loaded"]:
            raise AirflowSkipException(f"No file was loaded into {statement.table}.")
        tell_outlets(context, self, _facts(answer))
        return answer

    def _answer(self, statement: CopyInto, copied: CopiedFiles) -> dict[str, Any]:
        from tidemark.model.codec import to_plain

        loaded = [report for report in copied.files if report.status.has_rows]
        failed = [report for report in copied.files if report.errors_seen or report.system_error]
        say_failed(statement.table, failed)
        answer = {
            "table": statement.table,
            "files": len(copied.files),
            "files_loaded": len(loaded),
            "rows_loaded": sum(report.rows_loaded for report in loaded),
            "bytes_loaded": sum(report.size for report in loaded),
            "errors_seen": sum(report.errors_seen for report in copied.files),
            "version": copied.version,
        }
        self.log.info("%(table)s: %(rows_loaded)s rows of %(files_loaded)s files, of %(files)s.", answer)
        return {**answer, "failed": to_plain(tuple(failed[:MOST_SAID]))}


def _facts(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "table": answer["table"],
        "files": answer["files_loaded"],
        "rows": answer["rows_loaded"],
        "bytes": answer["bytes_loaded"],
        "errors": answer["errors_seen"],
        "version": answer["version"],
    }


def _statement_of(argument: str, sql: str) -> CopyInto:
    """The parsed statement. Raises SqlCompilationError, NotYetSupported, StatementRefused, InvalidArgument."""
    from tidemark.pipes.planning.sql import parse_pipe_sql
    from tidemark.pipes.planning.statements import CopyInto

    if not isinstance(sql, str) or not sql.strip():
        raise InvalidArgument(argument=argument, value=sql, problem="give one COPY INTO statement")
    statement = parse_pipe_sql(sql)
    if not isinstance(statement, CopyInto):
        problem = "the task runs COPY INTO; use lake.sql in a @task for other statements"
        raise StatementRefused(problem=problem, sql=sql)
    if statement.validation is not None:
        problem = "VALIDATION_MODE shows rows or errors, which nobody sees here; use lake.sql in a notebook"
        raise StatementRefused(problem=problem, sql=sql)
    return statement
