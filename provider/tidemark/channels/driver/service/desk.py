"""The channels that writers have open at the service, and the requests on them. HTTP is elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidemark.channels.driver.channel import Channel
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.service.bodies import rows_of_body
from tidemark.channels.driver.service.messages import (
    BulkStatus,
    ChannelAnswer,
    Opened,
    OpenRequest,
    RowProblem,
    RowsAnswer,
)
from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.names import key_of
from tidemark.errors import ChannelNotFound, ContinuationTokenStale, IngestBusy, InvalidArgument

__all__ = ["Body", "IngestDesk", "Tokens"]

_SHOWN_ERRORS = 100


@dataclass(frozen=True)
class Body:
    """A request's rows, as they came. `media_type`: of the rows; None for JSON lines. `limit`: of their bytes."""

    data: bytes
    media_type: str | None
    limit: int


@dataclass(frozen=True)
class Tokens:
    """`continuation`: the turn of the request. `start`, `end`: offset tokens of its first and its last row."""

    continuation: str
    start: str | None = None
    end: str | None = None


@dataclass
class _Served:
    """A channel that a writer has open. `appended`: requests that were taken, which its continuation token counts."""

    channel: Channel
    sequencer: int
    appended: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def token(self) -> str:
        return f"{self.sequencer}_{self.appended}"


class IngestDesk:
    """Opens, feeds, shows and drops channels. `records`: the committed records of a table's channels by key.
    `may_evolve`: whether writers may add columns. `all_bytes`: of rows of all tables that are not committed; beyond it
    no rows are taken.

    Methods may be called from several threads. Requests on one channel are handled one after the other.
    """

    def __init__(
        self,
        client: IngestClient,
        records: Callable[[str], dict[str, ChannelRecord]],
        *,
        may_evolve: bool = False,
        all_bytes: int = 1 << 30,
    ) -> None:
        self._client, self._records, self._may_evolve, self._all_bytes = client, records, may_evolve, all_bytes
        self._lock = threading.Lock()
        self._served: dict[tuple[str, str], _Served] = {}  # by table and channel; names of directories may have case

    @property
    def open_channels(self) -> int:
        """Number of channels that writers have open."""
        with self._lock:
            return len(self._served)

    @property
    def open_tables(self) -> set[str]:
        """Names of the tables that writers have open, as they wrote them."""
        with self._lock:
            return {served.channel.table for served in self._served.values()}

    def open(self, table: str, channel: str, request: OpenRequest, writer: str) -> Opened:
        """Open a channel for a writer; an earlier writer's continuation tokens are stale. Raises as `open_channel`."""
        if request.evolve_schema and not self._may_evolve:
            problem = "this service adds no columns; its operator can start it with --evolve-schema"
            raise InvalidArgument(argument="evolve_schema", value=True, problem=problem)
        opened = self._client.open_channel(
            channel,
            table,
            on_error=request.on_error,
            default_timezone=request.default_timezone,
            offset_token=request.offset_token,
            fail_on_uncommitted_rows=request.fail_on_uncommitted_rows,
            verify_tokens=request.verify_tokens,
            strict_tokens=request.strict_tokens,
            evolve_schema=request.evolve_schema,
            quarantine=request.quarantine,
            opened_by=writer,
        )
        served = _Served(opened, opened.status().record.client_sequencer)
        with self._lock:
            self._served[table, opened.name] = served
        return Opened(next_continuation_token=served.token, channel_status=_answer(served))

    def append(self, table: str, channel: str, body: Body, tokens: Tokens) -> RowsAnswer:
        """Take rows into the channel's buffer, with the token of the last of them.

        Raises ChannelNotFound if no writer has it open here, and what `insert_rows` raises. Raises
        ContinuationTokenStale for a request that came before or after its turn, and IngestBusy.
        """
        served = self._open_one(table, channel)
        self._require_room(table)
        with served.lock:
            if tokens.continuation != served.token:
                problem = f"It is {served.token!r}, and {tokens.continuation!r} was sent."
                raise ContinuationTokenStale(channel=channel, table=table, problem=problem)
            rows = rows_of_body(body.data, body.media_type, served.channel.spec, body.limit)
            answer = served.channel.insert_rows(rows, tokens.end, start_offset_token=tokens.start)
            served.appended += 1
            return RowsAnswer(
                next_continuation_token=served.token,
                rows=answer.rows,
                error_count=len(answer.errors),
                errors=[RowProblem.of(error) for error in answer.errors[:_SHOWN_ERRORS]],
            )

    def flush(self, table: str, channel: str) -> ChannelAnswer:
        """The channel's state once all rows taken before are committed. Raises as `Channel.flush`, ChannelNotFound."""
        served = self._open_one(table, channel)
        served.channel.flush()
        return _answer(served)

    def status(self, table: str, channels: Sequence[str]) -> BulkStatus:
        """The state of each channel, open here or not. Channels that do not exist are left out."""
        committed = self._records(table)
        found = {}
        for name in channels:
            key = key_of(name)
            if key in committed:
                served = self._served.get((table, key))
                status = served.channel.status() if served is not None else None
                found[name] = ChannelAnswer.of(key, table, committed[key], status)
        return BulkStatus(channel_statuses=found)

    def drop(self, table: str, channel: str, opening: tuple[int, int] | None = None) -> None:
        """Remove the channel with its token, also from a writer that has it open. A second run does nothing.
        `opening`: as in `IngestClient.drop_channel`.
        """
        self._client.drop_channel(channel, table, opening=opening)
        place = table, key_of(channel)
        with self._lock:
            served = self._served.get(place)
            if served is not None and opening in (None, served.channel.record_at_open.opening):
                del self._served[place]

    def _require_room(self, table: str) -> None:
        buffered = self._client.buffered_bytes()
        if buffered > self._all_bytes:
            self._client.flush_soon()
            problem = f"Rows of all tables of the service have {buffered:,} bytes that are not committed."
            raise IngestBusy(table=table, seconds=1, problem=problem)

    def _open_one(self, table: str, channel: str) -> _Served:
        with self._lock:
            served = self._served.get((table, key_of(channel)))
        if served is None:
            problem = "it was not opened at this service since its start"
            raise ChannelNotFound(channel=channel, table=table, known=f"other channels, and {problem}")
        return served


def _answer(served: _Served) -> ChannelAnswer:
    status = served.channel.status()
    return ChannelAnswer.of(served.channel.name, served.channel.table, status.record, status)
