"""A transaction: the windows and the plan that are written ahead, and the evidence that closes it (PROTOCOL 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidemark.model.codec import to_json, to_plain
from tidemark.model.streams import StreamWindow, TableRef

__all__ = [
    "QUARANTINED",
    "CommitResult",
    "DeliveredWindow",
    "Evidence",
    "Plan",
    "PlannedWrite",
    "SchemaEvolution",
    "Statement",
    "Transaction",
    "TransactionKey",
    "TransactionState",
    "WriteAs",
]


QUARANTINED = "quarantined"  # in the rows of a quarantine's evidence


@dataclass(frozen=True)
class TransactionKey:
    """The run owns its window: the same key for a retry and for a clear (PROTOCOL step 1)."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        return "/".join((self.dag_id, self.run_id, self.task_id, str(self.map_index)))


class WriteAs(StrEnum):
    """How a statement writes its target."""

    APPEND = "append"
    MERGE = "merge"
    SQL = "sql"
    FUNCTION = "function"
    QUARANTINE = "quarantine"  # what the statement before it sorts out as unfit for its target


class SchemaEvolution(StrEnum):
    """What happens when the stream has columns that the target lacks."""

    FAIL = "fail"
    ADD = "add"


@dataclass(frozen=True)
class PlannedWrite:
    """What the user asked of one statement: all that its digest covers.

    `source`: the stream that append and merge read. `keys`: merge key columns. `sql`: the statement's text for SQL.
    `function`: `module:function` for FUNCTION. `tables`: names used in `sql` or by the function → canonical URI.
    `quarantine`: the table for rows that break a constraint; the plan's next statement writes it.
    """

    write_as: WriteAs
    target: str
    source: str | None = None
    keys: tuple[str, ...] = ()
    schema_evolution: SchemaEvolution = SchemaEvolution.FAIL
    sql: str | None = None
    function: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    quarantine: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form; without a quarantine that of releases which knew none."""
        said = to_plain(self)
        if self.quarantine is None:
            del said["quarantine"]
        return hashlib.sha256(to_json(said).encode()).hexdigest()


@dataclass(frozen=True)
class Statement:
    """One write of the plan, with the Delta transaction that makes it happen once.

    `base_version` is the target's version at begin: the mark is looked for from there on (step 10).
    """

    number: int
    write: PlannedWrite
    target: TableRef
    base_version: int
    app_id: str
    txn_version: int

    @property
    def digest(self) -> str:
        """Digest of what was asked; the same for every attempt."""
        return self.write.digest


@dataclass(frozen=True)
class Plan:
    """The ordered statements of a transaction."""

    statements: tuple[Statement, ...]

    @property
    def digest(self) -> str:
        """Digest over the ordered statements' digests and target ids: what a retry must match (V2)."""
        return hashlib.sha256(
            to_json([[s.number, s.digest, s.target.table_id] for s in self.statements]).encode()
        ).hexdigest()


@dataclass(frozen=True)
class Evidence:
    """Read back from the target's own log: it holds the window (step 13)."""

    number: int
    table_id: str
    commit_version: int
    txn_version: int
    digest: str
    rows: Mapping[str, int] = field(default_factory=dict)  # inserted, updated, deleted, or quarantined; Delta's metrics
    found: bool = False  # an earlier attempt had written it
    changes: int | None = None  # rows of the change set that a merge read, however many of them its target needed


class TransactionState(StrEnum):
    """Where a transaction stands."""

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
    """What a commit delivered; stored with it and announced from it, however often the task runs."""

    key: TransactionKey
    windows: tuple[DeliveredWindow, ...]
    serial: int
    evidence: tuple[Evidence, ...]
    committed_at: datetime

    @property
    def rows(self) -> int:
        """Rows written over all statements, those in quarantine left out."""
        return sum(sum(e.rows.values()) for e in self.evidence) - self.quarantined

    @property
    def quarantined(self) -> int:
        """Rows that broke a constraint of their target and lie in a quarantine table."""
        return sum(e.rows.get(QUARANTINED, 0) for e in self.evidence)


@dataclass(frozen=True)
class Transaction:
    """A transaction as the control store keeps it."""

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
