"""The buffer of an open channel. Only its table writer changes it, under that writer's lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from tidemark.channels.driver.batches import Batch
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.channels import ChannelRecord, ChannelStatus, StatusCode
from tidemark.channels.model.rows import BadRow
from tidemark.channels.planning.owners import Ended, loss_of
from tidemark.channels.planning.records import Advance, millis
from tidemark.errors import ChannelInvalid
from tidemark.model.foreign_json import plain_text

__all__ = ["Group", "OpenChannel"]


@dataclass
class OpenChannel:
    """`record`: the last committed one that is known. `offset_token`: of the last buffered record. `oldest`: when the
    first of the buffered rows or tokens came; None without any. `taken`, `settled`: number of the latest insert, and of
    the latest one that is committed. `generation`: the read of the table that last showed this writer as the owner.
    `is_told`: whether an error has told the writer of the end. `quarantine`: the URI of the table that takes bad rows.
    """

    key: str
    table: str
    record: ChannelRecord
    offset_token: str | None = None
    quarantine: str | None = None
    bad: list[BadRow] = field(default_factory=list)
    rows: list[tuple[pa.Table, TableSpec]] = field(default_factory=list)
    row_count: int = 0
    byte_count: int = 0
    parsed: int = 0
    errors: int = 0
    error_message: str | None = None
    error_upper_bound: str | None = None
    oldest: datetime | None = None
    taken: int = 0
    settled: int = 0
    generation: int = -1
    ended: Ended | None = None
    is_told: bool = False
    is_closed: bool = False

    def add(self, batch: Batch, spec: TableSpec, token: str | None, now: datetime, bad: Sequence[BadRow] = ()) -> int:
        """Buffer the rows of a batch, and move the token to `token` unless it is None. The number of this insert."""
        self.bad.extend(bad)
        self.byte_count += sum(len(row.text) for row in bad)
        if batch.rows.num_rows:
            self.rows.append((batch.rows, spec))
            self.row_count += batch.rows.num_rows
            self.byte_count += batch.rows.nbytes
        self.parsed += batch.parsed
        self.errors += len(batch.errors)
        if token is not None:
            self.offset_token = token
        if batch.errors:
            last = batch.errors[-1]
            self.error_message, self.error_upper_bound = plain_text(batch.said_of(last)), token
        self.oldest = self.oldest or now
        self.taken += 1
        return self.taken

    def take(self, now: datetime) -> Group:
        """Everything that is buffered, for one commit. The buffer is empty afterwards."""
        step = Advance(
            offset_token=self.offset_token,
            rows_inserted=self.row_count,
            rows_parsed=self.parsed,
            rows_error_count=self.errors,
            waited_ms=max(0, millis(now) - millis(self.oldest or now)),
            error_message=self.error_message,
            error_upper_bound=self.error_upper_bound,
        )
        group = Group(self, tuple(self.rows), step, self.taken, self.byte_count, tuple(self.bad))
        self.forget()
        return group

    def forget(self) -> None:
        """Empty the buffer."""
        self.bad = []
        self.rows, self.row_count, self.byte_count, self.parsed, self.errors = [], 0, 0, 0, 0
        self.error_message = self.error_upper_bound = self.oldest = None

    def end(self, ended: Ended) -> None:
        """The channel can write no more, and its buffer is discarded."""
        self.ended = ended
        self.forget()

    def lose(self, found: ChannelRecord | None, *, is_in_flight: bool) -> bool:
        """End the channel if another writer has it, by its record in the table. Whether it ended.

        `is_in_flight`: a commit of its rows is under way, and needs the record on which it is based.
        """
        loss = loss_of(self.record, found) if self.ended is None else None
        if loss is None:
            return False
        if found is not None and not is_in_flight:
            self.record = found
        self.end(loss)
        return True

    def told_of(self, ended: Ended) -> ChannelInvalid:
        """The error that tells the writer of the end."""
        self.is_told = True
        return ChannelInvalid(
            channel=self.key,
            table=self.table,
            code=int(ended.code),
            problem=ended.problem,
            offset_token=self.record.offset_token,
        )

    def status(self) -> ChannelStatus:
        """The channel as its writer sees it."""
        return ChannelStatus(
            name=self.key,
            table=self.table,
            code=self.ended.code if self.ended is not None else StatusCode.OK,
            problem=self.ended.problem if self.ended is not None else None,
            record=self.record,
            buffered_rows=self.row_count,
            buffered_bytes=self.byte_count,
        )


@dataclass(frozen=True)
class Group:
    """One commit's part of a channel: its rows in their order, with their schemas, and the step of its record.
    `through`: the number of the last insert in it. `bad`: its rows for the quarantine.
    """

    channel: OpenChannel
    rows: tuple[tuple[pa.Table, TableSpec], ...]
    step: Advance
    through: int
    byte_count: int
    bad: tuple[BadRow, ...] = ()
