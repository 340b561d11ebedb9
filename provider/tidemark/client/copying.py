"""COPY INTO in a client, and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemark.client.sql_answers import status_answer
from tidemark.errors import CopyAborted
from tidemark.model.foreign_json import foreign_object
from tidemark.pipes.model.copying import ValidationMode
from tidemark.pipes.model.files import FileReport, FileStatus, place_in_words
from tidemark.pipes.model.jobs import CopiedFiles, RowError
from tidemark.pipes.worker.running import copy_into

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.pipes.planning.statements import CopyInto

__all__ = ["run_copy"]

_LOADED = (
    "file STRING, status STRING, rows_parsed BIGINT, rows_loaded BIGINT, error_limit BIGINT, errors_seen BIGINT,"
    " first_error STRING, first_error_line BIGINT, first_error_character BIGINT, first_error_column_name STRING"
)
_FOUND = (
    "error STRING, file STRING, line BIGINT, character BIGINT, byte_offset BIGINT, category STRING, code INT,"
    " sql_state STRING, column_name STRING, row_number BIGINT, row_start_line BIGINT, rejected_record STRING"
)
_NOTHING = "Copy executed with 0 files processed."


def run_copy(context: ClientContext, statement: CopyInto) -> DataFrame:
    """Load the files of the statement, and answer with a row for each file, or with what a validation found.

    Raises CopyAborted also for a validation of rows that meets an error, and what `copy_into` raises.
    """
    copied = copy_into(context.runtime, statement, context.store.new_id())
    if statement.validation is None:
        return _loaded(context, copied, failed_only=bool(statement.options.return_failed_only))
    if statement.validation.mode is not ValidationMode.ROWS:
        return context.spark.createDataFrame([_error(one) for one in copied.errors], _FOUND)
    if copied.errors:
        raise _aborted(statement.table, copied.errors[0])
    return _rows(context, statement.table, copied.rows)


def _loaded(context: ClientContext, copied: CopiedFiles, *, failed_only: bool) -> DataFrame:
    if not copied.files:
        return status_answer(context.spark, _NOTHING)
    shown = [one for one in copied.files if not failed_only or one.status is not FileStatus.LOADED]
    return context.spark.createDataFrame([_file(one) for one in shown], _LOADED)


def _file(report: FileReport) -> tuple[Any, ...]:
    return (
        report.file,
        report.status.value,
        report.rows_parsed,
        report.rows_loaded,
        report.error_limit,
        report.errors_seen,
        report.system_error or report.first_error,
        report.first_error_line,
        report.first_error_character,
        report.first_error_column,
    )


def _error(found: RowError) -> tuple[Any, ...]:
    category = "conversion" if found.column is not None else "parsing"
    place, number = (found.line, found.character, None), found.row_number
    return (found.error, found.file, *place, category, None, None, found.column, number, found.line, found.row)


def _aborted(table: str, first: RowError) -> CopyAborted:
    place = place_in_words(first.file, first.line, first.character, first.column)
    return CopyAborted(table=table, place=place, problem=first.error.rstrip("."))


def _rows(context: ClientContext, table: str, rows: tuple[str, ...]) -> DataFrame:
    """The rows in the types of the table's columns."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    spark = context.spark
    schema = spark.read.format("delta").load(context.tables(table).uri).schema
    if not rows:
        return spark.createDataFrame([], schema)
    given = foreign_object(rows[0])
    columns = StructType([field for field in schema.fields if field.name in given])
    frame = spark.createDataFrame([(row,) for row in rows], "row STRING")
    return frame.select(f.from_json("row", columns).alias("row")).select("row.*")
