"""When a transaction is published: a commit timestamp of its own, later than all that was published before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tidemark.model.change_streams import MICROSECOND

__all__ = ["Published", "SourceTransaction", "publish", "published_until"]


@dataclass(frozen=True, order=True)
class SourceTransaction:
    """A commit of a watched table that has records. `raw`: its time in that table's log."""

    table_id: str
    version: int
    raw: datetime


@dataclass(frozen=True)
class Published:
    """A transaction and the commit timestamp that the change stream gives it."""

    transaction: SourceTransaction
    at: datetime

    @property
    def id(self) -> str:
        """The record's server_transaction_id."""
        return f"{self.transaction.table_id}:{self.transaction.version}"


def publish(transactions: Iterable[SourceTransaction], floor: datetime) -> tuple[Published, ...]:
    """All of them with timestamps that ascend strictly and lie after `floor`, each its raw time where that can be.

    The versions of a table stay in order though its clock ran backwards; tables are ordered by raw time, then id.
    """
    latest: dict[str, datetime] = {}
    keyed = []
    for one in sorted(transactions):
        latest[one.table_id] = max(one.raw, latest.get(one.table_id, one.raw))
        keyed.append((latest[one.table_id], one.table_id, one.version, one))
    published = []
    previous = floor
    for _, _, _, one in sorted(keyed):
        previous = max(one.raw, previous + MICROSECOND)
        published.append(Published(one, previous))
    return tuple(published)


def published_until(published: Iterable[Published], safe_until: datetime) -> datetime:
    """Up to where, exclusive, everything is published after these."""
    return max([safe_until, *(one.at + MICROSECOND for one in published)])
