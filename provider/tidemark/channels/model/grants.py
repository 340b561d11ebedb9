"""The tokens that writers show to the ingest service, as its file keeps them: hashes, and the rights of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["Grant", "Grants"]


@dataclass(frozen=True)
class Grant:
    """A writer's token. `digest`: its SHA-256 in hexadecimal digits. `tables`: names, or patterns with `*`, of tables
    that it may write. `pipes`: of pipes that it may use.
    """

    name: str
    digest: str
    tables: tuple[str, ...]
    created_at: datetime
    pipes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grants:
    """All tokens of a service."""

    grants: tuple[Grant, ...] = ()
