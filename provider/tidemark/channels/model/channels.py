"""A channel's state, as the table's own log keeps it: the value of one domain of Delta's domain metadata."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "COMMITTER",
    "DOMAIN_PREFIX",
    "WATCH_DOMAIN",
    "ChannelRecord",
    "ChannelStatus",
    "IngestWatch",
    "PendingRows",
    "StatusCode",
]

DOMAIN_PREFIX = "tidemark.channel."
WATCH_DOMAIN = "tidemark.ingest"
COMMITTER = "Tidemark"  # the end of `engineInfo` in commits by channels


class StatusCode(IntEnum):
    """The state of an open channel, by the numbers of the source system."""

    OK = 0
    TABLE_NOT_SUPPORTED = 6
    GONE = 19  # swept after 30 idle days, or dropped
    TAKEN = 20  # another writer opened it
    OUT_OF_ORDER = 21
    MUST_REOPEN = 36  # the table was restored, recreated or dropped
    SCHEMA_CHANGED = 40


@dataclass(frozen=True)
class PendingRows:
    """A file of bad rows on its way into the quarantine table at `uri`.

    `transaction`, `version`: of Delta's transaction that adds it. The version is the row sequencer of their commit. The
    rest is as in Delta's action `add`.
    """

    uri: str
    transaction: str
    version: int
    path: str
    size: int
    modified: int
    stats: str


@dataclass(frozen=True)
class ChannelRecord:
    """The committed state of a channel. It changes in the commit that adds the rows, so both are stored or neither is.

    `table_id`: the table that it belongs to; in a copy of the log it is another's. `client_sequencer`: number of opens,
    which fences earlier writers. `row_sequencer`: number of commits with rows or tokens. `offset_token`: the token of
    the last committed record; None before the first. Times are milliseconds since 1970. `opened_by`: the latest writer.
    Counts are of all rows since `created_on`. `latency_ms`: from insert to commit, an average over recent commits.
    `ended`: why the latest writer was fenced, if not by an open. `token_lost`: why the token is not known. `pending`:
    bad rows of the latest commit, if a quarantine takes them.
    """

    table_id: str
    client_sequencer: int
    row_sequencer: int
    offset_token: str | None
    created_on: int
    last_ingest: int
    opened_on: int
    opened_by: str
    rows_inserted: int = 0
    rows_parsed: int = 0
    rows_error_count: int = 0
    last_error_message: str | None = None
    last_error_offset_upper_bound: str | None = None
    last_error_timestamp: int | None = None
    latency_ms: int | None = None
    ended: str | None = None
    token_lost: str | None = None
    pending: PendingRows | None = None

    @property
    def opening(self) -> tuple[int, int]:
        """The numbers that no other open of the channel has: one that was dropped counts its opens from 1 again."""
        return self.created_on, self.client_sequencer

    @property
    def problem(self) -> str | None:
        """The reason why the token is not known, or why the latest writer was fenced."""
        return self.token_lost or self.ended


@dataclass(frozen=True)
class IngestWatch:
    """Facts about all channels of a table. `checked_to`: the version up to which the log was searched for commits that
    take rows back (RESTORE). `paused_until`: until then nobody commits rows; milliseconds since 1970.
    """

    table_id: str
    checked_to: int
    paused_until: int | None = None


@dataclass(frozen=True)
class ChannelStatus:
    """An open channel as its writer sees it. `problem`: what ended it, if `code` is not OK."""

    name: str
    table: str
    code: StatusCode
    problem: str | None
    record: ChannelRecord
    buffered_rows: int
    buffered_bytes: int
