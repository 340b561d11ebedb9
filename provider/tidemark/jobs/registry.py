"""Which function does which kind of job."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemark.jobs.backfill_object import backfill_object
from tidemark.jobs.backfill_table import backfill_table
from tidemark.jobs.capture_changes import capture_changes
from tidemark.jobs.capture_events import capture_events
from tidemark.jobs.context import JobContext
from tidemark.jobs.create_quarantine import create_quarantine
from tidemark.jobs.dry_run import dry_run
from tidemark.jobs.fence import fence
from tidemark.jobs.has_rows import has_rows
from tidemark.jobs.prepare import prepare
from tidemark.jobs.probe import probe
from tidemark.jobs.read_partitions import read_partitions
from tidemark.jobs.refresh_external_table import refresh_external_table
from tidemark.jobs.resolve_view import resolve_view
from tidemark.jobs.trim_change_log import trim_change_log
from tidemark.jobs.trim_events import trim_events
from tidemark.jobs.vacuum import vacuum
from tidemark.jobs.write import write
from tidemark.jobs.write_down import write_down
from tidemark.model.jobs import JobKind, JobResult

__all__ = ["JOBS"]

JOBS: Mapping[JobKind, Callable[[JobContext], JobResult]] = {
    JobKind.WRITE: write,
    JobKind.CAPTURE_CHANGES: capture_changes,
    JobKind.CAPTURE_EVENTS: capture_events,
    JobKind.TRIM_CHANGE_LOG: trim_change_log,
    JobKind.FENCE: fence,
    JobKind.DRY_RUN: dry_run,
    JobKind.HAS_ROWS: has_rows,
    JobKind.CREATE_QUARANTINE: create_quarantine,
    JobKind.PREPARE: prepare,
    JobKind.PROBE: probe,
    JobKind.RESOLVE_VIEW: resolve_view,
    JobKind.REFRESH_EXTERNAL_TABLE: refresh_external_table,
    JobKind.VACUUM: vacuum,
    JobKind.READ_PARTITIONS: read_partitions,
    JobKind.BACKFILL_TABLE: backfill_table,
    JobKind.BACKFILL_OBJECT: backfill_object,
    JobKind.WRITE_DOWN: write_down,
    JobKind.TRIM_EVENTS: trim_events,
}
