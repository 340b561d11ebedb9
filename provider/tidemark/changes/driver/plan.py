"""The files that have the changes of a window, from the log, deletion vectors and sometimes a footer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidemark.changes.driver.feed_files import why_unusable
from tidemark.changes.driver.planned_files import planned_files
from tidemark.changes.planning.sets.few import has_few_rows
from tidemark.changes.planning.sets.folds import Fold, brings_rows_back, choose, fold_births, fold_states
from tidemark.changes.planning.sets.plan import ChangePlan, Netting, PlannedFile, choose_netting
from tidemark.changes.planning.sets.renumbered import first_change_after_renumbering
from tidemark.changes.planning.source_keys import require_same_keys
from tidemark.changes.planning.source_support import require_readable, row_tracking
from tidemark.errors import CorruptLog, RowsRenumbered, SourceRecreated, TrackingInterrupted
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import Commit, Metadata, TableState

__all__ = ["last_metadata", "plan_changes", "require_one_readable_table"]


def plan_changes(
    log: DeltaLog,
    start: int,
    end: int,
    mode: StreamMode,
    *,
    reader: str = "CHANGES",
    keys: tuple[str, ...] = (),
    table_id: str | None = None,
) -> ChangePlan:
    """The plan for the changes in (start, end]. It reads no data of the table yet.

    With `keys` (standard mode only) these columns identify rows. Row tracking may be off, and may be switched within
    the window. The plan then has the difference of live files, and every row of it is compared by content. So the
    window of a re-based stream may begin in a table that `table_id` has replaced.

    `reader` is the stream's name, for errors. Raises RowTrackingDisabled or UnsupportedTableFeature as
    `require_readable` does, TrackingInterrupted (R85), SourceRecreated (R82), IncompatibleSchemaChange (R103). Raises
    LogIncomplete or VersionNotFound if the log does not reach, and VersionVacuumed if a deletion vector is gone. With
    `keys`, KeyColumnChanged; else in standard mode RowsRenumbered.
    """
    before = log.state(start)
    commits = tuple(log.commits(start, end)) if end > start else ()
    require_one_readable_table(log, before, commits, reader, row_ids=not keys, successor=table_id if keys else None)
    after = last_metadata(before.metadata, commits)
    if keys:
        require_same_keys(before.metadata, after, keys, stream=reader, table=_name(log), start=start, end=end)
    fold, feed_unused = (_fold_by_key(commits, before), None) if keys else _fold(log, mode, commits, before)
    if not fold.sound:
        raise CorruptLog(file=log.uri, problem=f"a file is added or removed twice between {start} and {end}")
    files = tuple(planned_files(log, fold, after, start, end, row_ids=not keys))
    back = brings_rows_back(commits, before.row_id_high_water_mark)
    plan = ChangePlan(
        table_uri=log.uri,
        table_id=after.table_id,
        start=start,
        end=end,
        mode=mode,
        candidate=fold.candidate,
        netting=_netting_by_key(files) if keys else choose_netting(fold.candidate, files, brings_back=back),
        metadata=after,
        files=files,
        weighed=fold.weighed,
        feed_unused=feed_unused,
        keys=keys,
        reader=reader,
    )
    return replace(plan, in_driver=has_few_rows(plan))


def last_metadata(before: Metadata, commits: Iterable[Commit]) -> Metadata:
    """The metadata after `commits`. The last commit that sets it counts."""
    return next((commit.metadata for commit in reversed(tuple(commits)) if commit.metadata), before)


def require_one_readable_table(
    log: DeltaLog,
    before: TableState,
    commits: Iterable[Commit],
    reader: str,
    *,
    row_ids: bool = True,
    successor: str | None = None,
) -> None:
    """Nothing, if all `commits` are of the same readable table, or of `successor` from one of them on. With `row_ids`,
    row tracking must not be switched.

    Raises SourceRecreated, TrackingInterrupted, and errors of `require_readable`.
    """
    name = _name(log)
    require_readable(before, name, row_ids=row_ids)
    state = before
    for commit in commits:
        if commit.metadata is None and commit.protocol is None:
            continue
        state = TableState(commit.version, commit.metadata or state.metadata, commit.protocol or state.protocol, None)
        if state.table_id not in (before.table_id, successor):
            raise SourceRecreated(
                stream=reader, table=name, path=log.uri, found=state.table_id, expected=before.table_id
            )
        if row_ids and row_tracking(state.metadata) != row_tracking(before.metadata):
            problem = f"row tracking was switched at version {commit.version}"
            raise TrackingInterrupted(table=name, stream=reader, problem=problem)
        require_readable(state, name, row_ids=row_ids)


def _fold(log: DeltaLog, mode: StreamMode, commits: Sequence[Commit], before: TableState) -> tuple[Fold, str | None]:
    """The fold, and the reason why better change files were not used."""
    mark = before.row_id_high_water_mark
    if mode is not StreamMode.STANDARD:
        return fold_births(commits, before.metadata, mark), None
    _require_same_ids(log, commits, before)
    best = choose(commits, before.metadata, mark, feed=True)
    problem = why_unusable(log, best.feed, last_metadata(before.metadata, commits)) if best.feed else None
    return (choose(commits, before.metadata, mark, feed=False) if problem else best), problem


def _require_same_ids(log: DeltaLog, commits: Sequence[Commit], before: TableState) -> None:
    again = first_change_after_renumbering(commits)
    if again is not None:
        start, last = before.version, again - 1
        raise RowsRenumbered(
            table=_name(log), start=start, end=commits[-1].version, version=again, last=last, commits=last - start
        )


def _fold_by_key(commits: Sequence[Commit], before: TableState) -> Fold:
    """The difference of live files. Without row ids it does not matter whether the window inserted a row."""
    states = fold_states(commits, before.metadata, before.row_id_high_water_mark, row_ids=False)
    return replace(states, changes=tuple(replace(change, all_born=False) for change in states.changes))


def _netting_by_key(files: Sequence[PlannedFile]) -> Netting:
    """The netting by one aggregate of all rows. Only it finds repeated keys, and each pair must be compared."""
    return Netting.AGGREGATE if files else Netting.NOTHING


def _name(log: DeltaLog) -> str:
    return f"delta.`{log.uri}`"
