"""The commits that a capture batch reads of one watched table, under which schemas, as pages of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.change_streams.driver.modifications import Shape, modifications, shape_of
from tidemark.change_streams.model.change_streams import ChangeStream, TableRange
from tidemark.change_streams.planning.commit_facts import CommitFacts, commit_facts
from tidemark.changes.driver.every_change import plan_pages, state_at
from tidemark.changes.driver.rows import read_changed_images
from tidemark.changes.planning import source_schema
from tidemark.errors import (
    IncompatibleSchemaChange,
    LogIncomplete,
    NotADeltaTable,
    RowTrackingDisabled,
    SourceRecreated,
    TableNotFound,
    TrackingInterrupted,
    UnsupportedTableFeature,
    VersionNotFound,
    VersionVacuumed,
    WatchedTableChanged,
)
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.table_log import Metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["SourceCommit", "TableHistory", "open_history", "read_modifications"]

ROWS_PER_PAGE = 50_000_000  # a page is a plan of its own, and all pages are one query
_REWATCH = (
    "Nothing of the batch was captured, and each capture tries the same batch again. Altering the change stream "
    "discards the batch, and the next capture takes the changes of the other tables. Remove the table from the watch "
    "list: ALTER CHANGE STREAM … SET FOR … without it. If a stream of FOR ALL lost the table, SET FOR ALL again. If a "
    "table exists at the path, you can watch it from its newest version on: restart=[<the table>]."
)
_CHANGES = (
    TableNotFound,
    NotADeltaTable,
    RowTrackingDisabled,
    UnsupportedTableFeature,
    IncompatibleSchemaChange,
    LogIncomplete,
    VersionVacuumed,
    VersionNotFound,
    SourceRecreated,
    TrackingInterrupted,
)


@dataclass(frozen=True)
class SourceCommit:
    """When a commit was made, by its table's log, and what its writer said."""

    raw: datetime
    facts: CommitFacts


@dataclass(frozen=True)
class TableHistory:
    """The commits of a table range; `pieces`: (start, end] ranges that it is made of, each with one schema."""

    range: TableRange
    log: DeltaLog
    commits: Mapping[int, SourceCommit] = field(repr=False)
    pieces: tuple[tuple[int, int], ...]


def open_history(stream: ChangeStream, taken: TableRange, options: Mapping[str, str] | None = None) -> TableHistory:
    """The commits of the range; nothing of their files is read yet. Raises WatchedTableChanged."""
    watched = taken.watched
    with _changed_is_said(stream, taken):
        log = DeltaLog.open(watched.table.path, options)
        before = state_at(log, taken.start)
        if before.table_id != watched.table.table_id:
            raise _changed(stream, taken, f"the table at {log.uri} is another one now, with the id {before.table_id}")
        commits: dict[int, SourceCommit] = {}
        metadata, cuts = before.metadata, [taken.start]
        for commit in log.commits(taken.start, taken.end, listed=True):
            commits[commit.version] = SourceCommit(commit.timestamp, commit_facts(commit.user_metadata))
            if commit.metadata is None:
                continue
            if commit.metadata.schema_json != metadata.schema_json and commit.version - 1 > cuts[-1]:
                cuts.append(commit.version - 1)
            metadata = commit.metadata
        ends = [*cuts[1:], taken.end]
        return TableHistory(taken, log, commits, tuple(zip(cuts, ends, strict=True)))


def read_modifications(
    spark: SparkSession,
    stream: ChangeStream,
    history: TableHistory,
    workspace: Workspace,
    say: Callable[[str], None] | None = None,
) -> Iterator[tuple[int, Shape, DataFrame]]:
    """The modifications of the range: (rows to read, their shape, `modifications`) of each page that reads anything.

    Each commit is shown under the schema that it left. Raises WatchedTableChanged.
    """
    watched = history.range.watched
    for start, end in history.pieces:
        with _changed_is_said(stream, history.range):
            metadata = history.log.state(end).metadata
            _require_columns(stream, history.range, metadata, start + 1)
            for plan in plan_pages(history.log, start, end, rows_per_page=ROWS_PER_PAGE, reader=stream.name):
                if say is not None:
                    say(f"{watched.table.name}, {plan.in_words()}")
                if plan.empty:
                    continue
                shape = shape_of(struct_type(metadata.schema_json), watched)
                images = read_changed_images(spark, history.log, plan, workspace)
                yield plan.rows(), shape, modifications(images, shape, stream.options)


def _require_columns(stream: ChangeStream, taken: TableRange, metadata: Metadata, version: int) -> None:
    """The key columns and the columns that are watched by name must exist."""
    names = {known.name.lower() for known in source_schema.fields(metadata)}
    watched = taken.watched
    for what, columns in (("key column", watched.keys), ("watched column", watched.columns or ())):
        missing = next((column for column in columns if column.lower() not in names), None)
        if missing is not None:
            problem = f"its {what} {missing} is gone"
            raise _changed(stream, taken, problem, version)


@contextmanager
def _changed_is_said(stream: ChangeStream, taken: TableRange) -> Iterator[None]:
    """Report every error that makes a table unreadable from here on as one of the change stream that watches it."""
    try:
        yield
    except _CHANGES as error:
        raise _changed(stream, taken, str(error)) from error


def _changed(stream: ChangeStream, taken: TableRange, problem: str, version: int | None = None) -> WatchedTableChanged:
    return WatchedTableChanged(
        stream=stream.name,
        table=taken.watched.table.name,
        version=taken.start + 1 if version is None else version,
        problem=problem,
        remedy=_REWATCH,
    )
