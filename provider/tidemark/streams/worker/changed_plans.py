"""A key begun with another plan begins again, if no target has any of the old one (V2, PROTOCOL step 18)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import PlanChanged
from tidemark.model.statements import PlannedWrite
from tidemark.streams.planning.plan_differences import differences
from tidemark.streams.worker.amend import amend
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.unseen_jobs import end_unseen
from tidemark.streams.worker.unwritten import Remains, release_unwritten

__all__ = ["OtherPlan", "require_plan", "unless_half_written"]

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class OtherPlan(Exception):
    """The key has an open transaction with another plan; `problem` says what differs."""

    def __init__(self, stored: Transaction, problem: str, amended: Sequence[PlannedWrite] | None) -> None:
        super().__init__(problem)
        self.stored = stored
        self.problem = problem
        self.amended = amended  # what is asked for now, if it is on the same streams


def require_plan(stored: Transaction, streams: Sequence[str], writes: Sequence[PlannedWrite]) -> None:
    """Raises OtherPlan unless streams and statements are those that are stored (V2)."""
    kept = tuple(statement.write for statement in stored.plan.statements)
    names = tuple(window.stream_name for window in stored.windows)
    same_streams = {name.casefold() for name in names} == {name.casefold() for name in streams}
    if same_streams and [write.digest for write in kept] == [write.digest for write in writes]:
        return
    problem = differences(kept, writes, stored_streams=names, requested_streams=streams)
    raise OtherPlan(stored, problem, writes if same_streams else None)


def unless_half_written(begin: Callable[[], Answer], runtime: Runtime) -> Answer:
    """The answer of `begin`. If the key has another plan and none of it was written, that plan is taken back first. If
    only unwritten statements differ, they are replaced.

    A job that nobody saw end, since its worker was killed, is ended if it was started on this host. Elsewhere it is
    waited for by nobody: after its deadline it is shut out by a fence job. Raises PlanChanged where a target has a part
    that is to be another, may get one, or does not tell.
    """
    while True:
        try:
            return begin()
        except OtherPlan as other:
            key, holder = other.stored.key, other.stored.superseded_by
            end_unseen(runtime, key)
            remains = release_unwritten(runtime.store, key, holder=holder, tables=runtime.tables)
            if remains is not None and not (
                _shut_out(runtime, other.stored, remains)
                or (other.amended and amend(runtime, key, other.amended, holder=holder))
            ):
                raise _refusal(other, remains, runtime.host.name) from None
            log.info("Transaction %s continues with another plan: %s", key, other.problem)


def _shut_out(runtime: Runtime, stored: Transaction, remains: Remains) -> bool:
    """Whether late writers were fenced off and nothing was written: only where the last deadline is over."""
    over = remains.job_until is not None and remains.job_until <= runtime.store.clock()
    return over and replan(runtime, stored.key).state is not TransactionState.OPEN


def _refusal(other: OtherPlan, remains: Remains, here: str | None) -> PlanChanged:
    stored, where = other.stored, ""
    if remains.job_until is not None and remains.job_host is not None:
        alive = "; it is of this host, and its worker lives or its driver does not end"
        elsewhere = f"; an attempt of the task on its host, {remains.job_host}, could end it before"
        where = alive if remains.job_host == here else elsewhere
    held = [window.stream_name for window in stored.windows if not window.replayed]
    put_back = "Put the old arguments back and run the task again"
    command = f", or finish it as it was stored: `airflow tidemark streams finish {held[0]}`" if held else ""
    later = " The new arguments then hold from the next window on." if held else ""
    return PlanChanged(
        key=str(stored.key), problem=other.problem, reason=f"{remains}{where}", help=f"{put_back}{command}.{later}"
    )
