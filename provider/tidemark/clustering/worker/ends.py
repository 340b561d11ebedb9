"""The ends of reclusterings, as the logs of their tables have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tidemark.clustering.model.jobs import ReclusterReport, marked
from tidemark.clustering.model.tables import How, Recluster, Reclustered, ReclusterState
from tidemark.errors import (
    DriverDied,
    JobCancelled,
    JobDeadlineExceeded,
    JobDied,
    JobFailed,
    JobLeftNoResult,
    TidemarkError,
    WarmSparkEnded,
)
from tidemark.lake.delta_log import DeltaLog

__all__ = ["commit_of", "failed", "outcome_of", "with_report"]

_MAY_HAVE_WRITTEN = (
    *(DriverDied, JobCancelled, JobDeadlineExceeded, JobDied, JobFailed, JobLeftNoResult, WarmSparkEnded),
)


def commit_of(log: DeltaLog, planned: Recluster, store_id: str) -> Recluster | None:
    """The reclustering with the facts of its commit, which has its mark; None if it has not committed.

    Raises LogIncomplete if the commits since the plan are cleaned up.
    """
    for version, info in log.commit_infos(planned.base_version, log.head()):
        said = info.get("userMetadata")
        if marked(said if isinstance(said, str) else None, store_id) == planned.uid:
            metrics = info.get("operationMetrics")
            return _ended(planned, version, metrics if isinstance(metrics, dict) else {})
    return None


def with_report(committed: Recluster | None, planned: Recluster, report: ReclusterReport) -> Recluster:
    """The end of a job. An attempt that other writers forestalled has written, too, and is charged as planned. So a
    budget bounds all that is written.
    """
    ended = committed or _without_commit(planned, report)
    lost = (planned.bytes or 0) + report.lost * planned.planned_bytes
    return replace(ended, seconds=report.seconds, bytes=(ended.bytes or 0) + lost)


def failed(planned: Recluster, error: TidemarkError, words: str, at: datetime) -> Recluster:
    """The end of an attempt that has failed. A job that may have run is charged as planned, since nobody knows how much
    it has written.
    """
    ended = replace(planned, state=ReclusterState.FAILED, error=words, ended_at=at)
    if isinstance(error, _MAY_HAVE_WRITTEN):
        ended = replace(ended, bytes=(planned.bytes or 0) + planned.planned_bytes)
    return ended


def outcome_of(table: str, ended: Recluster) -> Reclustered:
    """The outcome as the ledger has it."""
    done = ended.state is ReclusterState.DONE
    return Reclustered(
        table=table,
        how=ended.how if done else How.NOTHING,
        why=ended.error or ended.why,
        state=ended.state,
        depth_before=ended.depth_before,
        depth_after=ended.depth_after if done else ended.depth_before,
        bytes=ended.bytes or 0,
        seconds=ended.seconds or 0.0,
        version=ended.version,
    )


def _without_commit(planned: Recluster, report: ReclusterReport) -> Recluster:
    """The end of a job that has committed nothing: others were first, or nothing was left to rewrite."""
    if report.conflict is None:
        return replace(planned, state=ReclusterState.DONE, bytes=0)
    why = f"other writers were first, and the next run tries again: {report.conflict}"
    return replace(planned, state=ReclusterState.LEFT, bytes=0, error=why)


def _ended(planned: Recluster, version: int, metrics: Mapping[str, Any]) -> Recluster:
    return replace(
        planned,
        state=ReclusterState.DONE,
        version=version,
        bytes=_number(metrics.get("numAddedBytes")),
        files_removed=_number(metrics.get("numRemovedFiles")),
        files_added=_number(metrics.get("numAddedFiles")),
        error=None,
    )


def _number(said: object) -> int:
    """A metric of a commit, which Delta writes as text."""
    return int(said) if isinstance(said, str) and said.isdecimal() else said if isinstance(said, int) else 0
