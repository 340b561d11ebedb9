"""A materialized view or a dynamic table as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tidemark.materialized.model.shapes import KeptShape
from tidemark.model.streams import TableRef

__all__ = ["FloatSums", "Initialize", "KeptKind", "KeptView", "RefreshMode", "TargetLag"]


class KeptKind(StrEnum):
    """The kinds of kept queries."""

    MATERIALIZED_VIEW = "materialized_view"  # a read answers for the newest versions of its bases
    DYNAMIC_TABLE = "dynamic_table"  # a read answers for the last refresh


class RefreshMode(StrEnum):
    """The ways to refresh. AUTO takes the cheaper one, at each refresh."""

    AUTO = "auto"
    FULL = "full"
    INCREMENTAL = "incremental"


class Initialize(StrEnum):
    """The time of the first refresh."""

    ON_CREATE = "on_create"
    ON_SCHEDULE = "on_schedule"


class FloatSums(StrEnum):
    """Sums and averages over DOUBLE and FLOAT."""

    RECOMPUTED = "recomputed"  # touched groups are computed from the base
    INCREMENTAL = "incremental"  # they drift by rounding


@dataclass(frozen=True)
class TargetLag:
    """The age that a dynamic table may reach. None: as its readers need it (DOWNSTREAM)."""

    at_most: timedelta | None = None


@dataclass(frozen=True)
class KeptView:
    """A view in the control store.

    `uid` is never used twice. `text`: the query as it was given. `kept`: the table of `shape`. `stream`: the stream
    that pins the versions of its bases; nobody else may read it. `fresh_at`: the newest time for which the kept rows
    are known to answer; None before the first refresh. `suspended`: why it is not refreshed; None if it is.
    `kept_version`, `kept_rows`: of the kept table after the last refresh. `groups`: its rows after the last compaction
    or whole refresh.
    `columns_read`: path of a base → columns that the query names → JSON of their types, as of the creation.
    `problem`: of the last refresh, or of a base that has suspended it; `problem_run`: the run that met it. `asked_at`:
    when a person asked for a refresh that no run has done yet.
    """

    uid: str
    name: str
    kind: KeptKind
    text: str
    kept: TableRef
    shape: KeptShape
    stream: str
    created_at: datetime
    target_lag: TargetLag | None = None
    mode: RefreshMode = RefreshMode.AUTO
    initialize: Initialize = Initialize.ON_CREATE
    float_sums: FloatSums = FloatSums.RECOMPUTED
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None
    fresh_at: datetime | None = None
    suspended: str | None = None
    kept_version: int | None = None
    kept_rows: int | None = None
    groups: int | None = None
    columns_read: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    problem: str | None = None
    problem_at: datetime | None = None
    problem_run: str | None = None
    asked_at: datetime | None = None
