"""The files that have the changes of a window, from its actions.

A *form* is a file with one deletion vector. Each `add` counts +1 and each `remove` −1 for its form. A form that a
window adds and removes again counts zero, and is never read. The counts of a path's forms give, row by row, its part of
the removed (−1) and the added (+1) side. Every commit that changed rows must count once, by its file actions or by its
change files. Then the sum is the change from the first to the last state, with or without commits that only move rows.
Equal (row id, row commit version) cancel as signed multisets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidemark.changes.planning.sets.forms import (
    ADDED,
    GUESSED_BYTES_PER_ROW,
    REMOVED,
    FeedFile,
    Form,
    PathChange,
    form_of,
    is_known,
)
from tidemark.changes.planning.sets.plan import Candidate
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import AddFile, Commit, Metadata, RemoveFile

__all__ = [
    "KEEPS_ROW_IDS",
    "ONLY_DELETES_MORE",
    "Fold",
    "brings_rows_back",
    "choose",
    "fold_births",
    "fold_commit",
    "fold_data_changes",
    "fold_feed",
    "fold_states",
    "may_number_anew",
]

BYTES_PER_ROW = 100  # the cost of a row, in bytes read
_NEVER_INSERTS = {"UPDATE": None, "DELETE": None, "MERGE": "numTargetRowsInserted"}  # operation → metric that must be 0
ONLY_DELETES_MORE = frozenset({"UPDATE", "DELETE", "MERGE"})  # their effect on a live file's deletion vector
KEEPS_ROW_IDS = ("OPTIMIZE", "REORG", "REMOVE COLUMN MAPPING", "DROP FEATURE", "CLUSTER")  # beginnings of their names


@dataclass(frozen=True)
class Fold:
    """The files that a candidate reads: forms of paths, files with inserted rows (`births`), and change files (`feed`).

    It is not `sound` if the log contradicts itself: a file is added or removed twice. That is known for STATE only,
    which counts all actions. `weighed`: the cost of each candidate, if several exist.
    """

    candidate: Candidate
    changes: tuple[PathChange, ...] = ()
    births: tuple[Form, ...] = ()
    feed: tuple[FeedFile, ...] = ()
    sound: bool = True
    weighed: Mapping[Candidate, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows on both sides."""
        born = sum(form.likely_rows for form in self.births)
        return sum(change.rows for change in self.changes) + born + sum(file.rows for file in self.feed)

    @property
    def bytes(self) -> int:
        """Bytes of the files, each once."""
        born = sum(form.size or 0 for form in self.births)
        return sum(change.bytes for change in self.changes) + born + sum(file.size for file in self.feed)

    @property
    def cost(self) -> int:
        """The cost: bytes, plus rows weighed in bytes."""
        return self.bytes + BYTES_PER_ROW * self.rows


def choose(commits: Sequence[Commit], before: Metadata, high_water_mark: int | None, *, feed: bool) -> Fold:
    """The cheapest fold for a standard change set. Change files are considered only if `feed`.

    A rewrite with dataChange=false is never read, even if it gave rows new ids. For its readers nothing has changed, in
    any window. If rows live under such ids, states cannot be compared. If a rewrite gave such ids and none of them
    lives, as after a RESTORE, only states can be. The commits between count rows under both ids.
    """
    states = fold_states(commits, before, high_water_mark)
    renumbered = any(may_number_anew(commit) for commit in commits)
    if not states.sound or (renumbered and not _live_renumbered(commits, high_water_mark)):
        return states
    folds = [] if renumbered else [states]
    if any(_moves_rows(commit) for commit in commits):
        folds.append(fold_data_changes(commits, before, high_water_mark))
    if feed and any(commit.change_files for commit in commits):
        folds.append(fold_feed(commits, before, high_water_mark))
    weighed = {fold.candidate: fold.cost for fold in folds}
    return replace(min(folds, key=lambda fold: fold.cost), weighed=weighed)


def fold_states(
    commits: Iterable[Commit], before: Metadata, high_water_mark: int | None, *, row_ids: bool = True
) -> Fold:
    """The state fold: live files of the end against those of the start.

    `before` is the metadata at the start, `high_water_mark` the highest row id given out until then. An `add` without
    dataChange of a live file only has new stats, and changes nothing. Without `row_ids` such an `add` is known by a
    commit that removes no file, such as the one that enables row tracking.
    """
    counts = _Counts(high_water_mark, row_ids)
    for commit, metadata in _with_metadata(commits, before):
        counts.take(commit, *metadata, wanted=lambda action: True)
    return counts.fold(Candidate.STATE)


