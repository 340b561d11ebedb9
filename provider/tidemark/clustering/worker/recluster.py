"""Reclustering of one table: decided from its log, written ahead, run on Spark, and kept in the ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import sqlalchemy as sa

from tidemark.clustering.model.jobs import RECLUSTER, ReclusterReport, ReclusterRequest, mark_of
from tidemark.clustering.model.tables import (
    ClusteredTable,
    Goal,
    How,
    Plan,
    Recluster,
    Reclustered,
    ReclusterState,
    Seen,
)
from tidemark.clustering.planning.expected import expected_depth
from tidemark.clustering.planning.identity import require_same
from tidemark.clustering.planning.keys import key_of
from tidemark.clustering.planning.upkeep import allowed_bytes, plan_upkeep, smoothed_layer, within_goal
from tidemark.clustering.store import reclusterings, tables
from tidemark.clustering.worker.ends import commit_of, failed, outcome_of, with_report
from tidemark.clustering.worker.looking import Look, look_at, seen_after, seen_now
from tidemark.errors import TidemarkError
from tidemark.failpoints import failpoint
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.file_ranges import Bound
from tidemark.model.statements import TransactionKey
from tidemark.model.table_log import TableState
from tidemark.streams.worker.opening import wherever
from tidemark.streams.worker.runtime import Runtime

__all__ = ["recluster_table"]

_DAY = timedelta(days=1)
_LONGEST_PROBLEM = 2_000  # characters


def recluster_table(
    runtime: Runtime,
    table: ClusteredTable,
    *,
    key: TransactionKey,
    goal: Goal | None = None,
    most_bytes: int | None = None,
    within: Sequence[Bound] = (),
    by_hand: bool = False,
) -> Reclustered:
    """Rewrite files of the table if that pays now, and say why or why not.

    `goal`: in place of the table's own. `most_bytes`: rewritten by this run, at most. `within`: only files that can
    have rows there count for the depth. `by_hand`: even if the table is suspended, and without the budget of a day. A
    second run with the same key finds the commit of the first one, or runs its plan again. If other writers come first,
    the next run tries again. Raises ClusteredTableRecreated, and errors of the log and of the job; they are kept with
    the table.
    """
    work = _Work(runtime, table, goal or table.goal, key, tuple(within))
    try:
        return work.done(most_bytes, by_hand=by_hand)
    except TidemarkError as error:
        work.keep_failure(error)
        raise


@dataclass
class _Work:
    runtime: Runtime
    table: ClusteredTable
    goal: Goal
    key: TransactionKey
    within: tuple[Bound, ...] = ()

    def done(self, most_bytes: int | None, *, by_hand: bool) -> Reclustered:
        log = wherever(self.runtime.tables)(self.table.table)
        state = log.state()
        require_same(self.table.table, state)
        begun = self._begun()
        if begun is not None:
            return self._run(log, begun)
        if self.table.suspended is not None and not by_hand:
            return self._nothing(f"suspended: {self.table.suspended}")
        if not self._has_key(state):
            return self._nothing("the table no longer has a clustering key")
        kept = None if self.within else self.table.seen
        seen = seen_now(log, state, self.table.key, kept, table=self.table.name)
        why = None if seen is None else within_goal(self._for_plan(seen, by_hand=by_hand), self.goal)
        if seen is not None and why is not None:
            self._keep_seen(seen)
            return self._nothing(why, seen.depth)
        look = self._look(log, state)
        plan = self._plan(look, most_bytes, by_hand=by_hand)
        if plan.how is How.NOTHING:
            self._keep_seen(look.seen)
            return self._nothing(plan.why, look.seen.depth)
        planned = self._written_ahead(look, plan)
        failpoint("recluster.planned")
        return self._run(log, planned)

    def keep_failure(self, error: TidemarkError) -> None:
        """The error, with the table and in its ledger."""
        store, at, run = self.runtime.store, self.runtime.store.clock(), str(self.key)
        words = store.hide(f"{type(error).__name__}: {error}")[:_LONGEST_PROBLEM]

        def keep(connection: sa.Connection) -> None:
            tables.note_problem(connection, self.table, problem=words, at=at, by=run)
            planned = reclusterings.find_recluster(connection, self.table.uid, run)
            if planned is not None:
                reclusterings.end_recluster(connection, failed(planned, error, words, at))

        store.write(keep)

    def _begun(self) -> Recluster | None:
        """The plan of an earlier attempt of this run."""
        return self.runtime.store.read(lambda c: reclusterings.find_recluster(c, self.table.uid, str(self.key)))

    def _has_key(self, state: TableState) -> bool:
        """Whether the table has a key; another one than the registered becomes the registered one."""
        columns = key_of(state)
        if columns and columns != self.table.key:
            changed, by = replace(self.table, key=columns), str(self.key)
            self.table = self.runtime.store.write(lambda c: tables.register_table(c, changed, by=by))
        return bool(columns)

    @staticmethod
    def _for_plan(seen: Seen, *, by_hand: bool) -> Seen:
        """By hand the floor does not count: what is said is done."""
        return replace(seen, floor=None) if by_hand else seen

    def _look(self, log: DeltaLog, state: TableState) -> Look:
        return look_at(log, state, self.table.key, self.table.seen, table=self.table.name, within=self.within)

    def _plan(self, look: Look, most_bytes: int | None, *, by_hand: bool) -> Plan:
        def depth_after(taken: Collection[str | None]) -> float:
            return expected_depth(look.files, taken, file_bytes=self.goal.file_bytes)

        goal = replace(self.goal, run_bytes=None, day_bytes=None) if by_hand else self.goal
        allowed = allowed_bytes(goal, self._spent(), most_bytes)
        seen = self._for_plan(look.seen, by_hand=by_hand)
        return plan_upkeep(look.layers, seen, goal, depth_after, allowed=allowed)

    def _spent(self) -> int:
        since = self.runtime.store.clock() - _DAY
        return self.runtime.store.read(lambda c: reclusterings.bytes_since(c, self.table.uid, since))

    def _written_ahead(self, look: Look, plan: Plan) -> Recluster:
        store = self.runtime.store
        planned = Recluster(
            uid=store.new_id(),
            table_uid=self.table.uid,
            run=str(self.key),
            planned_at=store.clock(),
            how=plan.how,
            why=plan.why,
            base_version=look.seen.version,
            planned_bytes=plan.bytes,
            cube_bytes=plan.cube_bytes,
            depth_before=look.seen.depth,
        )
        layer_bytes = smoothed_layer(look.seen.layer_bytes, look.layers)
        self._keep_seen(replace(look.seen, layer_bytes=layer_bytes))
        return store.write(lambda connection: reclusterings.plan_recluster(connection, planned))

    def _run(self, log: DeltaLog, planned: Recluster) -> Reclustered:
        """Run the plan, unless an earlier attempt did; then keep its end."""
        store = self.runtime.store
        if planned.state is ReclusterState.DONE:
            return outcome_of(self.table.name, planned)
        ended = commit_of(log, planned, store.store_id)
        if ended is None:
            report = self._job(planned)
            ended = with_report(commit_of(log, planned, store.store_id), planned, report)
        seen = None
        if ended.version is not None:
            seen = seen_after(self._look(log, log.state()), planned.how)
            ended = replace(ended, depth_after=seen.depth)
        ended = replace(ended, ended_at=store.clock())

        def keep(connection: sa.Connection) -> Recluster:
            reclusterings.end_recluster(connection, ended)
            return reclusterings.find_recluster(connection, planned.table_uid, planned.run) or ended

        kept = store.write(keep)
        failpoint("recluster.kept")
        if seen is not None:
            self._keep_seen(seen)
        return outcome_of(self.table.name, kept)

    def _job(self, planned: Recluster) -> ReclusterReport:
        request = ReclusterRequest(
            table=self.table.table,
            mark=mark_of(self.runtime.store.store_id, planned.uid),
            cube_bytes=planned.cube_bytes,
            most_bytes=planned.planned_bytes,
            full=planned.how is How.FULL,
            file_bytes=self.goal.file_bytes,
        )
        return self.runtime.run_job(RECLUSTER, request, key=self.key)

    def _keep_seen(self, seen: Seen) -> None:
        if self.within:
            return  # it is a part of the table
        store, run = self.runtime.store, str(self.key)
        at = store.clock()
        if store.write(lambda connection: tables.note_seen(connection, self.table, seen, at=at, by=run)):
            self.table = replace(self.table, seen=seen, seen_at=at)

    def _nothing(self, why: str, depth: float | None = None) -> Reclustered:
        return Reclustered(self.table.name, How.NOTHING, why, depth_before=depth, depth_after=depth)
