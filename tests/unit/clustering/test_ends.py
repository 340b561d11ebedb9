"""The ends of reclusterings: what they have written is charged, also where other writers were first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tidemark.clustering.model.jobs import ReclusterReport
from tidemark.clustering.model.tables import How, Recluster, ReclusterState
from tidemark.clustering.worker.ends import failed, outcome_of, with_report
from tidemark.errors import JobDeadlineExceeded, JobDied, SparkNotFound

PLANNED = Recluster("u", "t", "run", datetime(2026, 1, 1, tzinfo=UTC), How.CUBES, "depth", 5, 1000, 0, 5.0)
COMMITTED = replace(PLANNED, state=ReclusterState.DONE, bytes=900, version=7)


def test_attempts_that_other_writers_forestalled_are_charged_as_planned() -> None:
    left = with_report(None, PLANNED, ReclusterReport(3.0, "ConcurrentAppend", lost=3))
    assert (left.state, left.bytes, left.seconds) == (ReclusterState.LEFT, 3000, 3.0)
    assert "other writers were first, and the next run tries again: ConcurrentAppend" in outcome_of("t", left).why
    done = with_report(COMMITTED, PLANNED, ReclusterReport(2.0, lost=2))
    assert (done.state, done.bytes, done.version) == (ReclusterState.DONE, 2900, 7)
    assert with_report(COMMITTED, left, ReclusterReport(1.0)).bytes == 3900  # a retry of the run that was left


def test_a_job_that_may_have_written_is_charged_and_one_that_never_ran_is_not() -> None:
    at = PLANNED.planned_at
    died = failed(PLANNED, JobDied(key="k", exit_code=1, tail=""), "JobDied: …", at)
    assert (died.state, died.bytes, died.error, died.ended_at) == (ReclusterState.FAILED, 1000, "JobDied: …", at)
    assert failed(died, JobDeadlineExceeded(key="k", deadline="now"), "late", at).bytes == 2000
    assert failed(PLANNED, SparkNotFound(command="spark-submit"), "none", at).bytes is None
    assert with_report(COMMITTED, died, ReclusterReport(1.0)).bytes == 1900  # a retry of the run that failed


def test_a_rewriting_without_conflicts_is_charged_with_its_commit_alone() -> None:
    assert with_report(COMMITTED, PLANNED, ReclusterReport(1.0)).bytes == 900
    assert with_report(None, PLANNED, ReclusterReport(1.0)).bytes == 0
