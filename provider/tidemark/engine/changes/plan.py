"""From a window to the files that hold its changes; reads the log, deletion vectors and now and then a footer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from tidemark.engine.changes.files import difference, only_these, physical_rows_of
from tidemark.errors import CorruptLog, IncompatibleSchemaChange, SourceRecreated, TrackingInterrupted, VersionVacuumed
from tidemark.lake.deletion_vectors import absolute
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import Commit, DeletionVector, Metadata, TableState
from tidemark.planning import source_schema
from tidemark.planning.change_sets import (
    ADDED,
    REMOVED,
    ChangePlan,
    Fold,
    Form,
    PathChange,
    PlannedFile,
    choose,
    choose_netting,
    fold_births,
)
from tidemark.planning.source_support import require_own_files, require_readable

__all__ = ["plan_changes"]


def plan_changes(log: DeltaLog, start: int, end: int, mode: StreamMode, *, reader: str = "CHANGES") -> ChangePlan:
    """What to read for the changes in (start, end]; nothing of the table's data is read yet.

    `reader` is the stream's name, for errors. Raises RowTrackingDisabled or UnsupportedTableFeature as
    `require_readable` does, TrackingInterrupted (R85), SourceRecreated (R82), IncompatibleSchemaChange (R103), and
    LogIncomplete or VersionNotFound where the log does not reach; VersionVacuumed if a deletion vector is gone.
    """
    before = log.state(start)
    commits = tuple(log.commits(start, end)) if end > start else ()
    _require_one_readable_table(log, before, commits, reader)
    after = _last_metadata(before.metadata, commits)
    fold = _fold(mode, commits, before)
    if not fold.sound:
        raise CorruptLog(file=log.uri, problem=f"a file is added or removed twice between {start} and {end}")
    require_own_files((change.path for change in fold.changes), log.uri)
    files = _planned_files(fold, _Files(log, after, start, end))
    rows = {side: sum(file.rows for file in files if file.side == side) for side in (REMOVED, ADDED)}
    return ChangePlan(
        table_uri=log.uri,
        table_id=before.table_id,
        start=start,
        end=end,
        mode=mode,
        candidate=fold.candidate,
        netting=choose_netting(mode, rows[REMOVED], rows[ADDED]),
        metadata=after,
        first_new_row_id=_first_new_row_id(before),
        files=files,
    )


def _fold(mode: StreamMode, commits: Sequence[Commit], before: TableState) -> Fold:
    fold = choose if mode is StreamMode.STANDARD else fold_births
    return fold(commits, before.metadata, before.row_id_high_water_mark)


def _planned_files(fold: Fold, files: _Files) -> tuple[PlannedFile, ...]:
    try:
        return tuple(file for change in fold.changes for file in files.of(change))
    except FileNotFoundError as error:
        raise VersionVacuumed(
            table=files.log.uri, start=files.start, end=files.end, count=1, first=error.filename or str(error)
        ) from error


def _first_new_row_id(before: TableState) -> int:
    return 0 if before.row_id_high_water_mark is None else before.row_id_high_water_mark + 1


def _last_metadata(before: Metadata, commits: Iterable[Commit]) -> Metadata:
    return next((commit.metadata for commit in reversed(tuple(commits)) if commit.metadata), before)


def _require_one_readable_table(log: DeltaLog, before: TableState, commits: Iterable[Commit], reader: str) -> None:
    """The table is the same, readable and tracked in the same way all through the window."""
    name = f"delta.`{log.uri}`"
    require_readable(before, name)
    state = before
    for commit in commits:
        if commit.metadata is None and commit.protocol is None:
            continue
        state = TableState(commit.version, commit.metadata or state.metadata, commit.protocol or state.protocol, None)
        if state.table_id != before.table_id:
            raise SourceRecreated(
                stream=reader, table=name, path=log.uri, found=state.table_id, expected=before.table_id
            )
        if _tracking(state.metadata) != _tracking(before.metadata):
            problem = f"row tracking was switched at version {commit.version}"
            raise TrackingInterrupted(table=name, stream=reader, problem=problem)
        require_readable(state, name)


def _tracking(metadata: Metadata) -> tuple[str | None, ...]:
    names = (
        "delta.enableRowTracking",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    )
    return tuple(metadata.configuration.get(name) for name in names)


class _Files:
    """The planned files of each path, for one window of one table."""

    def __init__(self, log: DeltaLog, after: Metadata, start: int, end: int) -> None:
        self.log, self.after, self.start, self.end = log, after, start, end

    def of(self, change: PathChange) -> Iterable[PlannedFile]:
        """One file a side; where only the deletion vector changed, just the rows in which the forms differ."""
        old, new = change.form(REMOVED), change.form(ADDED)
        if old and new:
            gone, back = difference(self.log, old.deletion_vector, new.deletion_vector)
            physical = physical_rows_of(self.log, new if new.stats else old)
            for side, rows in ((REMOVED, gone), (ADDED, back)):
                if rows:
                    yield self._file(new, side, len(rows), only_these(rows, physical))
            return
        for side, form in ((REMOVED, old), (ADDED, new)):
            if form:
                vector = absolute(form.deletion_vector, self.log.uri) if form.deletion_vector else None
                rows_left = form.rows if form.rows is not None else physical_rows_of(self.log, form, live=True)
                yield self._file(form, side, rows_left, vector)

    def _file(self, form: Form, side: int, rows: int, vector: DeletionVector | None) -> PlannedFile:
        problem = source_schema.first_difference(form.metadata, self.after)
        if problem:
            raise IncompatibleSchemaChange(start=self.start, end=self.end, table=self.log.uri, problem=problem)
        if form.size is None or form.base_row_id is None or form.default_row_commit_version is None:
            raise CorruptLog(file=self.log.uri, problem=f"the log does not describe {form.path} fully")
        columns = source_schema.partition_columns(form.metadata, self.after)
        if columns and form.partition_values is None:
            raise CorruptLog(file=self.log.uri, problem=f"the log does not say which partition {form.path} belongs to")
        return PlannedFile(
            side=side,
            path=file_uri(self.log.uri, form.path),
            size=form.size,
            rows=rows,
            partition_columns=columns,
            partition_values=source_schema.partition_values(form.partition_values or {}, columns),
            stats=_loose(form.stats) if vector else form.stats,
            deletion_vector=vector,
            base_row_id=form.base_row_id,
            default_row_commit_version=form.default_row_commit_version,
        )


def _loose(stats: str | None) -> str | None:
    """Bounds that hold for all rows of a file need not be reached by those that a deletion vector leaves."""
    return json.dumps({**json.loads(stats), "tightBounds": False}) if stats else None
