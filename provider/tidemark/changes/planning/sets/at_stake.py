"""The files that a stream's next window needs and that its commits have removed, so that VACUUM may delete them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidemark.changes.planning.removals import Removal, removals
from tidemark.changes.planning.sets.folds import Fold, choose, fold_births, fold_commit, fold_states
from tidemark.changes.planning.sets.forms import REMOVED, Form
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import Commit, DeletionVector, TableState

__all__ = ["AtStake", "Way", "files_at_stake"]

Removed = Mapping[tuple[str, str | None], Removal]


@dataclass(frozen=True)
class AtStake:
    """A removed file, or its deletion vector alone if the file is live under another one. The changes of `version` need
    it.
    """

    version: int
    path: str | None
    vector: DeletionVector | None
    removal: Removal


@dataclass(frozen=True)
class Way:
    """One way to read a part of the window: the removed files that it needs, and Delta's change files, if it does."""

    files: tuple[AtStake, ...]
    change_files: tuple[str, ...] = ()


def files_at_stake(
    mode: StreamMode,
    before: TableState,
    commits: Sequence[Commit],
    *,
    by_key: bool,
    initial_rows: bool,
    rows_at_start: bool = False,
) -> Iterator[tuple[Way, ...]]:
    """The ways to read each part of the window over `commits`, which follow the state `before`. A part is lost if all
    its ways are.

    The ways are those of the driver. A file that the window both adds and removes is needed only if a way reads it.
    `rows_at_start`: a view also reads the whole table as it was before the changes.
    """
    removed = {(one.path, one.vector.unique_id if one.vector else None): one for one in removals(commits)}
    added = {new.key: commit.version for commit in reversed(commits) for new in commit.adds}
    mark = before.row_id_high_water_mark
    if mode is StreamMode.EVERY_CHANGE and not initial_rows:
        yield from _each(before, commits, removed)
    elif initial_rows or by_key:
        fold = fold_states(commits, before.metadata, mark, row_ids=not by_key)
        yield (Way(tuple(_needed(fold, removed, added, only_old=initial_rows))),)
    elif mode is StreamMode.APPEND_ONLY:
        yield (_way(fold_births(commits, before.metadata, mark), removed, added),)
    else:
        folds = [choose(commits, before.metadata, mark, feed=feed) for feed in (False, True)]
        yield _ways(folds, removed, added)
    if rows_at_start and not initial_rows:
        yield (Way(tuple(_live_before(commits, removed))),)


def _live_before(commits: Sequence[Commit], removed: Removed) -> Iterator[AtStake]:
    """The files that were live before the commits: the first commit with such a file removes it."""
    added: set[tuple[str, str | None]] = set()
    live: set[tuple[str, str | None]] = set()
    for commit in commits:
        live.update(gone.key for gone in commit.removes if gone.key not in added)
        if commit.removes or any(new.data_change for new in commit.adds):  # else new stats for live files
            added.update(new.key for new in commit.adds if new.key not in live)
    for key, removal in removed.items():
        if key in live:
            yield AtStake(commits[0].version, removal.path if removal.whole else None, removal.vector, removal)


def _each(before: TableState, commits: Iterable[Commit], removed: Removed) -> Iterator[tuple[Way, ...]]:
    state = before
    for commit in commits:
        mark = state.row_id_high_water_mark
        folds = [fold_commit(commit, state.metadata, mark, feed=feed) for feed in (False, True)]
        ways = _ways(folds, removed, {})
        yield tuple(replace(way, files=tuple(replace(f, version=commit.version) for f in way.files)) for way in ways)
        state = replace(
            state,
            metadata=commit.metadata or state.metadata,
            row_id_high_water_mark=mark if commit.row_id_high_water_mark is None else commit.row_id_high_water_mark,
        )


def _ways(folds: Sequence[Fold], removed: Removed, added: Mapping[tuple[str, str | None], int]) -> tuple[Way, ...]:
    """The way without change files, and the way with them if any would be read."""
    return tuple(_way(fold, removed, added) for number, fold in enumerate(folds) if number == 0 or fold.feed)


def _way(fold: Fold, removed: Removed, added: Mapping[tuple[str, str | None], int]) -> Way:
    return Way(tuple(_needed(fold, removed, added)), tuple(file.path for file in fold.feed))


def _needed(
    fold: Fold, removed: Removed, added: Mapping[tuple[str, str | None], int], *, only_old: bool = False
) -> Iterator[AtStake]:
    counted = [(form, count) for change in fold.changes for form, count in change.forms]
    for form, count in (*counted, *((form, 1) for form in fold.births)):
        removal = removed.get((form.path, form.deletion_vector.unique_id if form.deletion_vector else None))
        if removal is None or (only_old and count > 0):
            continue
        version = removal.version if count <= REMOVED else added.get(_form_key(form), removal.version)
        yield AtStake(version, form.path if removal.whole else None, form.deletion_vector, removal)


def _form_key(form: Form) -> tuple[str, str | None]:
    return form.path, form.deletion_vector.unique_id if form.deletion_vector else None
