"""All that crosses between a worker and a Spark driver: a JobSpec one way, a JobResult the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from tidemark.model.streams import StreamWindow
from tidemark.model.transactions import Evidence, Statement, TransactionKey

__all__ = ["ErrorRecord", "JobKind", "JobResult", "JobSpec"]


class JobKind(StrEnum):
    """What a job does."""

    WRITE = "write"  # run the statements, read each back
    FENCE = "fence"  # shut each statement's number out (step 18)
    DRY_RUN = "dry_run"  # say what would be read, touch nothing
    HAS_ROWS = "has_rows"  # read whether windows show any row
    PROBE = "probe"  # see whether worker and Spark see the same lake
    RESOLVE_VIEW = "resolve_view"  # ask Spark's catalog what a view reads
    REFRESH_EXTERNAL_TABLE = "refresh_external_table"  # note which files a directory has now
    CREATE_QUARANTINE = "create_quarantine"  # make the table of a quarantine, where it is not there
    VACUUM = "vacuum"  # remove files that neither the table nor a stream needs
    READ_PARTITIONS = "read_partitions"  # write chunks of a change stream to a sink, each once
    BACKFILL_TABLE = "backfill_table"  # put a table's rows of one version into a target, once
    PREPARE = "prepare"  # turn on row tracking for a table that is to have a stream
    TRIM_CHANGE_LOG = "trim_change_log"  # drop what a change stream's retention is over for
    CAPTURE_CHANGES = "capture_changes"  # put a capture batch into the log of its change stream
    CAPTURE_EVENTS = "capture_events"  # put what a database has committed into the event log of its replication
    BACKFILL_OBJECT = "backfill_object"  # copy a table of a database as of one exact position
    WRITE_DOWN = "write_down"  # apply events of an object to its target, each once
    TRIM_EVENTS = "trim_events"  # drop events that are old, and that every target has


@dataclass(frozen=True)
class JobSpec:
    """One job. It holds no secret: the store is named by its id, the lake by its URI.

    `workspace` is where log-only tables go (`<lake root>/_tidemark`); `result_uri` and `cancel_uri` are local paths or
    URIs that both processes can reach. After `deadline` the job stops itself (step 9).
    """

    kind: JobKind
    store_id: str
    workspace: str
    result_uri: str
    cancel_uri: str
    deadline: datetime
    key: TransactionKey | None = None
    windows: tuple[StreamWindow, ...] = ()
    statements: tuple[Statement, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ErrorRecord:
    """An error of our tree on its way between processes."""

    error: str
    facts: Mapping[str, Any]
    message: str


@dataclass(frozen=True)
class JobResult:
    """What a job answers; exactly one of `evidence`/`facts` and `error` says something."""

    evidence: tuple[Evidence, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: ErrorRecord | None = None
