"""The files that commits have removed and streams before these commits still need, and their size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tidemark.model.table_log import Commit, DeletionVector

__all__ = ["UNKNOWN", "KeptBytes", "Removal", "Removals", "kept_bytes", "removals"]

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)  # the removal time of a file if the log has none


@dataclass(frozen=True)
class Removal:
    """A file, with one deletion vector, that a commit removed.

    `removed_at`: the time that VACUUM uses. It is in the commit, a little before the commit's own, and 1970 if the
    commit has none. `whole`: the data file is no longer live under any vector; else only the vector is unused.
    """

    version: int
    path: str
    vector: DeletionVector | None
    removed_at: datetime
    size: int
    whole: bool = True


@dataclass(frozen=True)
class KeptBytes:
    """The bytes of data files that a stream before their removal needs, and those past the table's own retention. Only
    streams keep the latter.
    """

    files: int = 0
    bytes: int = 0
    bytes_past_retention: int = 0


class Removals:
    """The files that commits, taken in their order, have removed and not restored."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], Removal] = {}
        self._live: dict[str, int] = {}  # size, by path

    def take(self, commit: Commit) -> None:
        """Adds the next commit."""
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
        """The removals so far, in the order of the commits."""
        return tuple(replace(one, whole=False) if one.path in self._live else one for one in self._found.values())

    def __len__(self) -> int:
        """The number of files that it remembers."""
        return len(self._found) + len(self._live)


def removals(commits: Iterable[Commit]) -> tuple[Removal, ...]:
    """The files that these commits have removed and not restored, in their order."""
    all_of_them = Removals()
    for commit in commits:
        all_of_them.take(commit)
    return all_of_them.removals()


def kept_bytes(removed: Sequence[Removal], own: timedelta, now: datetime) -> KeptBytes:
    """The bytes that a stream before these removals keeps, in a table whose own retention is `own`."""
    last = {one.path: one for one in removed if one.whole}  # the last removal of a path counts
    past = [one for one in last.values() if now - one.removed_at > own]
    return KeptBytes(len(last), sum(one.size for one in last.values()), sum(one.size for one in past))


def _time(millis: int | None) -> datetime:
    try:
        return UNKNOWN + timedelta(milliseconds=millis or 0)
    except OverflowError:
        return UNKNOWN
