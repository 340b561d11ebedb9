"""When a transaction is published: a commit timestamp of its own, later than all that was published before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tidemark.change_streams.model.change_streams import MICROSECOND

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


def publish(transactions: Iterable[SourceTransaction], floor: datetime, latest: datetime) -> tuple[Published, ...]:
    """All of them with timestamps that ascend strictly and lie after `floor`, each its raw time if that can be.

    A raw time after `latest` is of a clock that is ahead, and counts as `latest`. Otherwise it would move everything
    that any table commits until then. The versions of a table stay in order though its clock ran backwards; tables are
    ordered by raw time, then id.
    """
    newest: dict[str, datetime] = {}
    keyed = []
    for one in sorted(transactions):
        raw = min(one.raw, latest)
        newest[one.table_id] = max(raw, newest.get(one.table_id, raw))
        keyed.append((newest[one.table_id], one.table_id, one.version, raw, one))
    published = []
    previous = floor
    for _, _, _, raw, one in sorted(keyed):
        previous = max(raw, previous + MICROSECOND)
        published.append(Published(one, previous))
    return tuple(published)


def published_until(published: Iterable[Published], safe_until: datetime) -> datetime:
    """Up to where, exclusive, everything is published after these."""
    return max([safe_until, *(one.at + MICROSECOND for one in published)])
