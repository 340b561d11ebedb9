"""The newest versions of the tables that streams read, as looks at their logs have seen them over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.control.object_histories import Portion
from tidemark.control.samples import Seen, keep_looks, newest_seen, seen_in

__all__ = ["HeadSeen", "heads_in", "keep_heads", "new_heads"]

EVERY = timedelta(hours=1)
"""A stream gets at most one sample in this time: the newest one is changed until then."""

_KIND = "stream"
_FIGURE = "head"


@dataclass(frozen=True)
class HeadSeen:
    """The newest version of a stream's table at that time. `number`: older ones have lower ones."""

    number: int
    uid: str
    at: datetime
    head: int


def new_heads(connection: sa.Connection, heads: Mapping[str, int], at: datetime) -> tuple[Seen, ...]:
    """The versions among these, by the streams' uids, that the store has not. One query for each 50 streams."""
    newest = newest_seen(connection, _KIND, list(heads))
    found = (_decided(uid, head, newest.get(uid), at) for uid, head in heads.items())
    return tuple(one for one in found if one is not None)


def keep_heads(connection: sa.Connection, found: Sequence[Seen]) -> None:
    """Keep these versions as they were decided. A second time may leave equal samples. Two statements."""
    keep_looks(connection, _KIND, found)


def heads_in(connection: sa.Connection, uids: Sequence[str], portion: Portion) -> list[HeadSeen]:
    """The versions seen of these streams in that portion, newest first. The key is the number."""
    found = seen_in(connection, _KIND, uids, portion)
    return [HeadSeen(one.number or 0, one.uid, one.at, int(one.figures[_FIGURE])) for one in found]


def _decided(uid: str, head: int, newest: Seen | None, at: datetime) -> Seen | None:
    if newest is None:
        return Seen(uid, at, {_FIGURE: head})
    if newest.figures[_FIGURE] == head or newest.at >= at:
        return None
    return Seen(uid, at, {_FIGURE: head}, newest.number if _hour(newest.at) == _hour(at) else None)


def _hour(at: datetime) -> int:
    return int(at.timestamp() // EVERY.total_seconds())
