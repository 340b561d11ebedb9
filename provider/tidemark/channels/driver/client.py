"""The ingest client: channels to several tables, and one table writer for each."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from tidemark.channels.driver.channel import Channel, ChannelOptions
from tidemark.channels.driver.history import HistoryTable, MinuteReports
from tidemark.channels.driver.kernel import KernelEngine, KernelTable
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.limits import Limits
from tidemark.channels.driver.orders import Drop, Open, SetToken
from tidemark.channels.driver.quarantine import QuarantineTables
from tidemark.channels.driver.table_commits import TableCommits
from tidemark.channels.driver.table_writer import TableWriter
from tidemark.channels.driver.upkeep import Upkeep
from tidemark.channels.model.endings import ClosedUnlessFailed
from tidemark.channels.model.rows import OnError
from tidemark.channels.planning.lag import lag_of
from tidemark.channels.planning.names import key_of
from tidemark.channels.planning.records import millis
from tidemark.channels.planning.tokens import TokenVerifier, require_token, verifier_of
from tidemark.errors import InvalidArgument, TidemarkError
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_tails import log_tail
from tidemark.lake.safe_commits import require_safe_commits
from tidemark.model.own_tables import HISTORY_SUFFIX

__all__ = ["IngestClient"]

_LONGEST_PAUSE = 600


class IngestClient(ClosedUnlessFailed):
    """Opens channels, and commits what they buffer: within `max_client_lag`, all channels of a table together.

    Use it as a context manager: its end flushes and closes all channels, or discards what is buffered after an error.
    """

    def __init__(
        self,
        name: str,
        engine: KernelEngine,
        locate: Callable[[str], str],
        *,
        options: Mapping[str, Any],
        max_client_lag: str | int = "1 second",
        limits: Limits | None = None,
        only_writer: bool = False,
        history: bool = True,
        locate_new: Callable[[str], str] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`only_writer`: whether nobody else writes its tables, which matters on S3 alone. `history`: whether it writes
        the history of channels beside each table, once a minute. `locate_new`: the URI of a table that may not exist.
        """
        self._name, self._engine, self._locate, self._options = name, engine, locate, options
        self._only_writer, self._history = only_writer, history
        self._locate_new = locate_new or locate
        self._limits = limits or Limits(lag=lag_of(max_client_lag))
        self._clock = clock
        self._lock = threading.Lock()
        self._writers: dict[str, TableWriter] = {}
        self._channels: list[Channel] = []
        self._upkeep = Upkeep()
        self._quarantine = QuarantineTables(engine, options, _new_token, later=self._upkeep.do)

    def open_channel(
        self,
        name: str,
        table: str,
        *,
        on_error: str = "abort",
        default_timezone: str = "UTC",
        offset_token: str | None = None,
        fail_on_uncommitted_rows: bool = False,
        verify_tokens: TokenVerifier | str | None = None,
        strict_tokens: bool = False,
        evolve_schema: bool = False,
        quarantine: str | None = None,
        opened_by: str | None = None,
    ) -> Channel:
        """The channel of that name, for this writer alone: an earlier writer can commit no more.

        `name`: without case, unless in double quotes. `on_error`: abort, continue or skip_batch. `offset_token`:
        replaces the committed token, also without rows. `fail_on_uncommitted_rows`: refuse if an earlier writer of this
        client has rows that are not committed; else they are discarded. `verify_tokens`: the order of tokens, as a
        function or "numeric", for whole numbers that grow. `strict_tokens`: a batch out of order is an error, not a
        warning. `evolve_schema`: rows may add columns to the table, and remove NOT NULL. `quarantine`: a table that
        gets bad rows, each once, with on_error="continue"; it is made if it does not exist. `opened_by`: the writer, if
        it is another than the client.

        Raises InvalidArgument, TableNotFound, TableNotSupported, CommitsMayBeLost, ChannelHasUncommittedRows,
        ChannelTokenLost, KernelFailed, and ChangeNotCommitted if no commit succeeds in two minutes.
        """
        require_token(offset_token)
        verify = verifier_of(verify_tokens, strict=strict_tokens)
        options = ChannelOptions(_on_error(on_error), _zone(default_timezone), verify, strict_tokens, evolve_schema)
        writer = self._writer(table)
        order = Open(key=key_of(name), table=table, by=opened_by or self._name, token=offset_token)
        bin_uri = self._prepared(quarantine, options.on_error)
        opened = writer.open(order, fail_on_uncommitted_rows=fail_on_uncommitted_rows, quarantine=bin_uri)
        channel = Channel(opened, writer, options, self._clock)
        with self._lock:
            self._channels = [*(known for known in self._channels if not known.is_spent), channel]
        return channel

    def _prepared(self, quarantine: str | None, on_error: OnError) -> str | None:
        if quarantine is None:
            return None
        if on_error is not OnError.CONTINUE:
            problem = f'on_error={on_error} takes no batch with bad rows; give on_error="continue"'
            raise InvalidArgument(argument="quarantine", value=quarantine, problem=problem)
        uri = self._locate_new(quarantine)
        require_safe_commits(quarantine, uri, self._engine.log_store(uri), only_writer=self._only_writer)
        self._quarantine.prepare(uri)
        return uri

    def complete_quarantines(self, table: str) -> tuple[str, ...]:
        """Add bad rows to their quarantine tables, of channels whose writers have died before. A second run does
        nothing. The URIs of the quarantine tables that got bad rows of the channels' latest commits.
        """
        found = set()
        for key, record in self._writer(table).latest_records().items():
            self._quarantine.try_complete(key, record)
            found |= {record.pending.uri} if record.pending is not None else set()
        return tuple(sorted(found))

    def shorten_log(self, table: str) -> None:
        """Remove commits that are older than the table's log retention. A second run does nothing. Raises
        KernelFailed.
        """
        self.shorten_log_at(self._locate(table))

    def shorten_log_at(self, uri: str) -> None:
        """As `shorten_log`, of the table at a URI."""
        self._engine.table(uri).shorten_log(log_tail(DeltaLog.open(uri, self._options).storage))

    def drop_channel(self, name: str, table: str, *, opening: tuple[int, int] | None = None) -> None:
        """Remove a channel and its token, also from a writer that has it open. Nothing happens if there is none.
        `opening`: the created_on and client_sequencer of an open; a channel that was opened since stays.
        """
        writer, key = self._writer(table), key_of(name)
        record = writer.latest_records().get(key)
        if opening is not None and (record is None or record.opening != opening):
            return
        if record is not None:
            self._quarantine.try_complete(key, record)
        writer.fulfil(Drop(key=key, table=table, own=None if opening is None else record))

    def set_offset_token(self, name: str, table: str, token: str | None) -> None:
        """Give a channel another committed token. Its writer is not fenced. Raises ChannelNotFound,
        InvalidArgument, ChangeNotCommitted.
        """
        require_token(token, "token")
        self._writer(table).fulfil(SetToken(key=key_of(name), table=table, token=token))

    def idle_channels(self, table: str, *, idle_since: datetime) -> list[str]:
        """The channels of a table without a row or a token since `idle_since`, by name."""
        records = self._writer(table).latest_records()
        return sorted(key for key, record in records.items() if record.last_ingest < millis(idle_since))

    def sweep(self, table: str, *, idle_since: datetime) -> list[str]:
        """Remove the channels of a table without a row or a token since `idle_since`. Returns their names.

        A channel that is used again in this moment stays.
        """
        writer, swept = self._writer(table), []
        for key in self.idle_channels(table, idle_since=idle_since):
            left = writer.fulfil(Drop(key=key, table=table, idle_since=millis(idle_since)))
            swept += [] if left is not None else [key]
        return swept

    def pause(self, table: str, seconds: float) -> datetime:
        """Let nobody commit rows to a table for some seconds, at most ten minutes; rows wait in buffers. Returns
        the end, UTC.

        DML then meets no commit of a channel. Raises InvalidArgument, ChangeNotCommitted.
        """
        if not 0 < seconds <= _LONGEST_PAUSE:
            problem = f"it must be more than 0, and at most {_LONGEST_PAUSE}"
            raise InvalidArgument(argument="seconds", value=seconds, problem=problem)
        until = self._clock() + timedelta(seconds=seconds)
        self._writer(table).pause(until)
        return until

    def buffered_bytes(self) -> int:
        """Bytes of all rows that are not committed. It waits for no table that is being opened."""
        return sum(writer.buffered_bytes for writer in list(self._writers.values()))

    def flush_soon(self) -> None:
        """Commit everything that is buffered, and wait for nothing."""
        for writer in list(self._writers.values()):
            writer.flush_soon()

    def flush(self) -> None:
        """Return once everything inserted before is committed. Raises the first channel's ChannelInvalid, or
        RowsNotCommitted.
        """
        for channel in self._open_channels():
            channel.flush()

    def close(self) -> None:
        """Flush and close all channels. A second run does nothing. Raises as `flush`, after all were tried."""
        first: TidemarkError | None = None
        for channel in self._open_channels():
            try:
                channel.close()
            except TidemarkError as error:
                first = first or error
        self._stop()
        if first is not None:
            raise first

    def discard(self) -> None:
        """End without a flush: rows that are not committed are lost, and come again by their tokens."""
        self._stop()

    def _end_after_error(self) -> None:
        self.discard()

    def _open_channels(self) -> list[Channel]:
        with self._lock:
            return [channel for channel in self._channels if channel.is_open]

    def _stop(self) -> None:
        with self._lock:
            writers, self._writers = list(self._writers.values()), {}
        for writer in writers:
            writer.stop()
        self._upkeep.stop()

    def _writer(self, table: str) -> TableWriter:
        uri = self._locate(table)
        with self._lock:
            if uri not in self._writers or not self._writers[uri].is_alive:
                self._writers[uri] = self._new_writer(table, uri)
            return self._writers[uri]

    def _new_writer(self, table: str, uri: str) -> TableWriter:
        require_safe_commits(table, uri, self._engine.log_store(uri), only_writer=self._only_writer)
        kernel = self._engine.table(uri)
        commits = TableCommits(
            table, kernel, LakeFiles(uri, self._options), DeltaLog.open(uri, self._options), clock=self._clock
        )
        reports = self._reports(table, uri)
        writer = TableWriter(commits, self._limits, reports, self._quarantine, clock=self._clock, token=_new_token)
        commits.later = lambda work: self._upkeep.do(lambda: _keep_short(kernel, writer, work))
        return writer

    def _reports(self, table: str, uri: str) -> MinuteReports:
        if not self._history:
            return MinuteReports(lambda records, at: None, self._clock)
        name, place = table + HISTORY_SUFFIX, uri + HISTORY_SUFFIX
        history = HistoryTable(name, self._engine.table(place), LakeFiles(place, self._options), _new_token)
        return MinuteReports(lambda records, at: self._upkeep.do(lambda: history.add(records, at)), self._clock)


def _new_token() -> str:
    return str(uuid.uuid4())


def _keep_short(kernel: KernelTable, writer: TableWriter, work: Sequence[Any]) -> None:
    """Checkpoints of the log, if a commit has left one. If it fails, later commits leave others."""
    if kernel.do_later(work):
        writer.read_soon()


def _on_error(text: str) -> OnError:
    try:
        return OnError(text.lower())
    except ValueError:
        problem = f"it must be one of {', '.join(OnError)}"
        raise InvalidArgument(argument="on_error", value=text, problem=problem) from None


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        problem = "no time zone has that name, such as Europe/Berlin"
        raise InvalidArgument(argument="default_timezone", value=name, problem=problem) from None
