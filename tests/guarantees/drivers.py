"""A driver that plays Spark on synthetic tables: PROTOCOL steps 9 to 13 one by one, so that tests can interleave.

It is a real implementation of what a job promises, over real logs; only rows are replaced by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType

from tidemark.delivery.model.marks import MarkKind, ends_of_views, mark_of
from tidemark.delivery.planning.delivery import Delivery, Finding, judge
from tidemark.errors import (
    Fenced,
    JobDeadlineExceeded,
    SerialReused,
    Superseded,
    TableNotFound,
    TargetChanged,
    TargetNotFound,
    TargetRewound,
    TidemarkError,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import Evidence, RefreshHow, Statement
from tidemark.streams.model.transaction_jobs import FENCE, WRITE, FenceReport, WriteReport

from .synthetic_tables import SyntheticTable

__all__ = ["Driver", "WorkerDied"]


class WorkerDied(BaseException):
    """The worker is gone in the midst of its job; nobody cleans up, the driver may live on."""


class Driver:
    """One job, driven by `step` until `result` is there. Dead at its deadline, whatever it was about to do."""

    says_ends = True  # as drivers of this release, beside the mark
    seconds: Mapping[RefreshHow, float] = MappingProxyType({})  # of refreshes; other writes tell none

    def __init__(self, spec: JobSpec, tables: Mapping[str, SyntheticTable], clock: Callable[[], datetime]) -> None:
        self.spec = spec
        asked = WRITE.requested(spec)  # a fence is asked with the same
        self.windows, self.statements = asked.windows, asked.statements
        self.result: JobResult | None = None
        self._tables = tables
        self._clock = clock
        self._evidence: list[Evidence] = []
        self._lost: list[int] = []
        self._looked = False

    @property
    def alive(self) -> bool:
        return self.result is None and self._clock() < self.spec.deadline

    def run(self) -> JobResult:
        """All steps to the end."""
        while self.result is None:
            self.step()
        return self.result

    def fail(self) -> None:
        """The process dies."""
        self.result = JobResult(error=JobDeadlineExceeded(key=str(self.spec.key), deadline="now").to_record())

    def step(self) -> None:
        """Look at the next target, or write to it what the last look allowed and read it back."""
        if self.result is not None:
            return
        try:
            self._deadline()
            statement = next((s for s in self.statements if not self._done(s)), None)
            if statement is None:
                self.result = JobResult(to_plain(self._report()))
            elif self.spec.kind == FENCE.name:
                self._fence(statement)
            else:
                self._write(statement)
        except TidemarkError as error:
            self.result = JobResult(error=error.to_record())

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(self._evidence)

    def _report(self) -> WriteReport | FenceReport:
        if self.spec.kind == FENCE.name:
            return FenceReport(self.evidence, lost=tuple(self._lost))
        return WriteReport(self.evidence)

    def _done(self, statement: Statement) -> bool:
        return statement.number in self._lost or any(e.number == statement.number for e in self._evidence)

    def _deadline(self) -> None:
        if self._clock() >= self.spec.deadline:
            raise JobDeadlineExceeded(key=str(self.spec.key), deadline=self.spec.deadline.isoformat())

    def _write(self, statement: Statement) -> None:
        if self._looked:
            self._looked = False
            self._put(statement, MarkKind.WRITE, self._changes())
            self._accept(statement, self._look(statement), found=False)
            return
        delivery = self._look(statement)
        if delivery.finding is Finding.FREE:
            self._looked = True
        else:
            self._accept(statement, delivery, found=True)

    def _fence(self, statement: Statement) -> None:
        try:
            if self._look(statement).finding is Finding.FREE:
                self._put(statement, MarkKind.FENCE, [])
            finding = self._look(statement)
        except TargetNotFound:
            self._lost.append(statement.number)
            return
        if finding.finding is Finding.DELIVERED:
            self._accept(statement, finding, found=True)
        elif finding.finding is not Finding.FENCED:
            self._lost.append(statement.number)
        else:
            self.statements = tuple(one for one in self.statements if one.number != statement.number)

    def _changes(self) -> list[tuple[str, int]]:
        return [(w.stream_uid, version) for w in self.windows for version in range(w.start + 1, w.end + 1)]

    def _put(self, statement: Statement, kind: MarkKind, changes: list[tuple[str, int]]) -> None:
        ends = ends_of_views(self.windows) if self.says_ends else None
        mark = mark_of(self.spec.store_id, self.windows, statement, kind).to_text(ends=ends)
        self._tables[statement.target.path].write(statement.app_id, statement.txn_version, mark, changes)

    def _look(self, statement: Statement) -> Delivery:
        try:
            log = DeltaLog.open(statement.target.path)
        except TableNotFound as error:
            raise TargetNotFound(target=statement.target.name) from error
        head = log.head()
        found_id = log.state(head).table_id
        same = found_id == statement.target.table_id
        if same and head < statement.base_version:
            return Delivery(Finding.REWOUND, found_id)
        return judge(
            mark_of(self.spec.store_id, self.windows, statement, MarkKind.WRITE),
            expected_id=statement.target.table_id,
            found_id=found_id,
            commits=log.commits(statement.base_version, head) if same else (),
            version_at=log.version_at,
        )

    def _accept(self, statement: Statement, delivery: Delivery, *, found: bool) -> None:
        if delivery.finding is not Finding.DELIVERED or delivery.version is None:
            raise _refusal(self.spec, statement, delivery)
        refresh = statement.write.refresh
        seconds = None if found or refresh is None else self.seconds.get(refresh.how)
        self._evidence.append(
            Evidence(
                number=statement.number,
                table_id=delivery.table_id,
                commit_version=delivery.version,
                txn_version=statement.txn_version,
                digest=statement.digest,
                rows={"inserted": len(self._changes())},
                found=found,
                seconds=seconds,
            )
        )


def _refusal(spec: JobSpec, statement: Statement, delivery: Delivery) -> TidemarkError:
    key, target = str(spec.key), statement.target.name
    match delivery.finding:
        case Finding.CHANGED:
            return TargetChanged(target=target, expected=statement.target.table_id, found=delivery.table_id)
        case Finding.REWOUND:
            return TargetRewound(target=target, app_id=statement.app_id, txn_version=statement.txn_version)
        case Finding.FENCED:
            return Fenced(number=statement.number, key=key, target=target)
        case Finding.SUPERSEDED:
            return Superseded(key=key, by=f"number {delivery.number}")
        case _:
            return SerialReused(
                target=target, app_id=statement.app_id, txn_version=statement.txn_version, found=delivery.number
            )
