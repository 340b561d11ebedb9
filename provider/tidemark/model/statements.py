"""A statement of a transaction: its key, the requested write, and the evidence of the write."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidemark.model.codec import to_json, to_plain
from tidemark.model.streams import TableRef

__all__ = [
    "CLIENT_DAG",
    "CLIENT_TASKS",
    "Evidence",
    "PlannedWrite",
    "RefreshHow",
    "RefreshWrite",
    "SchemaEvolution",
    "Statement",
    "TransactionKey",
    "WriteAs",
]

CLIENT_DAG = "client"  # as if it were a DAG: keys of work in notebooks and scripts begin so
CLIENT_TASKS = ("transaction", "finish", "replay", "consume_partitions")
"""As if they were tasks of that DAG: every key of work in notebooks and scripts has one of these."""


@dataclass(frozen=True)
class TransactionKey:
    """The owner of a window. A retry and a clear of the task have the same key (PROTOCOL step 1)."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        return "/".join((self.dag_id, self.run_id, self.task_id, str(self.map_index)))


class WriteAs(StrEnum):
    """The ways in which a statement writes its target."""

    APPEND = "append"
    MERGE = "merge"
    SQL = "sql"
    FUNCTION = "function"
    QUARANTINE = "quarantine"  # the rows that do not fit the target of the statement before
    REFRESH = "refresh"  # the rows of a kept query


class RefreshHow(StrEnum):
    """The ways in which a refresh writes the table of a kept query."""

    CHANGES = "changes"  # the changes of the window
    COMPACTED = "compacted"  # partial aggregates and the changes of the window, one row for each group
    WHOLE = "whole"  # the query at the window's end


@dataclass(frozen=True)
class RefreshWrite:
    """The request for a refresh. `rows_by_id`: the table has the row ids of the query's rows. `sums`: the SELECT of
    partial aggregates over the followed query's rows; None without. `followed` is the query of the stream that is read.
    """

    how: RefreshHow
    rows_by_id: bool = False
    sums: str | None = None


class SchemaEvolution(StrEnum):
    """The handling of columns that the stream has and the target lacks."""

    FAIL = "fail"
    ADD = "add"


@dataclass(frozen=True)
class PlannedWrite:
    """The user's request for one statement: everything that its digest covers.

    `source`: the stream that append and merge read. `keys`: merge key columns. `sql`: the statement's text for SQL.
    `function`: `module:function` for FUNCTION. `tables`: names used in `sql` or by the function → canonical URI.
    `quarantine`: the table for rows that break a constraint; the plan's next statement writes it. `refresh`: for
    REFRESH.
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
    refresh: RefreshWrite | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form. Without a quarantine or refresh it is that of releases that had none."""
        said = to_plain(self)
        for name in ("quarantine", "refresh"):
            if getattr(self, name) is None:
                del said[name]
        return hashlib.sha256(to_json(said).encode()).hexdigest()


@dataclass(frozen=True)
class Statement:
    """One write of the plan, with the Delta transaction that makes it happen once.

    `base_version`: the target's version at begin. The search for the mark starts there (step 10).
    """

    number: int
    write: PlannedWrite
    target: TableRef
    base_version: int
    app_id: str
    txn_version: int

    @property
    def digest(self) -> str:
        """The digest of the request, the same for every attempt."""
        return self.write.digest


@dataclass(frozen=True)
class Evidence:
    """The proof that the target has the window, read back from its own log (step 13)."""

    number: int
    table_id: str
    commit_version: int
    txn_version: int
    digest: str
    rows: Mapping[str, int] = field(default_factory=dict)  # inserted, updated, deleted, or quarantined; Delta's metrics
    found: bool = False  # an earlier attempt had written it
    changes: int | None = None  # rows of the change set that a merge read, however many of them its target needed
    bytes: int | None = None  # of the data files that the commit added; None: an earlier release has stored it
    seconds: float | None = None  # of preparing and writing it in the driver; None: found, or of an earlier release
