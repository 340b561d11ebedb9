"""Whether a target has a window, decided by its log (PROTOCOL steps 10 and 13).

The proof is the mark in a commit's `userMetadata`, if no later commit restored the table to a version before it. The
`txn` entry alone proves nothing: it survives RESTORE and replacement (V8) and expires (V9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from tidemark.delivery.model.marks import Mark, MarkKind, parse_changes, parse_mark, parse_split
from tidemark.delivery.model.quarantine import Split
from tidemark.errors import VersionNotFound
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import Commit

__all__ = ["Delivery", "Finding", "RestorePoint", "bytes_written", "judge", "row_counts"]


_UNSAID = -1
UNSET = (None, "", "null", "None")  # a log's forms of a missing parameter


class Finding(StrEnum):
    """The state of one statement in the target's log."""

    FREE = "free"  # no write and no fence: it may be written
    DELIVERED = "delivered"  # the log has the write mark of exactly this window
    FENCED = "fenced"  # a fence has the number
    CHANGED = "changed"  # the table has another id
    REWOUND = "rewound"  # the mark exists, but a RESTORE removed the rows
    SUPERSEDED = "superseded"  # a later number has been written
    FOREIGN = "foreign"  # the number was used for another window


@dataclass(frozen=True)
class Delivery:
    """A finding, and the commit that proves it."""

    finding: Finding
    table_id: str
    version: int | None = None
    rows: Mapping[str, int] | None = None
    number: int | None = None  # the transaction number in the log, if it is not ours
    split: Split | None = None  # the split of the rows, if the statement has a quarantine
    changes: int | None = None  # rows that it read of the change set, if counted
    bytes: int | None = None  # of the data files that it added


RestorePoint = Callable[[datetime], int]  # the newest version at or before a time


def judge(
    mark: Mark, *, expected_id: str, found_id: str, commits: Iterable[Commit], version_at: RestorePoint
) -> Delivery:
    """The finding about `mark` (kind WRITE) in `commits`: those since the statement's base version, up to the head.

    `found_id`: the table's id at the head. `version_at` resolves RESTORE … TO TIMESTAMP.
    """
    seen = list(commits)
    if found_id != expected_id:
        return Delivery(Finding.CHANGED, found_id)
    higher = max((n for commit in seen for n in _numbers(commit, mark.app_id)), default=mark.txn_version)
    if higher > mark.txn_version:
        return Delivery(Finding.SUPERSEDED, found_id, number=higher)
    ours = [(c, m) for c in seen if (m := parse_mark(c.user_metadata)) is not None and _same_number(m, mark)]
    if not ours:
        used = any(commit.transactions.get(mark.app_id) == mark.txn_version for commit in seen)  # lower: a spent one
        return Delivery(Finding.FOREIGN if used else Finding.FREE, found_id, number=mark.txn_version if used else None)
    commit, found = _origin(ours)
    if found.kind is MarkKind.FENCE:
        return Delivery(Finding.FENCED, found_id, commit.version)
    if found != mark:
        return Delivery(Finding.FOREIGN, found_id, commit.version, number=found.txn_version)
    if not _stands(commit.version, seen, version_at):
        return Delivery(Finding.REWOUND, found_id, commit.version)
    split = parse_split(commit.user_metadata)
    changes = parse_changes(commit.user_metadata)
    return Delivery(
        Finding.DELIVERED,
        found_id,
        commit.version,
        rows=row_counts(commit),
        split=split,
        changes=changes,
        bytes=bytes_written(commit),
    )


def _origin(marked: list[tuple[Commit, Mark]]) -> tuple[Commit, Mark]:
    """The commit that wrote the newest mark. Auto compaction runs after a write under the same session settings, so its
    commit repeats the mark, but not the transaction entry.
    """
    mark = marked[-1][1]
    same = [commit for commit, other in marked if other == mark]
    return next((commit for commit in reversed(same) if mark.app_id in commit.transactions), same[0]), mark


def _numbers(commit: Commit, app_id: str) -> list[int]:
    entry = commit.transactions.get(app_id)
    mark = parse_mark(commit.user_metadata)
    marked = [mark.txn_version] if mark is not None and mark.app_id == app_id else []
    return marked if entry is None else [*marked, entry]


def _same_number(left: Mark, right: Mark) -> bool:
    return (left.app_id, left.txn_version) == (right.app_id, right.txn_version)


def _stands(version: int, commits: list[Commit], version_at: RestorePoint) -> bool:
    """Whether the head still has the rows of `version`, however often the table was restored since."""
    holds = {version: True}
    current = True
    for commit in commits:
        if commit.version <= version:
            continue
        operation = (commit.operation or "").upper()
        if operation == "RESTORE":
            to = _restored_to(commit, version_at)
            current = to >= version and holds.get(to, False)
        elif operation.startswith(("CREATE OR REPLACE", "REPLACE", "CLONE")):
            current = False
        holds[commit.version] = current
    return current


def _restored_to(commit: Commit, version_at: RestorePoint) -> int:
    """The version that a RESTORE restored. It is _UNSAID, below all versions, if the log does not name it in Delta's
    form: then nothing counts as delivered.

    Delta writes the session's time without a zone. It is read as UTC, the zone of our own sessions.
    """
    version = commit.operation_parameters.get("version")
    if version not in UNSET:
        found = whole_number(version)
        return _UNSAID if found is None else found
    moment = commit.operation_parameters.get("timestamp")
    if moment in UNSET:
        return _UNSAID
    try:
        when = datetime.fromisoformat(str(moment).strip('"'))
        return version_at(when if when.tzinfo is not None else when.replace(tzinfo=UTC))
    except (ValueError, OverflowError, VersionNotFound):
        return _UNSAID


_METRICS: Mapping[str, tuple[str, ...]] = {
    "inserted": ("numTargetRowsInserted", "numOutputRows"),
    "updated": ("numTargetRowsUpdated", "numUpdatedRows"),
    "deleted": ("numTargetRowsDeleted", "numDeletedRows"),
}


def bytes_written(commit: Commit) -> int:
    """The bytes of the data files that the commit added. A file that only got another deletion vector is none of them.

    Delta's own metrics are not used: they count empty files that a write left out.
    """
    kept = {file.path for file in commit.removes}
    return sum(file.size for file in commit.adds if file.path not in kept)


def row_counts(commit: Commit) -> dict[str, int]:
    """Rows inserted, updated and deleted by the commit, if Delta's own metrics have them.

    `numOutputRows` counts inserts only for plain writes: for MERGE it counts rewritten rows too.
    """
    operation = (commit.operation or "").upper()
    counts: dict[str, int] = {}
    for name, metrics in _METRICS.items():
        for metric in metrics:
            usable = metric != "numOutputRows" or operation in ("WRITE", "STREAMING UPDATE")
            count = whole_number(commit.operation_metrics.get(metric)) if usable else None
            if count is not None:
                counts[name] = count
                break
    return counts
