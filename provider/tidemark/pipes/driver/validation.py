"""VALIDATION_MODE: the errors of files, or their first rows. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import functions as F

from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.jobs.workspace import Workspace
from tidemark.pipes.driver.blocks import FILE, ROW_NUMBER
from tidemark.pipes.driver.files_table import utc
from tidemark.pipes.driver.found_files import Listed
from tidemark.pipes.driver.prepare import FileToLoad, Preparation, Prepared
from tidemark.pipes.driver.projection import ERROR
from tidemark.pipes.driver.staging import spark_name
from tidemark.pipes.driver.target import Target
from tidemark.pipes.model.copying import Load, Validation, ValidationMode
from tidemark.pipes.model.jobs import CopiedFiles, RowError

__all__ = ["validated"]

_MOST_ERRORS = 10_000


def validated(
    job: JobContext, load: Load, target: Target, listed: Listed, validation: Validation, workspace: Workspace
) -> CopiedFiles:
    """The report of each file, with its rows or errors. Files that were loaded before are looked at, too.

    RETURN_n_ROWS gives the first rows as JSON, and no row if there is an error. RETURN_ERRORS gives the errors of the
    files that are to be loaded, RETURN_ALL_ERRORS those of files that were loaded in part, too. At most 10,000 errors.
    """
    files = [
        FileToLoad(name, size, utc(modified))
        for table in listed.tables
        for name, size, modified in zip(
            table.column("file").to_pylist(),
            table.column("size").to_pylist(),
            table.column("modified_at").cast("int64").to_pylist(),
            strict=True,
        )
    ]
    at = utc_now()
    preparation = Preparation(job.session, load, target, job.options, workspace, at)
    prepared = preparation.prepared(sorted(files, key=lambda file: file.name), {})
    errors = _errors(load, prepared)
    if validation.mode is not ValidationMode.ROWS or errors:
        return CopiedFiles(prepared.reports, errors=tuple(errors))
    return CopiedFiles(prepared.reports, rows=tuple(_rows(prepared, validation.rows or 1)))


def _errors(load: Load, prepared: Prepared) -> list[RowError]:
    unread = [
        RowError(report.file, report.system_error, None, None, None, None)
        for report in prepared.reports
        if report.system_error is not None
    ]
    if prepared.staged is None:
        return unread
    names = {spark_name(load.location, report.file): report for report in prepared.reports}
    rows = prepared.staged.bad_rows().orderBy(FILE, ROW_NUMBER).limit(_MOST_ERRORS).collect()
    return unread + [
        RowError(report.file, row[ERROR].message, row[ROW_NUMBER], None, row[ERROR].column, row[ERROR].raw)
        for row in rows
        if (report := names.get(unquote(row[FILE]))) is not None
    ]


def _rows(prepared: Prepared, number: int) -> Sequence[str]:
    if prepared.rows is None:
        return []
    shown = prepared.rows.limit(number).select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
    return [row.row for row in shown.collect()]
