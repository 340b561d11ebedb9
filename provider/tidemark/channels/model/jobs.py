"""Jobs of channels: the ingest service, which runs until it is cancelled."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.jobs import Job

__all__ = ["SERVE_INGEST", "IngestServed", "ServeIngest"]


@dataclass(frozen=True)
class ServeIngest:
    """`tokens_file`: a local file of `Grants`. `certificate`, `key`: local files in PEM; None for plain HTTP.
    `behind_proxy`: whether something in front of it has the certificate. `buffer_bytes`: of rows per table that are not
    committed; beyond it writers get 429. `body_bytes`: of one request. `only_writer`: whether nobody
    else writes the tables.
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
    body_bytes: int = 16 << 20
    only_writer: bool = False


@dataclass(frozen=True)
class IngestServed:
    """The end of a service. `committed`: whether all rows that it had taken are in their tables."""

    committed: bool
    problem: str | None = None


SERVE_INGEST = Job("serve_ingest", ServeIngest, IngestServed, "channels.driver.service.job_serve_ingest:serve_ingest")
