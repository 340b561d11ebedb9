"""An open channel: rows go in, with the offset token of the last of them, and come out in the table together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from tidemark.channels.driver.batches import Batch, batch_of
from tidemark.channels.driver.evolution import evolution_for
from tidemark.channels.driver.open_channel import OpenChannel
from tidemark.channels.driver.quarantine import bad_rows
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.driver.table_writer import TableWriter
from tidemark.channels.model.channels import ChannelStatus
from tidemark.channels.model.endings import ClosedUnlessFailed
from tidemark.channels.model.rows import InsertAnswer, OnError, RowErrorKind
from tidemark.channels.planning.tokens import TokenVerifier, require_token, token_problem
from tidemark.errors import RowsRefused, TokenOutOfOrder

__all__ = ["Channel", "ChannelOptions"]

_EVOLUTIONS = 3
_ADVISED_BYTES = 16 << 20  # of a batch, as Snowpipe Streaming advises
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChannelOptions:
    """`zone`: of times without an offset. `verify`: the order of tokens; a batch out of order is a warning, or an error
    with `strict_tokens`. `evolve`: whether rows may add columns to the table.
    """

    on_error: OnError = OnError.ABORT
    zone: tzinfo = UTC
    verify: TokenVerifier | None = None
    strict_tokens: bool = False
    evolve: bool = False


class Channel(ClosedUnlessFailed):
    """The result of `IngestClient.open_channel`. One channel has one writer: rows keep their order within it.

    `record_at_open`: the committed state then. Methods may be called from several threads. Inserts of several threads
    have no order among themselves.
    """

    def __init__(
        self, opened: OpenChannel, writer: TableWriter, options: ChannelOptions, clock: Callable[[], datetime]
    ) -> None:
        self._opened, self._writer, self._options, self._clock = opened, writer, options, clock
        self.record_at_open = opened.record
        self._last_token = opened.record.offset_token
        self._is_warned = False

    @property
    def name(self) -> str:
        """The channel's name, in upper case unless it was quoted."""
        return self._opened.key

    @property
    def table(self) -> str:
        """The table's name."""
        return self._opened.table

    @property
    def offset_token(self) -> str | None:
        """The committed offset token at the open: continue behind the record that it names. None at first."""
        return self.record_at_open.offset_token

    @property
    def spec(self) -> TableSpec:
        """The table at the last known version."""
        return self._writer.spec

    @property
    def is_open(self) -> bool:
        """Whether the channel was not closed yet. It may have ended."""
        return not self._opened.is_closed

    @property
    def is_spent(self) -> bool:
        """Whether the channel was closed, or has ended with all of its rows committed."""
        opened = self._opened
        return opened.is_closed or (opened.ended is not None and opened.settled == opened.taken)

    def insert_rows(
        self, rows: Any, end_offset_token: str | None = None, *, start_offset_token: str | None = None
    ) -> InsertAnswer:
        """Buffer rows for the next commit, with the token of the last of them.

        `rows`: dictionaries by column name, an Arrow table or batch, a pandas frame, or bytes of JSON lines. Without
        rows the token moves alone. Rows that do not fit are handled by `on_error`. Waits while the buffers are full.
        A channel's first batch of more than 16 MiB is logged as a warning. A row is in the table once `flush` returns,
        or once `latest_committed_offset_token` has its token.

        Raises RowsRefused (on_error="abort"), TokenOutOfOrder (`strict_tokens`), InvalidArgument, ChannelInvalid,
        ChannelClosed, and IngestBusy if the buffers stay full.
        """
        self._writer.require_open(self._opened)
        require_token(start_offset_token, "start_offset_token")
        require_token(end_offset_token, "end_offset_token")
        if isinstance(rows, Iterator):  # it is read more than once
            rows = list(rows)
        batch, spec = self._batch(rows)
        self._warn_if_large(batch)
        self._check_token(start_offset_token, end_offset_token, batch.parsed)
        if batch.errors and self._options.on_error is OnError.ABORT:
            first = batch.errors[0]
            problem = f"{first} ({first.kind})."
            place = batch.place(first.row_index)
            raise RowsRefused(row_index=first.row_index, row=place, table=self.table, problem=problem)
        if batch.errors and self._options.on_error is OnError.SKIP_BATCH:
            return InsertAnswer(0, batch.errors)
        has_bad = batch.errors and self._opened.quarantine is not None
        bad = bad_rows(rows, batch, spec, end_offset_token) if has_bad else ()
        self._writer.insert(self._opened, batch, spec, end_offset_token, bad)
        self._last_token = self._last_token if end_offset_token is None else end_offset_token
        return InsertAnswer(batch.rows.num_rows, batch.errors)

    def insert_row(self, row: Any, offset_token: str | None = None) -> InsertAnswer:
        """Buffer one row; as `insert_rows`."""
        return self.insert_rows([row], offset_token)

    def latest_committed_offset_token(self) -> str | None:
        """The token of the last record in the table, read at each call; None before the first.

        Raises ChannelInvalid if another writer has the channel now, or if it was dropped.
        """
        return self._writer.latest_token(self._opened)

    def flush(self) -> None:
        """Return once all rows and tokens inserted before are committed. Raises ChannelInvalid, RowsNotCommitted."""
        self._writer.flush(self._opened, self._opened.taken)

    def status(self) -> ChannelStatus:
        """The channel's state without a look at the table: code, reason, committed record, buffered rows."""
        return self._opened.status()

    def close(self, *, drop: bool = False) -> None:
        """Flush, then end the channel for this client. The table keeps its token, unless `drop` removes the channel.

        A second run does nothing. Raises ChannelInvalid, RowsNotCommitted.
        """
        self._writer.close(self._opened, drop=drop)

    def _batch(self, rows: Any) -> tuple[Batch, TableSpec]:
        """The batch under the table's schema. An unknown column may be new, so the table is read again once."""
        spec = self._writer.spec
        batch = batch_of(rows, spec, self._options.zone, self._clock())
        if any(error.kind is RowErrorKind.EXTRA_COLUMN for error in batch.errors):
            newer = self._writer.newest_spec()
            if newer.schema_json != spec.schema_json:
                batch, spec = batch_of(rows, newer, self._options.zone, self._clock()), newer
        return self._evolved(rows, batch, spec) if self._options.evolve and batch.errors else (batch, spec)

    def _evolved(self, rows: Any, batch: Batch, spec: TableSpec) -> tuple[Batch, TableSpec]:
        """The batch under the schema that its rows ask for: first their new columns count, then those they lack."""
        for _ in range(_EVOLUTIONS):
            evolution = evolution_for(rows, batch, spec)
            if not evolution:
                break
            self._writer.evolve(evolution)
            spec = self._writer.spec
            batch = batch_of(rows, spec, self._options.zone, self._clock())
        return batch, spec

    def _warn_if_large(self, batch: Batch) -> None:
        """Once for each channel: a large batch comes again as a whole after a crash, and fills the buffers of all."""
        if self._is_warned or batch.rows.nbytes <= _ADVISED_BYTES:
            return
        self._is_warned = True
        mib = batch.rows.nbytes / (1 << 20)
        text = "Channel %s of table %s: a batch has %.1f MiB. Insert batches of at most %d MiB, each with its token."
        _log.warning(text, self.name, self.table, mib, _ADVISED_BYTES >> 20)

    def _check_token(self, start: str | None, end: str | None, rows: int) -> None:
        problem = token_problem(self._options.verify, self._last_token, start, end, rows)
        if problem is None:
            return
        if self._options.strict_tokens:
            raise TokenOutOfOrder(channel=self.name, table=self.table, problem=problem)
        _log.warning("Channel %s of table %s: %s", self.name, self.table, problem)
