"""The WRITE job: all statements of a transaction, checked together, then written in order, each read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise

from tidemark.engine.writes.append import prepare_append
from tidemark.engine.writes.exactly_once import look, open_target, target_schema, write_statement
from tidemark.engine.writes.function import load_function, run_function
from tidemark.engine.writes.merge import prepare_merge
from tidemark.engine.writes.pinned_streams import PinnedStreams
from tidemark.engine.writes.prepared import PreparedWrite
from tidemark.engine.writes.quarantine import Quarantine
from tidemark.engine.writes.sql import prepare_sql
from tidemark.errors import StatementRefused
from tidemark.jobs.context import JobContext
from tidemark.model.jobs import JobResult
from tidemark.model.transactions import Evidence, Statement, WriteAs
from tidemark.planning.delivery import Finding

__all__ = ["write"]


def write(job: JobContext) -> JobResult:
    """Deliver the windows to every target. A second run writes only what is missing and returns the same evidence.

    What can be refused (columns, keys, SQL) is refused for all statements before the first is written.
    """
    workspace = job.new_workspace(_owner(job))
    try:
        streams = PinnedStreams(job.session, job.spec.windows, workspace, job.options, say=job.progress.say)
        with ExitStack() as kept:
            sorters = _quarantines(job, streams, kept)
            found = ((s.number, _prepared(job, s, streams, sorters, kept)) for s in job.spec.statements)
            prepared = {number: ready for number, ready in found if ready is not None}
            return JobResult(evidence=_write_all(job, streams, prepared))
    finally:
        workspace.close()


def _owner(job: JobContext) -> str:
    first = job.spec.statements[0] if job.spec.statements else None
    return "job" if first is None else f"{first.app_id.replace('/', '-')}-{first.txn_version}"


def _quarantines(job: JobContext, streams: PinnedStreams, kept: ExitStack) -> dict[int, Quarantine]:
    """Number of either statement → what sorts the rows of both; the quarantine's stands behind its target's."""
    found: dict[int, Quarantine] = {}
    for first, second in pairwise(job.spec.statements):
        if second.write.write_as is WriteAs.QUARANTINE:
            pair = Quarantine(streams, job.delivering, first, second, job.started_at)
            kept.callback(pair.close)
            found[first.number] = found[second.number] = pair
    return found


def _prepared(
    job: JobContext,
    statement: Statement,
    streams: PinnedStreams,
    quarantines: Mapping[int, Quarantine],
    kept: ExitStack,
) -> PreparedWrite | None:
    """None where there is nothing to prepare: the target has it already, or a function does it itself."""
    if statement.write.write_as is WriteAs.FUNCTION:
        load_function(statement.write.function or "")
        return None
    if look(job.delivering, statement).finding is not Finding.FREE:
        return None
    if (pair := quarantines.get(statement.number)) is not None:
        is_target = statement is pair.target
        prepared = pair.prepare_target() if is_target else pair.prepare_quarantine()
    else:
        prepared = _prepare(job, statement, streams)
    kept.callback(prepared.close)
    return prepared


def _prepare(job: JobContext, statement: Statement, streams: PinnedStreams) -> PreparedWrite:
    ask = statement.write
    if ask.write_as is WriteAs.SQL:
        return prepare_sql(job.session, statement, ask.sql or "", streams)
    if ask.source is None:
        raise StatementRefused(problem=f"{ask.write_as.value} needs the stream that it reads", sql=ask.target)
    rows = streams.frame(ask.source)
    schema = target_schema(open_target(statement, job.options))
    if ask.write_as is WriteAs.APPEND:
        return prepare_append(rows, statement, schema)
    return prepare_merge(rows, statement, schema, ask.keys)


def _write_all(job: JobContext, streams: PinnedStreams, prepared: dict[int, PreparedWrite]) -> tuple[Evidence, ...]:
    evidence: dict[int, Evidence] = {}
    for statement in job.spec.statements:
        if statement.number in evidence:  # its function has been called for an earlier one
            continue
        for found in _written(job, statement, streams, prepared):
            evidence[found.number] = found
            job.progress.delivered(_by_number(job.spec.statements, found.number), found)
    return tuple(evidence[statement.number] for statement in job.spec.statements)


def _written(
    job: JobContext, statement: Statement, streams: PinnedStreams, prepared: dict[int, PreparedWrite]
) -> tuple[Evidence, ...]:
    if statement.write.write_as is not WriteAs.FUNCTION:
        ready = prepared.get(statement.number)
        if ready is None:
            return (write_statement(job.session, job.delivering, statement, _already_there),)
        return (write_statement(job.session, job.delivering, statement, ready.run, ready.split, ready.changes),)
    name = statement.write.function
    together = [s for s in job.spec.statements if s.write.write_as is WriteAs.FUNCTION and s.write.function == name]
    if all(look(job.delivering, s).finding is Finding.DELIVERED for s in together):
        return tuple(write_statement(job.session, job.delivering, s, _already_there) for s in together)
    return run_function(load_function(name or ""), streams, job.delivering, together)


def _already_there() -> None:
    raise AssertionError("the write was found in the target's log and is gone now")


def _by_number(statements: Sequence[Statement], number: int) -> Statement:
    return next(statement for statement in statements if statement.number == number)
