"""VALIDATION_MODE: the errors of files, or their first rows. Nothing is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import functions as F

from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.jobs.workspace import Workspace
from tidemark.pipes.driver.attempts import Attempts
from tidemark.pipes.driver.blocks import FILE, ROW_NUMBER
from tidemark.pipes.driver.places import places_of
from tidemark.pipes.driver.prepare import Preparation, Prepared, files_to_load
from tidemark.pipes.driver.projection import ERROR
from tidemark.pipes.driver.staging import FirstError
from tidemark.pipes.driver.target import Target
from tidemark.pipes.driver.unreadable import spark_name
from tidemark.pipes.model.copying import ErrorMode, Load, OnError, Validation, ValidationMode
from tidemark.pipes.model.jobs import CopiedFiles, RowError

__all__ = ["validated"]

_MOST_ERRORS = 10_000


def validated(
    job: JobContext, load: Load, target: Target, found: pa.Table, validation: Validation, workspace: Workspace
) -> CopiedFiles:
    """The report of each file, with its rows or errors. `found`: the files (FOUND_SCHEMA).

    RETURN_n_ROWS gives the first rows as JSON, and no row if there is an error. At most 10,000 errors. Files of columns
    are read as a load reads them. Errors need all of their rows.
    """
    load, at, files = _without_limits(load), utc_now(), files_to_load(found)
    wants_rows = validation.mode is ValidationMode.ROWS

    def preparation() -> Preparation:
        return Preparation(job.session, load, target, job.options, workspace, at, job.stop_if_due)

    def attempt(unread: Mapping[str, str]) -> CopiedFiles:
        prepared = preparation().prepared(files, unread)
        errors = tuple(_errors(load, job.options, prepared))
        rows = _rows(prepared, validation.rows or 1) if wants_rows and not errors else ()
        if not wants_rows and prepared.staged is None and prepared.rows is not None:
            prepared.rows.write.format("noop").mode("overwrite").save()
        return CopiedFiles(prepared.reports, errors=errors, rows=tuple(rows))

    attempts = Attempts("validation", load.location, preparation, job.progress.say)
    return attempts.until_read(files, attempt)


def _without_limits(load: Load) -> Load:
    """The load with an ON_ERROR that looks at all files, also behind the first error."""
    return replace(load, options=replace(load.options, on_error=OnError(ErrorMode.CONTINUE)))


def _errors(load: Load, options: Mapping[str, str], prepared: Prepared) -> list[RowError]:
    """The errors by file and row."""
    unread = [
        RowError(report.file, report.system_error, None, None, None, None)
        for report in prepared.reports
        if report.system_error is not None
    ]
    if prepared.staged is None:
        return unread
    names = {spark_name(load.location, report.file): report.file for report in prepared.reports}
    found: dict[str, list[FirstError]] = defaultdict(list)
    for row in prepared.staged.bad_rows().orderBy(FILE, ROW_NUMBER).limit(_MOST_ERRORS).collect():
        error, file = row[ERROR], names.get(unquote(row[FILE]))
        if file is not None:
            found[file].append(FirstError(error.message, row[ROW_NUMBER], error.column, error.position, error.raw))
    return unread + [
        RowError(file, one.message, line, character, one.column, one.raw, one.row_number)
        for file, errors in found.items()
        for one, (line, character) in zip(errors, places_of(errors, load, options, file), strict=True)
    ]


def _rows(prepared: Prepared, number: int) -> Sequence[str]:
    if prepared.rows is None:
        return []
    shown = prepared.rows.limit(number).select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
    return [row.row for row in shown.collect()]
