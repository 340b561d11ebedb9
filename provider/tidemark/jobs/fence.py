"""The FENCE job: spend each statement's number, so that no late writer can use it (PROTOCOL step 18)."""

from __future__ import annotations

from tidemark.engine.writes.exactly_once import fence_statement, look, write_statement
from tidemark.errors import TargetNotFound
from tidemark.jobs.context import JobContext
from tidemark.model.jobs import JobResult
from tidemark.model.transactions import Evidence, Statement
from tidemark.planning.delivery import Finding

__all__ = ["fence"]


def fence(job: JobContext) -> JobResult:
    """Evidence for each statement that was written before the fence came.

    Facts: `fenced`, `written`, `lost`: statement numbers; lost are those whose target was replaced, rewound, dropped or
    has a later number. A second run finds the fences and says the same.
    """
    evidence: list[Evidence] = []
    numbers: dict[str, list[int]] = {"fenced": [], "written": [], "lost": []}
    for statement in job.spec.statements:
        finding = _fenced(job, statement)
        if finding is Finding.DELIVERED:
            numbers["written"].append(statement.number)
            evidence.append(write_statement(job.session, job.delivering, statement, _never))
        else:
            numbers["fenced" if finding is Finding.FENCED else "lost"].append(statement.number)
        job.progress.say(f"statement {statement.number} on {statement.target.name}: {finding.value}")
    return JobResult(evidence=tuple(evidence), facts=numbers)


def _fenced(job: JobContext, statement: Statement) -> Finding:
    try:
        finding = look(job.delivering, statement).finding
        if finding is Finding.FREE:
            finding = fence_statement(job.session, job.delivering, statement).finding
    except TargetNotFound:
        return Finding.CHANGED
    return finding


def _never() -> None:
    raise AssertionError("the write was found in the target's log and is gone now")
