"""Statements of clustering, as values."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.sql.text import SqlName

__all__ = [
    "ClusterBy",
    "ClusteringCall",
    "ClusteringStatement",
    "DropKey",
    "ReclusterNow",
    "ResumeRecluster",
    "SuspendRecluster",
]


@dataclass(frozen=True)
class ClusterBy:
    """ALTER TABLE t CLUSTER BY (c1, c2)."""

    table: SqlName
    columns: tuple[str, ...]


@dataclass(frozen=True)
class DropKey:
    """ALTER TABLE t DROP CLUSTERING KEY."""

    table: SqlName


@dataclass(frozen=True)
class SuspendRecluster:
    """ALTER TABLE t SUSPEND RECLUSTER."""

    table: SqlName


@dataclass(frozen=True)
class ResumeRecluster:
    """ALTER TABLE t RESUME RECLUSTER."""

    table: SqlName


@dataclass(frozen=True)
class ReclusterNow:
    """ALTER TABLE t RECLUSTER [MAX_SIZE = n] [WHERE …]. `max_size`: in bytes. `where`: the text of the condition."""

    table: SqlName
    max_size: int | None = None
    where: str | None = None


@dataclass(frozen=True)
class ClusteringCall:
    """SELECT SYSTEM$CLUSTERING_INFORMATION('t', '(c1)'), or SYSTEM$CLUSTERING_DEPTH. `columns`: empty for those of the
    key. `errors`: how many of the last errors to show. `title`: the name of the answer's column.
    """

    function: str
    table: SqlName
    columns: tuple[str, ...] = ()
    errors: int | None = None
    title: str = ""


ClusteringStatement = ClusterBy | DropKey | SuspendRecluster | ResumeRecluster | ReclusterNow | ClusteringCall
