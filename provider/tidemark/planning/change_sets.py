"""Which files hold the change set of a window, and which way to it is cheapest: decided from log actions alone.

A *form* is a file with one deletion vector. Each `add` counts +1 and each `remove` −1 for its form; what a window adds
and takes away again counts zero and is never read. The counts of a path's forms give, row by row, what it contributes
to the removed (−1) and the added (+1) side.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tidemark.model.streams import StreamMode
from tidemark.model.table_log import AddFile, Commit, DeletionVector, Metadata, RemoveFile

__all__ = [
    "ADDED",
    "REMOVED",
    "Candidate",
    "ChangePlan",
    "Fold",
    "Form",
    "Netting",
    "PathChange",
    "PlannedFile",
    "choose",
    "choose_netting",
    "fold_births",
    "fold_data_changes",
    "fold_states",
    "physical_rows",
]

REMOVED = -1
ADDED = 1

BYTES_PER_ROW = 100  # what handling a row costs, in bytes read
ROWS_FOR_ONE_AGGREGATE = 300_000  # below, images travel through one aggregate; above, keys are cancelled first
GUESSED_BYTES_PER_ROW = 50  # only for a file without stats


class Candidate(StrEnum):
    """How the files of a plan were found."""

    NOTHING = "nothing"  # no row changed: nothing is read
    STATE = "state"  # all actions: the difference of the live files
    DATA_CHANGE = "data_change"  # only actions with dataChange: rewrites are not read
    BIRTHS = "births"  # the first add of each new path (append-only)


class Netting(StrEnum):
    """How the rows of a plan become changes."""

    NOTHING = "nothing"
    ONE_SIDE = "one_side"  # every row is a change
    AGGREGATE = "aggregate"  # few rows: images through one aggregate by row id
    JOIN = "join"  # many rows: ids are cancelled first, images are joined to what is left


@dataclass(frozen=True)
class Form:
    """One file with one deletion vector, read under `metadata`, which was in force when the form was live."""

    path: str
    size: int | None
    partition_values: Mapping[str, str | None] | None
    stats: str | None
    deletion_vector: DeletionVector | None
    base_row_id: int | None
    default_row_commit_version: int | None
    metadata: Metadata

    @property
    def rows(self) -> int | None:
        """Live rows; None where the log does not say."""
        physical = physical_rows(self.stats)
        if physical is None:
            return None
        return physical - (self.deletion_vector.cardinality if self.deletion_vector else 0)


@dataclass(frozen=True)
class PathChange:
    """The forms of one path that do not cancel, with their counts."""

    path: str
    forms: tuple[tuple[Form, int], ...]

    def form(self, side: int) -> Form | None:
        """The form that stands on a side."""
        return next((form for form, count in self.forms if count == side), None)


@dataclass(frozen=True)
class Fold:
    """The paths that a candidate reads; not `sound` where a row could count twice, so that it may not be used."""

    candidate: Candidate
    changes: tuple[PathChange, ...]
    sound: bool = True

    @property
    def rows(self) -> int:
        """Rows on both sides: exact where stats are there and no deletion vector grew and shrank."""
        return sum(_rows(change) for change in self.changes)

    @property
    def bytes(self) -> int:
        """Bytes of the files, each once."""
        return sum(change.forms[0][0].size or 0 for change in self.changes)

    @property
    def cost(self) -> int:
        """Bytes, and rows weighed in bytes."""
        return self.bytes + BYTES_PER_ROW * self.rows


@dataclass(frozen=True)
class PlannedFile:
    """One `add` of a log-only table: rows of `path` outside `deletion_vector` belong to `side`.

    `path` is the absolute, percent-encoded URI; the deletion vector is inline or absolute. `partition_columns` are
    those that the file was written under, as far as the plan's schema has them, and as physical names.
    """

    side: int
    path: str
    size: int
    rows: int
    partition_columns: tuple[str, ...]
    partition_values: Mapping[str, str | None]
    stats: str | None
    deletion_vector: DeletionVector | None
    base_row_id: int
    default_row_commit_version: int
    modification_time: int = 0


@dataclass(frozen=True)
class ChangePlan:
    """All that is read for the changes in (start, end] of one table, and how it becomes a change set.

    `metadata` is that of version `end`: its schema is what the changes show (R100). `first_new_row_id` is the lowest id
    that a row inserted after `start` can have.
    """

    table_uri: str
    table_id: str
    start: int
    end: int
    mode: StreamMode
    candidate: Candidate
    netting: Netting
    metadata: Metadata
    first_new_row_id: int
    files: tuple[PlannedFile, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return not self.files

    def rows(self, side: int) -> int:
        """Rows to be read on a side."""
        return sum(file.rows for file in self.files if file.side == side)

    def bytes(self, side: int) -> int:
        """Bytes of the files of a side; a file of both sides counts on both."""
        return sum(file.size for file in self.files if file.side == side)

    def explain(self) -> dict[str, Any]:
        """The plan in numbers, for a dry run: candidate, netting, and files, rows, bytes of each side."""
        sides = {"removed": REMOVED, "added": ADDED}
        return {
            "from_version": self.start,
            "to_version": self.end,
            "mode": self.mode.value,
            "candidate": self.candidate.value,
            "netting": self.netting.value,
            **{
                name: {
                    "files": sum(1 for file in self.files if file.side == side),
                    "rows": self.rows(side),
                    "bytes": self.bytes(side),
                }
                for name, side in sides.items()
            },
        }


def physical_rows(stats: str | None) -> int | None:
    """Rows of a file, deleted ones included (`numRecords`); None where the stats do not say."""
    rows = json.loads(stats).get("numRecords") if stats else None
    return int(rows) if rows is not None else None


def fold_states(commits: Iterable[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """The state fold: live files of the end against those of the start.

    `before` is the metadata at the start, `high_water_mark` the highest row id given out until then. An `add` without
    dataChange of a file that is live already (new stats for it) changes nothing.
    """
    counts = _Counts(high_water_mark)
    for commit, metadata in _with_metadata(commits, before):
        counts.take(commit, *metadata, wanted=lambda action: True)
    return counts.fold(Candidate.STATE)


def fold_data_changes(commits: Iterable[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """The dataChange fold: rewrites that change no row are not read. A row can stand several times on a side, with
    different commit versions, so the rows must be cancelled as signed multisets before they are paired.
    """
    counts = _Counts(high_water_mark)
    for commit, metadata in _with_metadata(commits, before):
        counts.take(commit, *metadata, wanted=lambda action: action.data_change)
    return counts.fold(Candidate.DATA_CHANGE)


def fold_births(commits: Iterable[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """Where rows were born (R60): the first `add` of each path whose own row ids lie above the high-water mark.

    A path with lower ids was in the table before the window. Of a file's rows only those with ids of its own range were
    born in it; that is for the reader to filter.
    """
    seen: set[str] = set()
    changes: list[PathChange] = []
    for commit, (_, metadata) in _with_metadata(commits, before):
        for action in commit.adds:
            if action.path in seen:
                continue
            seen.add(action.path)
            if action.data_change and not _known(action, high_water_mark):
                changes.append(PathChange(action.path, ((_form(action, metadata), ADDED),)))
    return Fold(Candidate.BIRTHS, tuple(changes))


def choose(commits: Sequence[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """The cheapest sound fold for a standard change set."""
    states = fold_states(commits, before, high_water_mark)
    if not _rewrites(commits):
        return states
    data_changes = fold_data_changes(commits, before, high_water_mark)
    sound = [fold for fold in (states, data_changes) if fold.sound]
    return min(sound, key=lambda fold: fold.cost, default=states)


def choose_netting(mode: StreamMode, removed: int, added: int) -> Netting:
    """How to net, given the exact rows on each side."""
    if not removed and not added:
        return Netting.NOTHING
    if mode is not StreamMode.STANDARD or not removed or not added:
        return Netting.ONE_SIDE
    return Netting.AGGREGATE if removed + added <= ROWS_FOR_ONE_AGGREGATE else Netting.JOIN


class _Counts:
    """Signed counts of forms by (path, deletion vector id), in order of first appearance."""

    def __init__(self, high_water_mark: int | None) -> None:
        self.high_water_mark = high_water_mark
        self.counts: dict[tuple[str, str | None], int] = {}
        self.forms: dict[tuple[str, str | None], Form] = {}
        self.live: dict[tuple[str, str | None], bool] = {}
        self.described: dict[str, Form] = {}

    def take(
        self, commit: Commit, before: Metadata, after: Metadata, wanted: Callable[[AddFile | RemoveFile], bool]
    ) -> None:
        removed = {action.path for action in commit.removes}
        for gone in filter(wanted, commit.removes):
            self._count(gone, REMOVED, before)
        for new in filter(wanted, commit.adds):
            if new.path in removed or not self._live_already(new):
                self._count(new, ADDED, after)

    def _live_already(self, action: AddFile) -> bool:
        """Said again, not added: no row may change, yet nothing was removed for it."""
        if action.data_change:
            return False
        return self.live.get(action.key, _known(action, self.high_water_mark))

    def _count(self, action: AddFile | RemoveFile, sign: int, metadata: Metadata) -> None:
        form = _form(action, metadata)
        if isinstance(action, AddFile):
            self.described[action.path] = form
        self.counts[action.key] = self.counts.get(action.key, 0) + sign
        self.forms[action.key] = form
        self.live[action.key] = sign == ADDED

    def fold(self, candidate: Candidate) -> Fold:
        paths: dict[str, list[tuple[Form, int]]] = defaultdict(list)
        for key, count in self.counts.items():
            if count:
                paths[key[0]].append((self._complete(self.forms[key]), count))
        changes = tuple(PathChange(path, tuple(forms)) for path, forms in paths.items())
        return Fold(candidate if changes else Candidate.NOTHING, changes, all(map(_once_a_side, changes)))

    def _complete(self, form: Form) -> Form:
        """A `remove` may leave out what the `add` of the same path has said."""
        known = self.described.get(form.path)
        if known is None:
            return form
        return replace(
            form,
            size=form.size if form.size is not None else known.size,
            stats=form.stats or known.stats,
            partition_values=form.partition_values if form.partition_values is not None else known.partition_values,
            base_row_id=form.base_row_id if form.base_row_id is not None else known.base_row_id,
            default_row_commit_version=form.default_row_commit_version
            if form.default_row_commit_version is not None
            else known.default_row_commit_version,
        )


def _form(action: AddFile | RemoveFile, metadata: Metadata) -> Form:
    return Form(
        path=action.path,
        size=action.size,
        partition_values=action.partition_values,
        stats=action.stats,
        deletion_vector=action.deletion_vector,
        base_row_id=action.base_row_id,
        default_row_commit_version=action.default_row_commit_version,
        metadata=metadata,
    )


def _once_a_side(change: PathChange) -> bool:
    counts = sorted(count for _, count in change.forms)
    return counts in ([REMOVED], [ADDED], [REMOVED, ADDED])


def _known(action: AddFile, high_water_mark: int | None) -> bool:
    """Whether the file was in the table at some time before the window: its own ids were given out then."""
    return action.base_row_id is not None and action.base_row_id <= (-1 if high_water_mark is None else high_water_mark)


def _with_metadata(commits: Iterable[Commit], before: Metadata) -> Iterable[tuple[Commit, tuple[Metadata, Metadata]]]:
    current = before
    for commit in commits:
        after = commit.metadata or current
        yield commit, (current, after)
        current = after


def _rewrites(commits: Iterable[Commit]) -> bool:
    return any(
        not all(action.data_change for action in commit.adds)
        or not all(action.data_change for action in commit.removes)
        for commit in commits
    )


def _rows(change: PathChange) -> int:
    vectors = [form.deletion_vector.cardinality if form.deletion_vector else 0 for form, _ in change.forms]
    if len(change.forms) > 1:
        return max(vectors) - min(vectors)
    form = change.forms[0][0]
    return form.rows if form.rows is not None else (form.size or 0) // GUESSED_BYTES_PER_ROW