def fold_data_changes(commits: Iterable[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """The dataChange fold: rewrites that change no row are not read. A side can have a row several times, with
    different commit versions. So rows must be cancelled as signed multisets before they are paired.
    """
    counts = _Counts(high_water_mark)
    for commit, metadata in _with_metadata(commits, before):
        counts.take(commit, *metadata, wanted=lambda action: action.data_change)
    return replace(counts.fold(Candidate.DATA_CHANGE), sound=True)


def fold_feed(commits: Iterable[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """The dataChange fold with change files for commits that have them: by Delta's protocol they have all changes of
    the commit. They have row ids, except for inserted rows, which are read from the files that inserted them.
    """
    counts = _Counts(high_water_mark)
    births = _Births(high_water_mark)
    feed: list[FeedFile] = []
    born: list[Form] = []
    for commit, (earlier, later) in _with_metadata(commits, before):
        new = births.take(commit, later)
        if not commit.change_files:
            counts.take(commit, earlier, later, wanted=lambda action: action.data_change)
            continue
        feed += _feed_files(commit, later)
        if _may_insert(commit):
            born += new
    files = counts.fold(Candidate.FEED)
    return Fold(Candidate.FEED, files.changes, tuple(born), tuple(feed))


def fold_births(commits: Iterable[Commit], before: Metadata, high_water_mark: int | None) -> Fold:
    """The files that inserted rows (R60): the first `add` of each path whose own row ids are above the high-water mark.

    A path with lower ids was in the table before the window. A file has inserted only rows with ids of its own range;
    the reader must filter them.
    """
    births = _Births(high_water_mark)
    born = [form for commit, (_, metadata) in _with_metadata(commits, before) for form in births.take(commit, metadata)]
    return Fold(Candidate.BIRTHS if born else Candidate.NOTHING, births=tuple(born))


def fold_commit(commit: Commit, before: Metadata, high_water_mark: int | None, *, feed: bool) -> Fold:
    """The changes of one commit, for every change. With `feed`, its change files are used if it has any."""
    fold = fold_feed if feed else fold_data_changes
    return replace(fold((commit,), before, high_water_mark), candidate=Candidate.EACH)


def brings_rows_back(commits: Iterable[Commit], high_water_mark: int | None) -> bool:
    """Whether rows from before the window may have been restored unchanged (RESTORE). Then a file with ids of that time
    is added, or loses deletions. It is False only if the log excludes it.
    """
    for commit in commits:
        removed = {action.path for action in commit.removes}
        for action in commit.adds:
            deletes_more = action.path in removed and commit.operation in ONLY_DELETES_MORE
            if action.data_change and is_known(action, high_water_mark) and not deletes_more:
                return True
    return False


class _Births:
    """The files that inserted rows: each path once, at its first `add` (`take` commits in order)."""

    def __init__(self, high_water_mark: int | None) -> None:
        self.high_water_mark = high_water_mark
        self.seen: set[str] = set()

    def take(self, commit: Commit, metadata: Metadata) -> list[Form]:
        new = [action for action in commit.adds if action.path not in self.seen]
        self.seen.update(action.path for action in new)
        return [
            form_of(action, metadata)
            for action in new
            if action.data_change and not is_known(action, self.high_water_mark)
        ]


class _Counts:
    """Signed counts of forms by (path, deletion vector id), in order of first appearance."""

    def __init__(self, high_water_mark: int | None, row_ids: bool = True) -> None:
        self.high_water_mark, self.row_ids = high_water_mark, row_ids
        self.counts: dict[tuple[str, str | None], int] = {}
        self.forms: dict[tuple[str, str | None], Form] = {}
        self.live: dict[tuple[str, str | None], bool] = {}
        self.described: dict[str, Form] = {}
        self.all_born: set[str] = set()

    def take(
        self, commit: Commit, before: Metadata, after: Metadata, wanted: Callable[[AddFile | RemoveFile], bool]
    ) -> None:
        removed = {action.path for action in commit.removes}
        self.all_born |= {new.path for new in commit.adds if not removed and self._is_new(new)}
        for gone in filter(wanted, commit.removes):
            self._count(gone, REMOVED, before)
        for new in filter(wanted, commit.adds):
            if new.path in removed or not self._live_already(new, commit):
                self._count(new, ADDED, after)

    def _is_new(self, action: AddFile) -> bool:
        return action.data_change and action.path not in self.described and not is_known(action, self.high_water_mark)

    def _live_already(self, action: AddFile, commit: Commit) -> bool:
        """Whether an `add` only repeats a live file: no row may change, and no file was removed for it."""
        if action.data_change:
            return False
        if not self.row_ids and not commit.removes:  # rows that are not new must be of this file
            return True
        return self.live.get(action.key, is_known(action, self.high_water_mark))

    def _count(self, action: AddFile | RemoveFile, sign: int, metadata: Metadata) -> None:
        form = form_of(action, metadata)
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
        born = self.all_born if candidate is Candidate.STATE else set()  # other candidates may skip an earlier `add`
        changes = tuple(PathChange(path, tuple(forms), path in born) for path, forms in paths.items())
        return Fold(candidate if changes else Candidate.NOTHING, changes, sound=all(map(_once_a_side, changes)))

    def _complete(self, form: Form) -> Form:
        """The form with facts of the `add` of the same path, which a `remove` may omit."""
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


def _feed_files(commit: Commit, metadata: Metadata) -> Iterator[FeedFile]:
    whole = sum(file.size for file in commit.change_files)
    rows = _changed_rows(commit)
    for file in commit.change_files:
        share = file.size // GUESSED_BYTES_PER_ROW if rows is None else -(-rows * file.size // whole) if whole else 0
        yield FeedFile(file.path, file.size, share, file.partition_values, commit.version, metadata)


def _changed_rows(commit: Commit) -> int | None:
    """The number of images in the change files, if the operation's metrics have it."""
    metrics = commit.operation_metrics
    names = {
        "UPDATE": (("numUpdatedRows", 2),),
        "DELETE": (("numDeletedRows", 1),),
        "MERGE": (("numTargetRowsUpdated", 2), ("numTargetRowsDeleted", 1), ("numTargetRowsInserted", 1)),
    }.get(commit.operation or "", ())
    counts = [(whole_number(metrics.get(name)), images) for name, images in names]
    if not counts or any(count is None for count, _ in counts):
        return None
    return sum((count or 0) * images for count, images in counts)


def _may_insert(commit: Commit) -> bool:
    if commit.operation not in _NEVER_INSERTS:
        return True
    metric = _NEVER_INSERTS[commit.operation]
    return metric is not None and commit.operation_metrics.get(metric) != "0"


def _once_a_side(change: PathChange) -> bool:
    counts = sorted(count for _, count in change.forms)
    return counts in ([REMOVED], [ADDED], [REMOVED, ADDED])


def _with_metadata(commits: Iterable[Commit], before: Metadata) -> Iterable[tuple[Commit, tuple[Metadata, Metadata]]]:
    current = before
    for commit in commits:
        after = commit.metadata or current
        yield commit, (current, after)
        current = after


def may_number_anew(commit: Commit) -> bool:
    """Whether the commit rewrites unchanged rows by an operation that is not known to keep their row ids."""
    rewrites = any(not new.data_change for new in commit.adds) and any(not gone.data_change for gone in commit.removes)
    return rewrites and not (commit.operation or "").upper().startswith(KEEPS_ROW_IDS)


def _live_renumbered(commits: Iterable[Commit], high_water_mark: int | None) -> bool:
    """Whether rows may live after the commits under ids that a rewrite of them gave. It is False only if the log
    excludes it: each file that may have such rows is gone. A file that existed before the rewrite has none.
    """
    seen: set[str] = set()
    renumbered: set[str] = set()
    gone: set[str] = set()
    for commit in commits:
        removed, added = {one.path for one in commit.removes}, {one.path for one in commit.adds}
        if may_number_anew(commit) or removed & renumbered:
            known = {new.path for new in commit.adds if is_known(new, high_water_mark)}
            renumbered |= added - removed - seen - known
        seen |= removed | added
        gone = (gone | removed) - added
    return not renumbered <= gone


def _moves_rows(commit: Commit) -> bool:
    files: tuple[AddFile | RemoveFile, ...] = (*commit.adds, *commit.removes)
    return not all(file.data_change for file in files)
