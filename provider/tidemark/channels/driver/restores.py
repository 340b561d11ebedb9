"""Channels of a table that was restored to an earlier version: their tokens go back with the rows.

RESTORE leaves domain metadata as it is. The first committer that sees it sets the tokens back, before another row is
committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.channels.driver.kernel import KernelSnapshot, KernelTable
from tidemark.channels.model.channels import WATCH_DOMAIN, ChannelRecord
from tidemark.channels.planning.records import records_in, rewound, watch_in
from tidemark.errors import KernelFailed, SourceError
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.fields import said
from tidemark.lake.segments import commit_name
from tidemark.model.foreign_json import whole_number

__all__ = ["Restore", "newest_restore", "rewound_domains"]


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


def newest_restore(log: DeltaLog, after: int, through: int) -> Restore | None:
    """The latest RESTORE in the commits (after, through]. Commits that were cleaned up are passed over."""
    first = after if log.storage.exists(commit_name(after + 1)) else max(after, log.earliest() - 1)
    found = None
    for version, info in log.commit_infos(first, through):
        if info.get("operation") == "RESTORE":
            found = Restore(version, whole_number(said(info, "operationParameters").get("version")))
    return found


def rewound_domains(
    table: KernelTable, log: DeltaLog, now: KernelSnapshot, restore: Restore, table_id: str
) -> dict[str, ChannelRecord]:
    """Key → next record of each channel, with the token that it had at the restored version."""
    then = None if restore.to is None else _records_at(table, log, restore.to, table_id)
    return {
        key: rewound(record, (then or {}).get(key), reason=restore.reason, is_known=then is not None)
        for key, record in records_in(now.domains(), table_id).items()
    }


def _records_at(table: KernelTable, log: DeltaLog, version: int, table_id: str) -> Mapping[str, ChannelRecord] | None:
    """The records that belong to the rows of a version; None if its log is gone.

    A version just behind another RESTORE has the tokens of before, if nobody had set them back yet.
    """
    try:
        snapshot = table.at(version)
        watch = watch_in(snapshot.domain(WATCH_DOMAIN), table_id)
        earlier = None if watch is None else newest_restore(log, watch.checked_to, version)
    except (KernelFailed, SourceError):
        return None
    if earlier is None:
        return records_in(snapshot.domains(), table_id)
    return None if earlier.to is None else _records_at(table, log, earlier.to, table_id)
