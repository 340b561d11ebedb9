"""Statements of materialized views and dynamic tables, as values."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.materialized.model.definitions import Initialize, KeptKind, RefreshMode, TargetLag

__all__ = [
    "AlterView",
    "CreateView",
    "DescribeView",
    "DropView",
    "RefreshView",
    "ResumeView",
    "ShowViews",
    "SuspendView",
    "ViewStatement",
]


@dataclass(frozen=True)
class CreateView:
    """CREATE MATERIALIZED VIEW or CREATE DYNAMIC TABLE. `text`: the query, as written. `columns`: the names in the list
    behind the name; empty for those of the query. `notices`: parts of the statement that change nothing here.
    """

    kind: KeptKind
    name: str
    text: str
    columns: tuple[str, ...] = ()
    target_lag: TargetLag | None = None
    mode: RefreshMode = RefreshMode.AUTO
    initialize: Initialize = Initialize.ON_CREATE
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterView:
    """ALTER … SET or UNSET; None: unchanged."""

    kind: KeptKind
    name: str
    target_lag: TargetLag | None = None
    comment: str | None = None
    unset_comment: bool = False
    if_exists: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuspendView:
    """ALTER … SUSPEND."""

    kind: KeptKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ResumeView:
    """ALTER … RESUME."""

    kind: KeptKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class RefreshView:
    """ALTER … REFRESH."""

    kind: KeptKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DropView:
    """DROP."""

    kind: KeptKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class ShowViews:
    """SHOW. `database`, `schema`: of IN."""

    kind: KeptKind
    like: str | None = None
    database: str | None = None
    schema: str | None = None
    starts_with: str | None = None
    limit: int | None = None
    from_name: str | None = None


@dataclass(frozen=True)
class DescribeView:
    """DESCRIBE."""

    kind: KeptKind
    name: str


ViewStatement = CreateView | AlterView | SuspendView | ResumeView | RefreshView | DropView | ShowViews | DescribeView
