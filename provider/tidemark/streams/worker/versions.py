"""New Delta transaction versions, drawn only when no earlier job can be alive (PROTOCOL steps 18 to 20, I5, I6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.errors import JobsMayBeAlive
from tidemark.streams.store import jobs, streams, transactions
from tidemark.streams.store.transactions import StoredTransaction

__all__ = ["draw_versions", "renumber_fenced", "require_jobs_ended"]


def require_jobs_ended(connection: sa.Connection, stored: StoredTransaction, now: datetime) -> None:
    """Raises JobsMayBeAlive unless every writing job has surely ended or is past its deadline."""
    until = jobs.may_be_alive(connection, stored.id, now=now)
    if until is not None:
        raise JobsMayBeAlive(key=str(stored.transaction.key), until=until)


def draw_versions(connection: sa.Connection, stored: StoredTransaction, numbers: Sequence[int]) -> None:
    """One new serial of the lead stream for all of `numbers`; the old versions are never used again."""
    if numbers:
        transactions.renumber(connection, stored.id, numbers, streams.draw_serial(connection, stored.lead))


def renumber_fenced(connection: sa.Connection, stored: StoredTransaction, now: datetime) -> StoredTransaction:
    """Statements at which a job met a fence get a new version (step 19). Raises JobsMayBeAlive."""
    if not stored.fenced:
        return stored
    require_jobs_ended(connection, stored, now)
    draw_versions(connection, stored, stored.fenced)
    return transactions.by_id(connection, stored.id)
