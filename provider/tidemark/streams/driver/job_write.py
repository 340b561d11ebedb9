"""The WRITE job: all statements of a transaction, checked together, then written in order, each read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic

from tidemark.delivery.driver.append import prepare_append
from tidemark.delivery.driver.delivering import delivering
from tidemark.delivery.driver.exactly_once import (
    Delivering,
    find_delivery,
    open_target,
    partition_columns,
    target_schema,
    write_statement,
)
from tidemark.delivery.driver.merge import prepare_merge
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.delivery.planning.delivery import Finding
from tidemark.errors import StatementRefused
from tidemark.jobs.context import JobContext
from tidemark.model.statements import Evidence, Statement, WriteAs
from tidemark.sql.table_names import in_catalogs
from tidemark.streams.driver.catalog_tables import require_in_catalog
from tidemark.streams.driver.function import load_function, run_function
from tidemark.streams.driver.pinned_streams import PinnedStreams
from tidemark.streams.driver.quarantine import Quarantine
from tidemark.streams.driver.refresh import prepare_refresh
from tidemark.streams.driver.sql import prepare_sql
from tidemark.streams.model.transaction_jobs import StatementsRequest, WriteReport

__all__ = ["write"]


def write(job: JobContext, request: StatementsRequest) -> WriteReport:
    """Deliver the windows to every target. A second run writes only what is missing and returns the same evidence.

    Everything that can be refused (columns, keys, SQL) is refused for all statements before the first is written.
    """
    workspace = job.new_workspace(_owner(request.statements))
    try:
        shared = _read_by_several(request.statements)
        streams = PinnedStreams(
            job.session, request.windows, workspace, job.options, say=job.progress.say, shared=shared
        )
        writing = _Writing(job, delivering(job, request.windows), request.statements, streams)
        job.progress.expect(len(request.statements))
        with ExitStack() as kept:
            kept.callback(streams.close)
            kept.enter_context(streams.lost_files_named())
            return WriteReport(writing.write_all(writing.prepared(kept)))
    finally:
        workspace.close()


def _read_by_several(statements: Sequence[Statement]) -> set[str]:
    """The streams that several appends or merges read. Their change sets are worth keeping: each statement would run
    the query again. A pair with a quarantine keeps its own rows.
    """
    whole = (WriteAs.APPEND, WriteAs.MERGE)
    read = Counter(s.write.source for s in statements if s.write.write_as in whole)
    return {source for source, times in read.items() if source is not None and times > 1}


def _owner(statements: Sequence[Statement]) -> str:
    first = statements[0] if statements else None
    return "job" if first is None else f"{first.app_id.replace('/', '-')}-{first.txn_version}"


@dataclass(frozen=True)
class _Writing:
    """The statements of a job on their way to their targets."""

    job: JobContext
    shared: Delivering
    statements: tuple[Statement, ...]
    streams: PinnedStreams

    def prepared(self, kept: ExitStack) -> dict[int, PreparedWrite]:
        """By number, all that needs to be prepared; `kept` closes it."""
        self._require_named_tables()
        sorters = self._quarantines(kept)
        found = ((s.number, self._prepared(s, sorters, kept)) for s in self.statements)
        return {number: ready for number, ready in found if ready is not None}

    def _require_named_tables(self) -> None:
        """Names of catalogs, in statements that are not written yet, lead to their paths. Raises CatalogTableMoved."""
        named: dict[str, str] = {}
        for statement in self.statements:
            tables = in_catalogs(statement.write.tables)
            if tables and self._is_free(statement):
                named |= tables
        require_in_catalog(self.job.session, named)

    def _quarantines(self, kept: ExitStack) -> dict[int, Quarantine]:
        """Number of either statement → what sorts the rows of both; the quarantine's follows its target's."""
        found: dict[int, Quarantine] = {}
        for first, second in pairwise(self.statements):
            if second.write.write_as is WriteAs.QUARANTINE:
                pair = Quarantine(self.streams, self.shared, first, second, self.job.started_at)
                kept.callback(pair.close)
                found[first.number] = found[second.number] = pair
        return found

    def _prepared(
        self, statement: Statement, quarantines: Mapping[int, Quarantine], kept: ExitStack
    ) -> PreparedWrite | None:
        """None where there is nothing to prepare: the target has it already, or a function does it itself."""
        if statement.write.write_as is WriteAs.FUNCTION:
            load_function(statement.write.function or "")
            return None
        if not self._is_free(statement):
            return None
        began = monotonic()
        if (pair := quarantines.get(statement.number)) is not None:
            is_target = statement is pair.target
            prepared = pair.prepare_target() if is_target else pair.prepare_quarantine()
        else:
            prepared = self._prepare(statement)
        kept.callback(prepared.close)
        return replace(prepared, seconds=monotonic() - began)

    def _is_free(self, statement: Statement) -> bool:
        return find_delivery(self.shared, statement).finding is Finding.FREE

    def _prepare(self, statement: Statement) -> PreparedWrite:
        asked = statement.write
        if asked.write_as is WriteAs.SQL:
            return prepare_sql(self.job.session, statement, asked.sql or "", self.streams)
        if asked.source is None:
            raise StatementRefused(problem=f"{asked.write_as.value} needs the stream that it reads", sql=asked.target)
        if asked.write_as is WriteAs.REFRESH:
            return prepare_refresh(self.job.session, statement, self.streams, self.job.options)
        rows = self.streams.frame(asked.source)
        log = open_target(statement, self.job.options)
        if asked.write_as is WriteAs.APPEND:
            return prepare_append(rows, statement, target_schema(log))
        return prepare_merge(rows, statement, target_schema(log), asked.keys, partitioned=partition_columns(log))

    def write_all(self, prepared: Mapping[int, PreparedWrite]) -> tuple[Evidence, ...]:
        """Evidence for each statement, in order."""
        by_number = {statement.number: statement for statement in self.statements}
        evidence: dict[int, Evidence] = {}
        for statement in self.statements:
            if statement.number in evidence:  # its function has been called for an earlier one
                continue
            for found in self._written(statement, prepared):
                evidence[found.number] = found
                self.job.progress.delivered(by_number[found.number], found)
        return tuple(evidence[statement.number] for statement in self.statements)

    def _written(self, statement: Statement, prepared: Mapping[int, PreparedWrite]) -> tuple[Evidence, ...]:
        session = self.job.session
        if statement.write.write_as is not WriteAs.FUNCTION:
            ready = prepared.get(statement.number)
            if ready is None:
                return (write_statement(session, self.shared, statement, _already_there),)
            began = monotonic()
            found = write_statement(session, self.shared, statement, ready.run, ready.split, ready.changes)
            return (replace(found, seconds=None if found.found else ready.seconds + monotonic() - began),)
        name = statement.write.function
        together = [s for s in self.statements if s.write.write_as is WriteAs.FUNCTION and s.write.function == name]
        if all(find_delivery(self.shared, s).finding is Finding.DELIVERED for s in together):
            return tuple(write_statement(session, self.shared, s, _already_there) for s in together)
        return run_function(load_function(name or ""), self.streams, self.shared, together)


def _already_there() -> None:
    raise AssertionError("the write was found in the target's log and is gone now")
