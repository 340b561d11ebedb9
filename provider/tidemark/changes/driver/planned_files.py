"""The entries of log-only tables for a fold: one for each file and side, with the rows that count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from tidemark.changes.driver.files import counted_rows, only_these, physical_rows_of, positions_of
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.folds import Fold
from tidemark.changes.planning.sets.forms import FeedFile, Form, PathChange, physical_rows
from tidemark.changes.planning.sets.plan import Origin, PlannedFile
from tidemark.errors import FileNotDescribed, IncompatibleSchemaChange, VersionVacuumed
from tidemark.lake.deletion_vectors import movable
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.model.foreign_json import foreign_object
from tidemark.model.table_log import DeletionVector, Metadata, UnstoredVector

__all__ = ["FEED_ROW_IDS_FROM", "planned_files"]

FEED_ROW_IDS_FROM = 1 << 62  # the row id of a change without one: no table reaches it


def planned_files(
    log: DeltaLog, fold: Fold, after: Metadata, start: int, end: int, *, version: int = 0, row_ids: bool = True
) -> Iterator[PlannedFile]:
    """The files of `fold` under the metadata `after`; all belong to the commit `version`, if one is given. Without
    `row_ids` the ids of rows are not read, and the table may have none.

    Raises VersionVacuumed if a deletion vector is gone, IncompatibleSchemaChange (R103), FileNotDescribed, CorruptLog.
    """
    files = _Files(log, after, start, end, version, row_ids)
    try:
        for change in fold.changes:
            yield from files.of_path(change)
        for form in fold.births:
            yield from files.of_form(form, Origin.BORN, 1)
        for file in fold.feed:
            yield files.of_feed(file)
    except FileNotFoundError as error:
        first = error.filename or str(error)
        raise VersionVacuumed(table=log.uri, start=start, end=end, count=1, first=first) from error


class _Files:
    """The planned files of each path, for one window of one table."""

    def __init__(self, log: DeltaLog, after: Metadata, start: int, end: int, version: int, row_ids: bool) -> None:
        self.log, self.after, self.start, self.end, self.version = log, after, start, end, version
        self.row_ids = row_ids

    def of_path(self, change: PathChange) -> Iterator[PlannedFile]:
        """The files of a path. If forms differ by deletion vectors, only rows with unequal counts are in them."""
        if len(change.forms) == 1:
            ((form, count),) = change.forms
            added = Origin.BORN if change.all_born else Origin.ADDED
            yield from self.of_form(form, added if count > 0 else Origin.REMOVED, abs(count))
            return
        described = next((form for form, _ in change.forms if form.stats), change.forms[0][0])
        vectors = [(positions_of(self.log, form.deletion_vector), count) for form, count in change.forms]
        named = max((positions.max() + 1 for positions, _ in vectors if positions), default=0)
        physical = physical_rows_of(self.log, described, named=named)
        described = _with_stats_of(described, physical)
        for count, rows in counted_rows(vectors, physical):
            origin = Origin.ADDED if count > 0 else Origin.REMOVED
            for _ in range(abs(count)):
                yield self._file(described, origin, len(rows), only_these(rows, physical))

    def of_form(self, form: Form, origin: Origin, times: int) -> Iterator[PlannedFile]:
        vector = movable(form.deletion_vector, self.log.uri) if form.deletion_vector else None
        rows = form.rows
        if rows is None:
            rows = physical_rows_of(self.log, form, live=True)
            form = _with_stats_of(form, rows + form.deleted)
        for _ in range(times):
            yield self._file(form, origin, rows, vector)

    def of_feed(self, file: FeedFile) -> PlannedFile:
        columns = self._partition_columns(file.metadata)
        return PlannedFile(
            origin=Origin.CHANGES,
            path=file_uri(self.log.uri, file.path),
            size=file.size,
            rows=file.rows,
            partition_columns=columns,
            partition_values=source_schema.partition_values(file.partition_values, columns),
            stats=None,
            deletion_vector=None,
            base_row_id=FEED_ROW_IDS_FROM,
            default_row_commit_version=file.version,
            version=self.version,
        )

    def _file(
        self, form: Form, origin: Origin, rows: int, vector: DeletionVector | UnstoredVector | None
    ) -> PlannedFile:
        columns = self._partition_columns(form.metadata)
        base_row_id, commit = (form.base_row_id, form.default_row_commit_version) if self.row_ids else (0, 0)
        if form.size is None or base_row_id is None or commit is None:
            raise self._not_described(form, "its size and its row ids" if self.row_ids else "its size")
        if columns and form.partition_values is None:
            raise self._not_described(form, "which partition it belongs to")
        return PlannedFile(
            origin=origin,
            path=file_uri(self.log.uri, form.path),
            size=form.size,
            rows=rows,
            partition_columns=columns,
            partition_values=source_schema.partition_values(form.partition_values or {}, columns),
            stats=_loose(form.stats) if vector else form.stats,
            deletion_vector=vector,
            base_row_id=base_row_id,
            default_row_commit_version=commit,
            version=self.version,
        )

    def _not_described(self, form: Form, what: str) -> FileNotDescribed:
        return FileNotDescribed(start=self.start, end=self.end, table=self.log.uri, file=form.path, what=what)

    def _partition_columns(self, metadata: Metadata) -> tuple[str, ...]:
        problem = source_schema.first_difference(metadata, self.after)
        if problem:
            raise IncompatibleSchemaChange(start=self.start, end=self.end, table=self.log.uri, problem=problem)
        return source_schema.partition_columns(metadata, self.after)


def _with_stats_of(form: Form, physical: int) -> Form:
    """The form without stats that have another row count than the file: Delta would trust them."""
    return form if physical_rows(form.stats) in (None, physical) else replace(form, stats=None)


def _loose(stats: str | None) -> str | None:
    """The stats with loose bounds: the live rows under a deletion vector may not reach the file's bounds."""
    return json.dumps({**foreign_object(stats), "tightBounds": False}) if stats else None
