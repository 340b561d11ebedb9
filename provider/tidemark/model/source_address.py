"""How a job reaches a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["SourceAddress", "SourceKind"]


class SourceKind(StrEnum):
    """The database that is replicated."""

    POSTGRESQL = "postgresql"


@dataclass(frozen=True)
class SourceAddress:
    """How a source is reached. It travels by environment only; nothing prints a password."""

    kind: SourceKind
    host: str
    port: int
    database: str
    user: str
    password: str | None = field(default=None, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)  # sslmode, sslpassword, connect_timeout …
    hash_secret: str | None = field(default=None, repr=False)  # by which columns are hashed
    conn_id: str | None = field(default=None, compare=False)  # the connection that said all this, for messages
