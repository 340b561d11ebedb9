"""The ingest service from elsewhere: channels, written as by a client that commits by itself, and pipes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from tidemark.channels.driver.batches import rows_of_any_form
from tidemark.channels.model.channels import StatusCode
from tidemark.channels.model.endings import ClosedUnlessFailed
from tidemark.channels.model.rows import InsertAnswer, RowError, RowErrorKind
from tidemark.channels.planning.names import key_of
from tidemark.channels.planning.refusals import refusal_of
from tidemark.channels.planning.tokens import require_token, require_verifier_name
from tidemark.channels.planning.values.plain import plain_value
from tidemark.errors import (
    ChannelInvalid,
    IngestServiceRefused,
    IngestUnavailable,
    InvalidArgument,
    RowsNotCommitted,
    TidemarkError,
)

__all__ = ["ServiceChannel", "ServiceClient", "body_of"]

_PATIENCE = 120.0  # seconds, for an answer and while the service's buffers are full
_ARROW, _LINES = "application/vnd.apache.arrow.stream", "application/x-ndjson"


class ServiceClient(ClosedUnlessFailed):
    """Opens channels at an ingest service, and names files for its pipes. Its end, as a context manager, flushes the
    channels, unless there was an error.
    """

    def __init__(self, url: str, token: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._clock = url.rstrip("/"), clock
        try:
            import httpx
        except ImportError as error:
            remedy = "Install it: pip install 'airflow-provider-tidemark[ingest]'"
            raise IngestUnavailable(problem="the package httpx is missing", remedy=remedy) from error
        self._failures: type[Exception] = httpx.HTTPError
        self._http = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE)
        self._channels: list[ServiceChannel] = []

    def open_channel(self, name: str, table: str, **how: Any) -> ServiceChannel:
        """The channel of that name, for this writer alone. `how`: on_error, default_timezone, offset_token,
        fail_on_uncommitted_rows, verify_tokens (by name), strict_tokens, evolve_schema, quarantine, as in
        `IngestClient.open_channel`.

        Raises InvalidArgument, TableNotSupported, ChannelHasUncommittedRows, ChannelTokenLost, IngestServiceRefused
        for other refusals, and IngestUnavailable if the service does not answer.
        """
        require_verifier_name(how.get("verify_tokens"))
        require_token(how.get("offset_token"))
        key_of(name)
        channel = ServiceChannel(self, name, table, self.ask("PUT", _place(table, name), json=how))
        others = (one for one in self._channels if (one.table, key_of(one.name)) != (table, key_of(name)))
        self._channels = [*others, channel]  # a channel has one writer
        return channel

    def drop_channel(self, name: str, table: str) -> None:
        """Remove a channel and its token. Nothing happens if there is none."""
        self.ask("DELETE", _place(table, name))

    def insert_files(
        self, pipe: str, files: Sequence[str] | Mapping[str, int], *, request_id: str | None = None
    ) -> dict[str, Any]:
        """Put up to 5,000 files into the queue of a pipe; its next run loads them, each once. A second run finds them
        there. `files`: names below the location of the pipe's statement, perhaps with their sizes.

        Answers {requestId, status, unmatchedPatternFirstNFiles} once the names are stored. Raises IngestServiceRefused,
        RowsNotCommitted after two minutes in which the service was busy, and IngestUnavailable without an answer: send
        the files again.
        """
        sizes = files if isinstance(files, Mapping) else dict.fromkeys((files,) if isinstance(files, str) else files)
        body = {"files": [{"path": name, "size": size} for name, size in sizes.items()]}
        return self.ask("POST", f"{_pipe(pipe)}/insertFiles", params=_given(requestId=request_id), json=body)

    def insert_report(self, pipe: str, *, begin_mark: str | None = None) -> dict[str, Any]:
        """The loads of a pipe in the last 10 minutes, at most 10,000. `begin_mark`: the nextBeginMark of an earlier
        report, to see only later ones. Raises IngestServiceRefused.
        """
        return self.ask("GET", f"{_pipe(pipe)}/insertReport", params=_given(beginMark=begin_mark))

    def load_history(self, pipe: str, start: datetime, end: datetime | None = None) -> dict[str, Any]:
        """The loads of a pipe that ended from `start` on and before `end`, or until now. If completeResult is false,
        rangeEndTime is the start of the next call. Raises IngestServiceRefused.
        """
        span = _given(startTimeInclusive=_utc(start), endTimeExclusive=None if end is None else _utc(end))
        return self.ask("GET", f"{_pipe(pipe)}/loadHistoryScan", params=span)

    def flush(self) -> None:
        """Return once everything inserted before is committed. Raises as `ServiceChannel.flush`."""
        for channel in self._channels:
            channel.flush()

    def close(self) -> None:
        """Close all channels that are open, and end. A second run does nothing. Raises as `ServiceChannel.close`."""
        try:
            for channel in self._channels:
                channel.close()
        finally:
            self.discard()

    def discard(self) -> None:
        """End without a flush. The service still commits the rows that it has taken."""
        self._channels = []
        self._http.close()

    def ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        """The answer of the service. It is asked again while its buffers are full.

        Raises the error of the answer if a client of one's own raises it too, and IngestServiceRefused for others.
        Raises RowsNotCommitted after two minutes, and IngestUnavailable without an answer.
        """
        until = self._clock() + _PATIENCE
        while True:
            try:
                answer = self._http.request(method, self._url + path, **content)
            except self._failures as error:
                remedy = "Open the channel again once the service runs, and continue after its committed token."
                raise IngestUnavailable(problem=f"{self._url} does not answer: {error}", remedy=remedy) from error
            if answer.status_code != 429:
                break
            if self._clock() >= until:
                raise RowsNotCommitted(table=path, problem=str(answer.json().get("message")))
            time.sleep(min(float(answer.headers.get("retry-after", 1)), max(0.0, until - self._clock())))
        if answer.is_success:
            return dict(answer.json()) if answer.content else {}
        raise self._refused(answer)

    def _refused(self, answer: Any) -> TidemarkError:
        try:
            said = answer.json()
        except ValueError:
            said = {}
        said = said if isinstance(said, dict) else {}
        same = refusal_of(said.get("error"), said.get("facts"))
        if same is not None:
            return same
        message = str(said.get("message") or said.get("detail") or f"status {answer.status_code}")
        return IngestServiceRefused(url=self._url, message=message, error=said.get("error"), code=said.get("code"))

    def _end_after_error(self) -> None:
        self.discard()


class ServiceChannel(ClosedUnlessFailed):
    """The result of `ServiceClient.open_channel`. One channel has one writer: rows keep their order within it.

    `name`, `table`: as they were given. `offset_token`: the committed one at the open.
    """

    def __init__(self, client: ServiceClient, name: str, table: str, opened: Mapping[str, Any]) -> None:
        self._client, self._place = client, _place(table, name)
        self._is_closed = self._is_told = False
        self._turn, self._opens = opened["next_continuation_token"], _opens(opened["channel_status"])
        self.name, self.table = name, table
        self.offset_token: str | None = opened["channel_status"]["last_committed_offset_token"]

    def insert_rows(
        self, rows: Any, end_offset_token: str | None = None, *, start_offset_token: str | None = None
    ) -> InsertAnswer:
        """Send rows, with the token of the last of them. `rows`: dictionaries, an Arrow table or batch, a pandas frame,
        or bytes of JSON lines.

        The answer has the first 100 errors, and the number of all as `error_count`. Raises RowsRefused,
        TokenOutOfOrder, ChannelInvalid, and RowsNotCommitted if the buffers stay full. Raises IngestServiceRefused if
        another writer has opened the channel at the service. Raises IngestUnavailable if nobody knows whether the rows
        were taken: open the channel again.
        """
        require_token(start_offset_token, "start_offset_token")
        require_token(end_offset_token, "end_offset_token")
        body, media_type = body_of(rows)
        asked = {"offset_token": end_offset_token, "start_offset_token": start_offset_token}
        said = self._ask(
            f"{self._place}/rows",
            params={
                "continuation_token": self._turn,
                **{name: text for name, text in asked.items() if text is not None},
            },
            content=body,
            headers={"Content-Type": media_type},
        )
        self._turn = said["next_continuation_token"]
        errors = (
            RowError(one["row_index"], one["column"], RowErrorKind(one["kind"]), one["message"])
            for one in said["errors"]
        )
        shown = tuple(errors)
        return InsertAnswer(said["rows"], shown, said["error_count"] - len(shown))

    def insert_row(self, row: Mapping[str, Any], offset_token: str | None = None) -> InsertAnswer:
        """Send one row; as `insert_rows`."""
        return self.insert_rows([row], offset_token)

    def flush(self) -> None:
        """Return once all rows and tokens inserted before are committed. Raises ChannelInvalid, even if the new writer
        is at the same service, and IngestServiceRefused.
        """
        if not self._is_closed:
            self._require_own(self._ask(f"{self._place}/flush"))

    def latest_committed_offset_token(self) -> str | None:
        """The token of the last record in the table, asked at each call; None before the first.

        Raises ChannelInvalid if another writer has the channel now, or if it was dropped.
        """
        return self._require_own(self.status())

    def _ask(self, path: str, **content: Any) -> dict[str, Any]:
        try:
            return self._client.ask("POST", path, **content)
        except ChannelInvalid:
            self._is_told = True
            raise

    def _require_own(self, said: Mapping[str, Any]) -> str | None:
        """The token of the channel's state. Raises ChannelInvalid if this writer has lost it."""
        token: str | None = said.get("last_committed_offset_token")
        loss = self._loss(said)
        if loss is not None:
            self._is_told = True
            code, problem = loss
            raise ChannelInvalid(channel=self.name, table=self.table, code=code, problem=problem, offset_token=token)
        return token

    def _loss(self, said: Mapping[str, Any]) -> tuple[int, str] | None:
        """Code and reason of the channel's end, by its state."""
        if not said:
            return int(StatusCode.GONE), "it was dropped, or its table was recreated."
        if said["channel_status_code"] != StatusCode.OK:
            return int(said["channel_status_code"]), str(said["channel_status_message"])
        if _opens(said) != self._opens:
            return int(StatusCode.TAKEN), f"{said['opened_by']} opened it."
        return None

    def status(self) -> dict[str, Any]:
        """The channel's state as the service answers it; nothing if it was dropped."""
        path = f"{_place(self.table)}/channel-status"
        found = self._client.ask("POST", path, json={"channel_names": [self.name]})["channel_statuses"]
        return dict(found.get(self.name, {}))

    def close(self, *, drop: bool = False) -> None:
        """Flush, then end the channel for this client; `drop` removes it with its token. A second run does nothing.

        Raises what `flush` raises; ChannelInvalid only if no call has raised it for this channel yet. A channel that
        another writer has opened since is not dropped.
        """
        if self._is_closed or self._is_told:
            self._is_closed = True
            return
        self.flush()
        self._is_closed = True
        if drop:
            own = dict(zip(("created_on_ms", "client_sequencer"), self._opens, strict=True))
            self._client.ask("DELETE", self._place, params=own)


