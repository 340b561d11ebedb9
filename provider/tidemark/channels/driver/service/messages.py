"""Requests and answers of the ingest service, as its OpenAPI document shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tidemark.channels.model.channels import ChannelRecord, ChannelStatus, StatusCode
from tidemark.channels.model.rows import RowError

__all__ = [
    "BulkStatus",
    "ChannelAnswer",
    "OpenRequest",
    "Opened",
    "Problem",
    "RowProblem",
    "RowsAnswer",
    "StatusRequest",
]

Token = Annotated[str, Field(max_length=10_000)]


class Strict(BaseModel):
    """A request: a field that nobody knows is an error."""

    model_config = ConfigDict(extra="forbid")


class OpenRequest(Strict):
    """How a channel is opened; every field may be left out."""

    on_error: str = Field(default="abort", description="abort, continue or skip_batch")
    default_timezone: str = Field(default="UTC", description="Zone of times without an offset")
    offset_token: Token | None = Field(default=None, description="Replaces the committed offset token")
    fail_on_uncommitted_rows: bool = Field(default=False, description="409 if an earlier writer has uncommitted rows")
    verify_tokens: str | None = Field(
        default=None, max_length=100, description="numeric: offset tokens are whole numbers that grow"
    )
    strict_tokens: bool = Field(default=False, description="409 for a batch out of order, not a warning in the log")
    evolve_schema: bool = Field(default=False, description="Rows may add columns, if the service allows it")
    quarantine: str | None = Field(
        default=None, max_length=500, description="A table that gets bad rows, each once, with on_error continue"
    )


class StatusRequest(Strict):
    """The channels that are asked for."""

    channel_names: list[str] = Field(max_length=2_000)


class ChannelAnswer(BaseModel):
    """The state of a channel. Times are milliseconds since 1970, and counts are of all rows since `created_on_ms`.
    `client_sequencer` counts the opens: a writer that finds another number has lost the channel.
    """

    channel_name: str
    table_name: str
    channel_status_code: int
    channel_status_message: str | None
    last_committed_offset_token: str | None
    created_on_ms: int
    last_ingest_ms: int
    client_sequencer: int
    opened_by: str
    rows_inserted: int
    rows_parsed: int
    rows_error_count: int
    last_error_offset_upper_bound: str | None
    last_error_message: str | None
    last_error_timestamp: int | None
    avg_processing_latency_ms: int | None
    buffered_rows: int

    @classmethod
    def of(cls, name: str, table: str, record: ChannelRecord, status: ChannelStatus | None) -> ChannelAnswer:
        """The answer about a committed record, and about the channel if it is open here."""
        return cls(
            channel_name=name,
            table_name=table,
            channel_status_code=int(status.code if status is not None else StatusCode.OK),
            channel_status_message=status.problem if status is not None else record.problem,
            last_committed_offset_token=record.offset_token,
            created_on_ms=record.created_on,
            last_ingest_ms=record.last_ingest,
            client_sequencer=record.client_sequencer,
            opened_by=record.opened_by,
            rows_inserted=record.rows_inserted,
            rows_parsed=record.rows_parsed,
            rows_error_count=record.rows_error_count,
            last_error_offset_upper_bound=record.last_error_offset_upper_bound,
            last_error_message=record.last_error_message,
            last_error_timestamp=record.last_error_timestamp,
            avg_processing_latency_ms=record.latency_ms,
            buffered_rows=status.buffered_rows if status is not None else 0,
        )


class Opened(BaseModel):
    """An open channel, and the continuation token of its first rows."""

    next_continuation_token: str
    channel_status: ChannelAnswer


class RowProblem(BaseModel):
    """The first problem of a row. `row_index` is its place in the body, from 0."""

    row_index: int
    column: str
    kind: str
    message: str

    @classmethod
    def of(cls, error: RowError) -> RowProblem:
        """The answer about a row error."""
        return cls(row_index=error.row_index, column=error.column, kind=error.kind.value, message=error.message)


class RowsAnswer(BaseModel):
    """`rows`: taken into the buffer. `error_count`: rows that were not. `errors`: the first 100 of their problems."""

    next_continuation_token: str
    rows: int
    error_count: int
    errors: list[RowProblem]


class BulkStatus(BaseModel):
    """The state of each channel that exists, by the name that was asked for."""

    channel_statuses: dict[str, ChannelAnswer]


class Problem(BaseModel):
    """An error. `code`: the status code of the channel, if it has one. `facts`: values of the message, for errors of
    rows and channels.
    """

    error: str
    message: str
    code: int | None = None
    facts: dict[str, str | int | None] = Field(default_factory=dict)
