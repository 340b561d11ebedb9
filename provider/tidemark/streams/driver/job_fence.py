"""The FENCE job: spend each statement's number, so that no late writer can use it (PROTOCOL step 18)."""

from __future__ import annotations

from tidemark.delivery.driver.delivering import delivering
from tidemark.delivery.driver.exactly_once import Delivering, fence_statement, find_delivery, write_statement
from tidemark.delivery.planning.delivery import Finding
from tidemark.errors import TargetNotFound
from tidemark.jobs.context import JobContext
from tidemark.model.statements import Evidence, Statement
from tidemark.streams.model.transaction_jobs import FenceReport, StatementsRequest

__all__ = ["fence"]


def fence(job: JobContext, request: StatementsRequest) -> FenceReport:
    """A second run finds the fences and says the same."""
    shared = delivering(job, request.windows)
    evidence: list[Evidence] = []
    numbers: dict[str, list[int]] = {"fenced": [], "written": [], "lost": []}
    for statement in request.statements:
        finding = _fenced(job, shared, statement)
        if finding is Finding.DELIVERED:
            numbers["written"].append(statement.number)
            evidence.append(write_statement(job.session, shared, statement, _never))
        else:
            numbers["fenced" if finding is Finding.FENCED else "lost"].append(statement.number)
        job.progress.say(f"statement {statement.number} on {statement.target.name}: {finding.value}")
    return FenceReport(tuple(evidence), **{name: tuple(found) for name, found in numbers.items()})


def _fenced(job: JobContext, shared: Delivering, statement: Statement) -> Finding:
    try:
        finding = find_delivery(shared, statement).finding
        if finding is Finding.FREE:
            finding = fence_statement(job.session, shared, statement).finding
    except TargetNotFound:
        return Finding.CHANGED
    return finding


def _never() -> None:
    raise AssertionError("the write was found in the target's log and is gone now")