def _opens(status: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers that no other open of the channel has."""
    return int(status["created_on_ms"]), int(status["client_sequencer"])


def _place(table: str, channel: str | None = None) -> str:
    place = f"/v1/tables/{quote(table, safe='')}"
    return place if channel is None else f"{place}/channels/{quote(channel, safe='')}"


def _pipe(pipe: str) -> str:
    return f"/v1/data/pipes/{quote(pipe, safe='')}"


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _utc(moment: datetime) -> str:
    """The time in UTC; one without a zone is in UTC."""
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)).isoformat()


def body_of(rows: Any) -> tuple[bytes, str]:
    """The rows as the body of a request, and its media type. Raises InvalidArgument."""
    if isinstance(rows, bytes):
        return rows, _LINES
    rows = rows_of_any_form(rows)
    if isinstance(rows, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        return sink.getvalue().to_pybytes(), _ARROW
    try:
        return "".join(f"{json.dumps(row, default=_plain)}\n" for row in rows).encode(), _LINES
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"a row has no form in JSON: {error}; send an Arrow table"
        raise InvalidArgument(argument="rows", value="(a row)", problem=problem) from None


def _plain(value: Any) -> Any:
    """A value that JSON has no form for, as the service takes it."""
    value = plain_value(value)
    if value is None or isinstance(value, bool):
        return value
    if hasattr(value, "__array__") and hasattr(value, "tolist"):  # of NumPy
        return value.tolist()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    problem = f"a value of {type(value).__name__} has no form in JSON; send an Arrow table"
    raise InvalidArgument(argument="rows", value="(a row)", problem=problem)
