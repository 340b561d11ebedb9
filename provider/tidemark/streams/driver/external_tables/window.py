"""The window of an insert-only stream as rows: those of the files that came in it (R65)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tidemark.changes.driver.data_files import listed_files, rows_of_files
from tidemark.changes.driver.window import plan_window, read_window
from tidemark.changes.planning.sets.plan import explain_pages
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import definition, require_unchanged
from tidemark.model.streams import ACTION, StreamMode, StreamWindow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["explain_file_window", "read_file_window"]


def read_file_window(
    spark: SparkSession,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] | None = None,
) -> DataFrame:
    """The rows of every file that the list's window added or overwrote. Removed files are ignored, and so are files
    that came and went in between (R65). Columns as in `rows_of_files`.

    Raises SourceRecreated, StreamStale, DataFileChanged where a file is no longer what the list says.
    """
    table = definition(DeltaLog.open(window.source.path, options))
    changes = read_window(spark, _of_list(window), workspace, options)
    files = listed_files(changes.where(F.col(f"`{ACTION}`") == "INSERT"))
    if say is not None:
        size = sum(file.size for file in files)
        read = f"{len(files):,} files of {size:,} bytes"
        say(f"stream {window.stream_name}, versions ({window.start}, {window.end}]: {read}")
    require_unchanged(table, files, options)
    return rows_of_files(spark, table, files)


def explain_file_window(window: StreamWindow, options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """How the list of files would be read, and its external table; without Spark."""
    table = definition(DeltaLog.open(window.source.path, options))
    about = {"external_table": table.name, "location": table.location, "file_format": table.file_format.value}
    return {**explain_pages(plan_window(_of_list(window), options)), "mode": window.mode.value, **about}


def _of_list(window: StreamWindow) -> StreamWindow:
    """The same window on the list of the files, which is a table like any other."""
    return replace(window, mode=StreamMode.STANDARD)
