"""Jobs that read windows of streams: deliver them, shut late writers out, or only look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.model.jobs import Job
from tidemark.model.statements import Evidence, Statement
from tidemark.model.streams import StreamWindow

__all__ = [
    "CREATE_TABLE",
    "DRY_RUN",
    "FENCE",
    "HAS_ROWS",
    "WRITE",
    "DryRunReport",
    "FenceReport",
    "HasRowsReport",
    "StatementsRequest",
    "TableReport",
    "TableRequest",
    "WindowsRequest",
    "WriteReport",
]


@dataclass(frozen=True)
class StatementsRequest:
    """The windows of a transaction, and those of its statements that the job is for."""

    windows: tuple[StreamWindow, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class WriteReport:
    """The evidence of each statement in its target's log, in order."""

    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class FenceReport:
    """`evidence`: of the statements that were written before the fence came. The others are numbers of statements;
    `lost`: those whose target was replaced, rewound, dropped or has a later number.
    """

    evidence: tuple[Evidence, ...]
    fenced: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


@dataclass(frozen=True)
class WindowsRequest:
    """Windows to look at."""

    windows: tuple[StreamWindow, ...]


@dataclass(frozen=True)
class TableRequest:
    """A table for the rows of `query` on windows of streams. `head`: the statement before AS, with IF NOT EXISTS, and
    with the table as Spark finds it. `tables`: name → path of the other tables that the query reads.
    """

    windows: tuple[StreamWindow, ...]
    head: str
    query: str
    tables: Mapping[str, str]


@dataclass(frozen=True)
class TableReport:
    """`columns`: of the query, and so of a table that the job has created."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class DryRunReport:
    """`reads`: stream name → the chosen plan with files, bytes and rows of each side."""

    reads: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HasRowsReport:
    """`shows`: stream name → whether its window shows a row."""

    shows: Mapping[str, bool]


WRITE = Job("write", StatementsRequest, WriteReport, "streams.driver.job_write:write")
FENCE = Job("fence", StatementsRequest, FenceReport, "streams.driver.job_fence:fence")
DRY_RUN = Job("dry_run", WindowsRequest, DryRunReport, "streams.driver.job_dry_run:dry_run")
HAS_ROWS = Job("has_rows", WindowsRequest, HasRowsReport, "streams.driver.job_has_rows:has_rows")
CREATE_TABLE = Job("create_table", TableRequest, TableReport, "streams.driver.job_create_table:create_table")
