"""Channels of a table that was restored to an earlier version: their tokens go back with the rows.

RESTORE leaves domain metadata as it is. The first committer that sees it sets the tokens back, before another row is
committed. Until then readers set them back for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tidemark.channels.model.channels import COMMITTER, WATCH_DOMAIN, ChannelRecord
from tidemark.channels.planning.records import records_in, rewound, watch_in
from tidemark.errors import SourceError
from tidemark.lake.fields import said
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import TableState

__all__ = [
    "CommitLog",
    "Restore",
    "newest_restore",
    "records_after",
    "records_now",
    "rewound_records",
    "unseen_restore",
]

_MOST_LOOKED_AT = 100  # commits behind the last one of a channel


class CommitLog(Protocol):
    """A table's log."""

    def state(self, version: int | None = None) -> TableState:
        """The state at a version; at the head for None."""

    def commit_infos(self, after: int, through: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """(version, `commitInfo`) of the versions (after, through]."""

    def has_commit(self, version: int) -> bool:
        """Whether the commit was not cleaned up."""

    def earliest(self) -> int:
        """The earliest version from which every commit exists."""


@dataclass(frozen=True)
class Restore:
    """A RESTORE at `version`. `to`: the restored version, or None if the commit does not name it."""

    version: int
    to: int | None

    @property
    def reason(self) -> str:
        """The words of an error."""
        to = "an earlier version" if self.to is None else f"version {self.to}"
        return f"version {self.version} restored the table to {to}."


def newest_restore(log: CommitLog, after: int, through: int) -> Restore | None:
    """The latest RESTORE in the commits (after, through]. Commits that were cleaned up are passed over."""
    first = after if log.has_commit(after + 1) else max(after, log.earliest() - 1)
    found = None
    for version, info in log.commit_infos(first, through):
        found = _restore_in(version, info) or found
    return found


def unseen_restore(log: CommitLog, watch: str | None, table_id: str, head: int, *, after: int = -1) -> Restore | None:
    """The latest RESTORE that no committer has seen. `watch`: the value of the watch's domain. `after`: a version up to
    which there is none, if that is known.

    A committer looks for one before each commit. So the search ends at the last commit of a committer.
    """
    known = watch_in(watch, table_id)
    if known is None:
        return None
    try:
        for version in range(head, max(known.checked_to, after, head - _MOST_LOOKED_AT), -1):
            for _, info in log.commit_infos(version - 1, version):
                if str(info.get("engineInfo")).endswith(f"/{COMMITTER}"):
                    return None
                if (found := _restore_in(version, info)) is not None:
                    return found
    except SourceError:  # the commit was cleaned up meanwhile
        return None
    return None


def records_now(log: CommitLog) -> dict[str, ChannelRecord]:
    """Key → record of the table's own channels, as the next committer will find it. Raises what reading the log
    raises.
    """
    state = log.state()
    return records_after(log, state.domains, state.table_id, state.version)


def records_after(log: CommitLog, domains: Mapping[str, str], table_id: str, head: int) -> dict[str, ChannelRecord]:
    """As `records_now`, of the domains at a version. Without channels no commit is read."""
    found = records_in(domains, table_id)
    restore = unseen_restore(log, domains.get(WATCH_DOMAIN), table_id, head) if found else None
    return found if restore is None else rewound_records(log, found, restore, table_id)


def rewound_records(
    log: CommitLog, known: Mapping[str, ChannelRecord], restore: Restore, table_id: str
) -> dict[str, ChannelRecord]:
    """Key → next record of each channel, with the token that it had at the restored version."""
    then = None if restore.to is None else _records_at(log, restore.to, table_id)
    return {
        key: rewound(record, (then or {}).get(key), reason=restore.reason, is_known=then is not None)
        for key, record in known.items()
    }


def _restore_in(version: int, info: Mapping[str, Any]) -> Restore | None:
    if info.get("operation") != "RESTORE":
        return None
    return Restore(version, whole_number(said(info, "operationParameters").get("version")))


def _records_at(log: CommitLog, version: int, table_id: str) -> Mapping[str, ChannelRecord] | None:
    """The records that belong to the rows of a version; None if its log is gone.

    A version just behind another RESTORE has the tokens of before, if nobody had set them back yet.
    """
    try:
        domains = log.state(version).domains
        watch = watch_in(domains.get(WATCH_DOMAIN), table_id)
        earlier = None if watch is None else newest_restore(log, watch.checked_to, version)
    except SourceError:
        return None
    if earlier is None:
        return records_in(domains, table_id)
    return None if earlier.to is None else _records_at(log, earlier.to, table_id)
