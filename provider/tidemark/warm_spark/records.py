"""The messages between tasks and a warm server, in files of a private directory."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

__all__ = ["ORDER", "TOKEN", "USER", "FailedStart", "ServerOrder", "ServerRecord", "digest_of"]

ORDER = "order.json"
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # Spark's own name
USER = "tidemark"


@dataclass(frozen=True)
class ServerOrder:
    """The limits of a server. `slots`: jobs at a time. It ends after `idle` without a job. A successor takes
    its place after `longest`, or if more than `heap_share` of the heap stays in use. A server that does not listen
    `starts_within` that time is killed. `family`: a digest of the settings but temporary credentials; empty if it has
    none.
    """

    slots: int
    packages: tuple[str, ...]
    idle: timedelta = timedelta(minutes=10)
    longest: timedelta = timedelta(hours=24)
    heap_share: float = 0.7
    starts_within: timedelta = timedelta(seconds=180)
    family: str = ""


@dataclass(frozen=True)
class ServerRecord:
    """A server that listens on `port` of the loopback of `host`. `process_id`: there, the leader of its group."""

    directory: str
    port: int
    process_id: int
    order: ServerOrder
    started_at: datetime
    spark: str
    token: str = field(repr=False)
    host: str = field(default_factory=platform.node)

    @property
    def is_of_this_host(self) -> bool:
        """Whether its process id means a process here. Hosts and containers may share the directory."""
        return self.host == platform.node()

    @property
    def place(self) -> Path:
        """The server's own directory."""
        return Path(self.directory)

    @property
    def address(self) -> str:
        """`sc://localhost:port`, for messages."""
        return f"sc://localhost:{self.port}"

    def url(self, session_id: str) -> str:
        """The URL of a session, with the token; not for arguments, logs or messages."""
        return f"{self.address}/;user_id={USER};token={self.token};session_id={session_id}"


@dataclass(frozen=True)
class FailedStart:
    """A start of a server with these packages that failed `at` that time; the rest as in its error."""

    packages: tuple[str, ...]
    at: datetime
    problem: str
    log: str
    tail: str


def digest_of(settings: Mapping[str, object]) -> str:
    """The name of a server with these settings. Secrets cannot be found from it in practice, and are not in it."""
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
