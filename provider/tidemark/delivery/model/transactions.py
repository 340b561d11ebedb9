"""A transaction: windows and plan, which are stored before any write, and the evidence that closes it (PROTOCOL 3)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.model.codec import to_json
from tidemark.model.statements import Evidence, Statement, TransactionKey
from tidemark.model.streams import StreamWindow

__all__ = ["QUARANTINED", "CommitResult", "DeliveredWindow", "Plan", "Transaction", "TransactionState"]


QUARANTINED = "quarantined"  # in the rows of a quarantine's evidence


@dataclass(frozen=True)
class Plan:
    """The ordered statements of a transaction."""

    statements: tuple[Statement, ...]

    @property
    def digest(self) -> str:
        """The digest over the ordered statements' digests and target ids. A retry must have the same (V2)."""
        return hashlib.sha256(
            to_json([[s.number, s.digest, s.target.table_id] for s in self.statements]).encode()
        ).hexdigest()


class TransactionState(StrEnum):
    """The state of a transaction."""

    OPEN = "open"  # windows and plan are pinned
    COMMITTED = "committed"  # all offsets moved; the result is stored
    RELEASED = "released"  # nothing was written, the windows are free
    SUPERSEDED = "superseded"  # finished by another transaction's consumer (step 4)


@dataclass(frozen=True)
class DeliveredWindow:
    """One stream's part of a committed transaction. `lag_seconds`: commit time minus the time of version `to`."""

    stream: str
    from_version: int
    to_version: int
    initial_rows: bool
    lag_seconds: float | None


@dataclass(frozen=True)
class CommitResult:
    """The result of a commit. It is stored with the transaction, and each run of the task reports it."""

    key: TransactionKey
    windows: tuple[DeliveredWindow, ...]
    serial: int
    evidence: tuple[Evidence, ...]
    committed_at: datetime

    @property
    def rows(self) -> int:
        """Rows written by all statements, without those in quarantine."""
        return sum(sum(e.rows.values()) for e in self.evidence) - self.quarantined

    @property
    def quarantined(self) -> int:
        """Rows in quarantine tables, since they broke a constraint of their target."""
        return sum(e.rows.get(QUARANTINED, 0) for e in self.evidence)


@dataclass(frozen=True)
class Transaction:
    """A transaction in the control store."""

    key: TransactionKey
    state: TransactionState
    windows: tuple[StreamWindow, ...]
    plan: Plan
    owner: str
    lease_until: datetime
    submitted: bool
    job_deadline: datetime | None
    opened_at: datetime
    result: CommitResult | None = None
    superseded_by: TransactionKey | None = None
