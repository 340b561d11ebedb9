"""Jobs of channels: the ingest service, reads of a source, upkeep, and changes by hand. The service runs until it is
cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tidemark.model.jobs import Job

__all__ = [
    "ALTER_CHANNEL",
    "INGEST_ROWS",
    "KEEP_CHANNELS",
    "SERVE_INGEST",
    "AlterChannel",
    "AlteredChannel",
    "ChannelAction",
    "IngestRows",
    "IngestServed",
    "IngestedRows",
    "KeepChannels",
    "KeptChannels",
    "KeptTable",
    "ServeIngest",
]


@dataclass(frozen=True)
class ServeIngest:
    """`tokens_file`: a local file of `Grants`. `certificate`, `key`: local files in PEM; None for plain HTTP.
    `behind_proxy`: whether something in front of it has the certificate. `buffer_bytes`: of rows per table that are not
    committed; beyond it writers get 429. `all_buffer_bytes`: the same, of all tables together. `body_bytes`: of one
    request. `only_writer`: whether nobody else writes the tables. `evolve_schema`: whether writers may open channels
    that add columns. `keep_hours`: the time between two rounds of upkeep of the tables that are written; None: no
    round. `pipes_file`: a local file of the pipes that take files over HTTP; None: none do.
    """

    lake_root: str
    tokens_file: str
    host: str = "127.0.0.1"
    port: int = 8790
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    max_client_lag: str = "1 second"
    buffer_bytes: int = 256 << 20
    all_buffer_bytes: int = 1 << 30
    body_bytes: int = 16 << 20
    only_writer: bool = False
    evolve_schema: bool = False
    keep_hours: float | None = None
    pipes_file: str | None = None


@dataclass(frozen=True)
class IngestServed:
    """The end of a service. `committed`: whether all rows that it had taken are in their tables."""

    committed: bool
    problem: str | None = None


SERVE_INGEST = Job("serve_ingest", ServeIngest, IngestServed, "channels.driver.service.job_serve_ingest:serve_ingest")


@dataclass(frozen=True)
class IngestRows:
    """`source`: a name of Tidemark's own sources, or `module:function`. `options`: its arguments beside the token.
    `writer`: shown to other writers of the channel. `seconds`: the run ends after them; None: once the source is empty.
    """

    lake_root: str
    table: str
    channel: str
    source: str
    writer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    on_error: str = "abort"
    default_timezone: str = "UTC"
    verify_tokens: str | None = None
    strict_tokens: bool = False
    evolve_schema: bool = False
    quarantine: str | None = None
    max_client_lag: str = "1 second"
    seconds: float | None = None
    only_writer: bool = False


@dataclass(frozen=True)
class IngestedRows:
    """The committed part of a run. `from_token`, `to_token`: the channel's tokens before and after it. `is_empty`:
    whether the source had no more rows. `latency_ms`: from insert to commit, an average over recent commits.
    `skipped_rows`: rows of whole batches that on_error="skip_batch" left out, with those that did not fit.
    """

    rows: int
    errors: int
    from_token: str | None
    to_token: str | None
    latency_ms: int | None
    is_empty: bool
    last_error: str | None = None
    skipped_rows: int = 0


INGEST_ROWS = Job("ingest_rows", IngestRows, IngestedRows, "channels.driver.job_ingest_rows:ingest_rows")


@dataclass(frozen=True)
class KeepChannels:
    """`keeper`: the name of the job. `idle_days`, `warn_days`: without rows and tokens. `compact`: run OPTIMIZE.
    `log_hours`: by table, how long commits stay in its log. `skip_when_unsafe`: tables whose commits may be lost do not
    fail.
    """

    lake_root: str
    tables: tuple[str, ...]
    keeper: str
    idle_days: float = 30
    warn_days: float = 23
    compact: bool = True
    log_hours: Mapping[str, int] = field(default_factory=dict)
    only_writer: bool = False
    skip_when_unsafe: bool = False


@dataclass(frozen=True)
class KeptTable:
    """`swept`: channels that were removed. `idle`: channels that soon will be."""

    table: str
    swept: tuple[str, ...]
    idle: tuple[str, ...]
    files_removed: int
    files_added: int


@dataclass(frozen=True)
class KeptChannels:
    """The tables in the order of the request. `failed`: table → what is wrong, of those that could not be kept.
    `unsafe`: the same of those that were passed over, as commits may be lost there.
    """

    tables: tuple[KeptTable, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    unsafe: Mapping[str, str] = field(default_factory=dict)


KEEP_CHANNELS = Job("keep_channels", KeepChannels, KeptChannels, "channels.driver.job_keep_channels:keep_channels")


class ChannelAction(StrEnum):
    """A change of a channel by hand."""

    OPEN = "open"
    SET_TOKEN = "set_token"
    DROP = "drop"


@dataclass(frozen=True)
class AlterChannel:
    """`token`: the new committed token. For `open`, None keeps the token; for `set_token` it removes it."""

    lake_root: str
    table: str
    channel: str
    action: ChannelAction
    writer: str
    token: str | None = None
    only_writer: bool = False


@dataclass(frozen=True)
class AlteredChannel:
    """`existed`: whether the channel existed before. The tokens are the committed ones before and after."""

    existed: bool
    token_before: str | None
    token: str | None


ALTER_CHANNEL = Job("alter_channel", AlterChannel, AlteredChannel, "channels.driver.job_alter_channel:alter_channel")
