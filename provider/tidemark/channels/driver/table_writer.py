"""One thread per table that commits the buffers of all its channels together (group commit).

A round is one commit, of orders (open, drop, set a token) or of buffers:

1. Buffers become one Parquet file, and each channel's record its next one.
2. The commit is based on the last known snapshot. If another commit touched one of these channels or the table's
   metadata, the table is read again. The fate of each channel follows from its record there: committed after all, lost
   to another writer, or to be tried again.
3. The committed version is read back. Only then flushes return.

A round whose outcome is unknown stays in flight until the table can be read. So a row is never committed twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from tidemark.channels.driver.batches import Batch
from tidemark.channels.driver.deliveries import Delivery, change_table, fulfil
from tidemark.channels.driver.history import MinuteReports
from tidemark.channels.driver.limits import Limits
from tidemark.channels.driver.open_channel import Group, OpenChannel
from tidemark.channels.driver.orders import Drop, Evolve, Open, Order, Pause, late
from tidemark.channels.driver.quarantine import QuarantineTables
from tidemark.channels.driver.table_commits import TableCommits
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.channels import ChannelRecord, StatusCode
from tidemark.channels.model.rows import BadRow
from tidemark.channels.planning.evolution import Evolution
from tidemark.channels.planning.owners import Ended
from tidemark.errors import (
    ChannelClosed,
    ChannelHasUncommittedRows,
    IngestBusy,
    IngestPaused,
    RowsNotCommitted,
    TidemarkError,
)

__all__ = ["TableWriter"]

_BETWEEN_READS = timedelta(seconds=1)
_SECONDS_TO_END = 10.0
_PAUSES = tuple(timedelta(seconds=seconds) for seconds in (0.5, 1, 2, 5, 10, 30))  # after failed commits in a row


class TableWriter:
    """The channels of one client to one table. Methods may be called from several threads."""

    def __init__(
        self,
        commits: TableCommits,
        limits: Limits,
        reports: MinuteReports,
        quarantine: QuarantineTables,
        *,
        clock: Callable[[], datetime],
        token: Callable[[], str],
    ) -> None:
        self._commits, self._limits, self._clock, self._token = commits, limits, clock, token
        self._reports, self._quarantine = reports, quarantine
        self._changed = threading.Condition()
        self._channels: dict[str, OpenChannel] = {}
        self._orders: list[Order] = []
        self._changes: list[Pause | Evolve] = []
        self._in_flight: Delivery | None = None
        self._flush_wanted = self._read_wanted = self._is_stopping = False
        self._requests = 0  # orders and flushes so far: each ends the pause after a failed commit
        self._read_at, self._failures = clock(), 0
        self._problem: TidemarkError | None = None
        self._thread = threading.Thread(target=self._run, name=f"channels of {commits.name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs. It ends by itself only after an error that nobody foresaw."""
        return self._thread.is_alive()

    @property
    def buffered_bytes(self) -> int:
        """Bytes of all rows that are not committed."""
        with self._changed:
            return self._buffered()

    @property
    def spec(self) -> TableSpec:
        """The table at the last known version."""
        return self._commits.spec

    def open(self, order: Open, *, fail_on_uncommitted_rows: bool, quarantine: str | None = None) -> OpenChannel:
        """The channel for its new owner. Rows that an earlier owner in this client had buffered are discarded.
        `quarantine`: the URI of the table that takes bad rows.

        Raises ChannelHasUncommittedRows, ChannelTokenLost, what a commit raises, and errors of the quarantine.
        """
        with self._changed:
            earlier = self._channels.get(order.key)
            if (
                earlier is not None
                and fail_on_uncommitted_rows
                and earlier.ended is None
                and earlier.settled < earlier.taken
            ):
                raise ChannelHasUncommittedRows(channel=order.key, table=order.table, rows=self._rows_of(earlier))
            if earlier is not None:
                at = self._clock()
                earlier.end(Ended(StatusCode.TAKEN, f"{order.by} opened it again at {at:%Y-%m-%d %H:%M:%S} UTC."))
        record = self.fulfil(order)
        assert record is not None  # an open ends with one
        channel = OpenChannel(order.key, order.table, record, record.offset_token, quarantine)
        if quarantine is not None:
            self._quarantine.begin(quarantine, order.key, record, self._commits.uri)
        with self._changed:
            present = self._channels.get(order.key)
            is_later = present is not None and present.record.client_sequencer > record.client_sequencer
            if present is not None and present.ended is None and is_later:
                channel.end(Ended(StatusCode.TAKEN, f"{present.record.opened_by} opened it at the same time."))
            else:
                self._channels[order.key] = channel
                self._reports.note(order.key, record)
        self._quarantine.try_complete(order.key, record)
        return channel

    def fulfil(self, order: Order) -> ChannelRecord | None:
        """The record after the order. Raises what refuses it, and ChangeNotCommitted if the table does not answer."""
        with self._changed:
            self._orders.append(order)
            self._requests += 1
            self._changed.notify_all()
        found: ChannelRecord | None = self._result_of(order)
        return found

    def pause(self, until: datetime) -> None:
        """Return once nobody commits rows until then. Raises ChangeNotCommitted if the table does not answer."""
        self._change(Pause(until=until))

    def evolve(self, evolution: Evolution) -> None:
        """Return once the table has the columns. Raises what a commit raises, and ChangeNotCommitted."""
        self._change(Evolve(evolution=evolution))

    def insert(
        self, channel: OpenChannel, batch: Batch, spec: TableSpec, token: str | None, bad: Sequence[BadRow] = ()
    ) -> int:
        """Buffer a batch of the schema `spec`, and its bad rows. The number of the insert. Waits while the buffers are
        full.

        Raises ChannelInvalid, ChannelClosed, and IngestBusy if the buffers stay full.
        """
        with self._changed:
            has_room = self._changed.wait_for(
                lambda: channel.ended is not None or not self._works or self._buffered() <= self._limits.all_bytes,
                self._limits.insert_patience.total_seconds(),
            )
            self.require_open(channel)
            if not has_room:
                self.flush_soon()
                seconds = max(1, round(self._limits.lag.total_seconds()))
                problem = str(self._problem) if self._problem is not None else "They are being committed."
                raise IngestBusy(table=self._commits.name, seconds=seconds, problem=problem)
            was_empty = channel.oldest is None
            number = channel.add(batch, spec, token, self._clock(), bad)
            if was_empty or channel.byte_count >= self._limits.channel_bytes:
                self._changed.notify_all()
            return number

    def flush(self, channel: OpenChannel, through: int) -> None:
        """Return once the insert of that number is committed. Raises ChannelInvalid, RowsNotCommitted."""
        with self._changed:
            if channel.settled < through and channel.ended is None:
                self._flush_wanted = True
                self._requests += 1
                self._changed.notify_all()
            self._changed.wait_for(
                lambda: channel.ended is not None or not self._works or channel.settled >= through,
                self._limits.patience.total_seconds(),
            )
            if channel.settled < through:
                self.require_open(channel)
                raise RowsNotCommitted(table=self._commits.name, problem=self._why_not())

    def flush_soon(self) -> None:
        """Commit what is buffered, and wait for nothing."""
        with self._changed:
            self._flush_wanted = True
            self._changed.notify_all()

    def close(self, channel: OpenChannel, *, drop: bool) -> None:
        """Flush the channel and end it for this client; `drop` removes it with its token. A second run does nothing.

        Raises what `flush` raises; ChannelInvalid only if no call has raised it for this channel yet.
        """
        if channel.is_closed or channel.is_told:
            channel.is_closed = True
            return
        self.flush(channel, channel.taken)
        if drop:
            self._quarantine.try_complete(channel.key, channel.record)
            self.fulfil(Drop(key=channel.key, table=channel.table, own=channel.record))
        with self._changed:
            channel.is_closed = True
            if self._channels.get(channel.key) is channel:
                del self._channels[channel.key]

    def latest_token(self, channel: OpenChannel) -> str | None:
        """The committed offset token in the table now. Raises ChannelInvalid if this writer lost the channel."""
        found = self._commits.latest_record(channel.key)
        with self._changed:
            if channel.lose(found, is_in_flight=any(one.channel is channel for one in self._groups())):
                self._changed.notify_all()
            if channel.ended is not None:
                raise channel.told_of(channel.ended)
        return found.offset_token if found is not None else None

    def newest_spec(self) -> TableSpec:
        """The table as it is now, or as it was a second ago. The last known one if it cannot be read."""
        with self._changed:
            if self._clock() - self._read_at >= _BETWEEN_READS:
                self.read_soon()
                self._changed.wait_for(lambda: not self._read_wanted, self._limits.patience.total_seconds())
            return self.spec

    def read_soon(self) -> None:
        """Read the table again before the next commit: its log has a new checkpoint, or the schema may have changed."""
        with self._changed:
            self._read_wanted = True
            self._changed.notify_all()

    def latest_records(self) -> dict[str, ChannelRecord]:
        """Key → committed record of all channels in the table now."""
        return self._commits.latest_records()

    def require_open(self, channel: OpenChannel) -> None:
        """Raises ChannelInvalid, or ChannelClosed, even if nothing commits rows any more."""
        if channel.ended is not None:
            raise channel.told_of(channel.ended)
        if channel.is_closed or not self._works:
            raise ChannelClosed(channel=channel.key, table=channel.table)

    def stop(self) -> None:
        """End the thread after its present work. A commit that hangs ends with the process. Nothing is flushed."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._thread.join(_SECONDS_TO_END)
        self._reports.write_now()

    @property
    def _works(self) -> bool:
        """Whether somebody commits rows: not after `stop`, and not in a process that was forked."""
        return self.is_alive and not self._is_stopping

    def _change(self, order: Pause | Evolve) -> None:
        with self._changed:
            self._changes.append(order)
            self._requests += 1
            self._changed.notify_all()
        self._result_of(order)

    def _result_of(self, order: Order | Pause | Evolve) -> Any:
        with suppress(TimeoutError):
            return order.done.result(self._limits.patience.total_seconds())
        with self._changed:
            is_waiting = any(one is order for one in (*self._orders, *self._changes))
            self._orders = [one for one in self._orders if one is not order]
            self._changes = [one for one in self._changes if one is not order]
        if order.done.done():
            return order.done.result()
        raise late(order, self._commits.name, self._why_not(), is_taken_back=is_waiting)

    def _run(self) -> None:
        try:
            while self._round():
                pass
        except BaseException as error:
            self._end_all(Ended(StatusCode.MUST_REOPEN, f"its client failed: {error!r}."))
            raise

    def _round(self) -> bool:
        """Wait for work, and do one commit. False at the end."""
        with self._changed:
            while not (self._is_stopping or self._has_work()):
                known = (self._seconds_left(), self._reports.seconds_left())
                self._changed.wait(min((seconds for seconds in known if seconds is not None), default=None))
                self._reports.write_if_due()
            if self._is_stopping:
                return False
            changes, self._changes = self._changes, []
            orders = self._next_orders()
            reads = self._read_wanted and self._in_flight is None and not orders
        for one in changes:
            change_table(one, self._commits)
        if orders:
            fulfil(orders, self._commits, self._clock)
            self._check_again(orders)
        elif reads:
            self._read()
        else:
            self._deliver()
        return True

    def _check_again(self, orders: Sequence[Order]) -> None:
        """An order may have ended a channel that this client has open: its next commit looks at its record first."""
        with self._changed:
            for order in orders:
                if order.key in self._channels:
                    self._channels[order.key].generation = -1

    def _has_work(self) -> bool:
        ordered = self._orders or self._changes or self._read_wanted
        return bool(ordered) or self._in_flight is not None or self._is_due()

    def _read(self) -> None:
        try:
            self._commits.refresh()
        except TidemarkError:
            self._commits.forget()  # the next commit reads the table, and reports what is wrong
        with self._changed:
            self._read_wanted, self._read_at = False, self._clock()
            self._changed.notify_all()

    def _end_all(self, ended: Ended) -> None:
        with self._changed:
            for channel in self._channels.values():
                channel.end(ended)
            self._changed.notify_all()

    def _deliver(self) -> None:
        """One round of buffers: that in flight, or a new one."""
        with self._changed:
            if self._in_flight is None:
                self._flush_wanted = False
                groups = [channel.take(self._clock()) for channel in self._channels.values() if channel.oldest]
                self._in_flight = Delivery(groups, self._quarantine, self._clock, self._token)
            delivery = self._in_flight
        try:
            delivery.run(self._commits)
        except TidemarkError as problem:
            self._failed(problem)
        else:
            self._failures, self._problem = 0, None
            self._in_flight = None
        with self._changed:
            for group in delivery.settled:
                group.channel.settled = group.through
                self._reports.note(group.channel.key, group.channel.record)
            self._reports.write_if_due()
            self._changed.notify_all()

    def _failed(self, problem: TidemarkError) -> None:
        self._problem = problem
        wait = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        if isinstance(problem, IngestPaused):
            wait = max(_BETWEEN_READS, problem.facts["until"] - self._clock())
        else:
            self._failures += 1
        with self._changed:
            known = self._requests
            self._changed.wait_for(lambda: self._is_stopping or self._requests != known, wait.total_seconds())

    def _next_orders(self) -> list[Order]:
        """The orders of the next commit: one for each channel, in their order."""
        if self._in_flight is not None:
            return []
        taken: dict[str, Order] = {}
        for order in self._orders:
            taken.setdefault(order.key, order)
        self._orders = [order for order in self._orders if taken[order.key] is not order]
        return list(taken.values())

    def _is_due(self) -> bool:
        if self._flush_wanted or any(one.byte_count >= self._limits.channel_bytes for one in self._channels.values()):
            return True
        left = self._seconds_left()
        return left is not None and left <= 0

    def _seconds_left(self) -> float | None:
        """Seconds until the oldest buffered row has waited for the lag; None without any."""
        waiting = [channel.oldest for channel in self._channels.values() if channel.oldest is not None]
        if not waiting:
            return None
        return (min(waiting) + self._limits.lag - self._clock()).total_seconds()

    def _groups(self) -> list[Group]:
        return list(self._in_flight.groups) if self._in_flight is not None else []

    def _buffered(self) -> int:
        in_flight = sum(group.byte_count for group in self._groups())
        return in_flight + sum(channel.byte_count for channel in self._channels.values())

    def _rows_of(self, channel: OpenChannel) -> int:
        in_flight = sum(group.step.rows_inserted for group in self._groups() if group.channel is channel)
        return channel.row_count + in_flight

    def _why_not(self) -> str:
        seconds = self._limits.patience.total_seconds()
        return str(self._problem) if self._problem is not None else f"no commit ended within {seconds:.0f} seconds."
