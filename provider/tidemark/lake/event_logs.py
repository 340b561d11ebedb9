"""The batches in the event log of a replication, and their positions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.foreign_json import foreign_value
from tidemark.model.table_log import Commit

__all__ = ["EventBatch", "batches", "capture_app_id", "parse_batch", "restored_behind"]

MARK = "tidemark_events"


@dataclass(frozen=True)
class EventBatch:
    """A batch of captured events, as JSON `{"tidemark_events": {…}}` in the `userMetadata` of its commit.

    It has every transaction whose commit position is in [start, end). `attempt`: a name that no other run has.
    `widest`: bytes of the largest payload of the log so far. `mean`: the largest mean of the payloads of a batch so
    far. `server`: which server's log `end` is a place of; `gtids`: of all its transactions before `end`. Both are "" of
    sources whose log belongs to one server.
    """

    replication_uid: str
    number: int
    start: str
    end: str
    attempt: str
    transactions: int
    widest: int = 0
    mean: int = 0
    server: str = ""
    gtids: str = ""

    def to_text(self) -> str:
        """The text for a commit's `userMetadata`."""
        return json.dumps({MARK: to_plain(self)}, sort_keys=True, separators=(",", ":"))


def capture_app_id(store_id: str, replication_uid: str) -> str:
    """The Delta application whose version is the number of the newest batch."""
    return f"tidemark/{store_id}/{replication_uid}/capture"


def parse_batch(user_metadata: str | None) -> EventBatch | None:
    """The batch in a commit's `userMetadata`, or None if it has none."""
    return foreign_value(EventBatch, user_metadata, MARK)


def batches(log: DeltaLog, app_id: str) -> Iterator[EventBatch]:
    """The batches whose commits still exist in the table's log, newest first."""
    return (batch for commit in _newest_first(log) if (batch := _batch_of(commit, app_id)) is not None)


def restored_behind(log: DeltaLog, app_id: str) -> int | None:
    """The version of the newest batch, if the table was restored after it. Its events may be gone."""
    restored = False
    for commit in _newest_first(log):
        if _batch_of(commit, app_id) is not None:
            return commit.version if restored else None
        restored = restored or commit.operation == "RESTORE"
    return None


def _newest_first(log: DeltaLog) -> Iterator[Commit]:
    for version in range(log.head(), log.earliest() - 1, -1):
        yield from log.commits(version - 1, version)


def _batch_of(commit: Commit, app_id: str) -> EventBatch | None:
    return parse_batch(commit.user_metadata) if app_id in commit.transactions else None
