"""Which files commits have removed: what streams behind these commits still need, and how much that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tidemark.model.table_log import Commit, DeletionVector

__all__ = ["UNKNOWN", "KeptBytes", "Removal", "Removals", "kept_bytes", "removals"]

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)  # when a file was removed of which the log does not say it


@dataclass(frozen=True)
class Removal:
    """A file, with one deletion vector, that a commit removed.

    `removed_at` is what VACUUM goes by: a time in the commit, a little before it, and 1970 where the commit has none.
    `whole`: the data file is live no more, under whatever vector; else only the vector is out of use.
    """

    version: int
    path: str
    vector: DeletionVector | None
    removed_at: datetime
    size: int
    whole: bool = True


@dataclass(frozen=True)
class KeptBytes:
    """Data files that a stream behind their removal needs: their bytes, and how many of these are past the table's own
    retention, so that only streams keep them.
    """

    files: int = 0
    bytes: int = 0
    bytes_past_retention: int = 0


class Removals:
    """Takes commits in their order; what they removed and did not bring back."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], Removal] = {}
        self._live: dict[str, int] = {}  # size, by path

    def take(self, commit: Commit) -> None:
        """The next commit."""
        for gone in commit.removes:
            added = self._live.pop(gone.path, 0)
            size = gone.size if gone.size is not None else added
            self._found[gone.key] = Removal(
                commit.version, gone.path, gone.deletion_vector, _time(gone.deletion_timestamp), size
            )
        for new in commit.adds:
            self._live[new.path] = new.size
            self._found.pop(new.key, None)

    def removals(self) -> tuple[Removal, ...]:
        """The removals up to now, in the order of the commits."""
        return tuple(replace(one, whole=False) if one.path in self._live else one for one in self._found.values())

    def __len__(self) -> int:
        """How many files it remembers."""
        return len(self._found) + len(self._live)


def removals(commits: Iterable[Commit]) -> tuple[Removal, ...]:
    """What these commits removed and did not bring back, in their order."""
    all_of_them = Removals()
    for commit in commits:
        all_of_them.take(commit)
    return all_of_them.removals()


def kept_bytes(removed: Sequence[Removal], own: timedelta, now: datetime) -> KeptBytes:
    """How much a stream behind these removals keeps alive, of a table that by itself keeps files for `own`."""
    last = {one.path: one for one in removed if one.whole}  # of a path, the last removal counts
    past = [one for one in last.values() if now - one.removed_at > own]
    return KeptBytes(len(last), sum(one.size for one in last.values()), sum(one.size for one in past))


def _time(millis: int | None) -> datetime:
    try:
        return UNKNOWN + timedelta(milliseconds=millis or 0)
    except OverflowError:
        return UNKNOWN
