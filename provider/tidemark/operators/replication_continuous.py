"""Capture and apply, round after round in one task."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark import metrics
from tidemark.hooks.replication import event_log_of
from tidemark.operators._base import key_of, seconds_of
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import (
    Names,
    ReplicationOperator,
    Transfer,
    by_of,
    default_outlets,
    lineage_of,
    names_of,
    targets_of,
)
from tidemark.operators._retries import PERMANENT
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    from tidemark.control.store import ControlStore
    from tidemark.model.source_address import SourceAddress
    from tidemark.operators._applied import Applied
    from tidemark.replication.sources.open import Source
    from tidemark.replication.worker.run_backfills import RunBackfills
    from tidemark.streams.worker.runtime import Runtime

    Lineage = OperatorLineage[Any, Any]

__all__ = ["ReplicateContinuouslyOperator"]


class ReplicateContinuouslyOperator(SparkOperator, ReplicationOperator):
    """Captures and applies in rounds until a deadline, each round right after the last. So a change waits for the
    round under way and its own, not for a schedule.

    A round prepares the replication, captures once and applies to all objects, with the promises of those operators. A
    quiet round starts no JVM. After the deadline it continues while another task of the run does a backfill. An
    unfinished one is waited for, ten minutes after its last attempt. The rounds end early if the replication is paused,
    or an object waits for a backfill that only the next run begins. An object that fails for good is left out of the
    later rounds, and FinishReplicationOperator fails for it. Any other failure ends the task. If something was applied
    before, it ends well, so that asset events are stored; the next run meets a lasting failure again. Returns
    {replication, rounds, captured, events, objects, left, failed}. `captured` and `events`: numbers of events captured
    and applied; the rest as ApplyEventsOperator, of each object's last round with events. Raises what
    PrepareReplicationOperator, CaptureEventsOperator and ApplyEventsOperator do.

    :param replication: its name. (templated)
    :param run_for_seconds: no round begins later than this after the task's start. (templated)
    :param every_seconds: the shortest time between the starts of two rounds. (templated)
    :param leave: objects that wait for a backfill of this run. (templated)
    """

    template_fields: Sequence[str] = ("replication", "run_for_seconds", "every_seconds", "leave", "conn_id")

    def __init__(
        self,
        *,
        replication: str,
        run_for_seconds: float | str = 3600.0,
        every_seconds: float | str = 5.0,
        leave: Names = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", default_outlets(replication))
        super().__init__(**kwargs)
        self.replication = replication
        self.run_for_seconds = run_for_seconds
        self.every_seconds = every_seconds
        self.leave = leave
        self._transfers: list[Transfer] = []
        check_constants(self, run_for_seconds=seconds_of, every_seconds=seconds_of, leave=names_of)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The tables that had events, the event log and the targets; None if nothing was new."""
        return lineage_of(self._transfers)

    def execute(self, context: Context) -> dict[str, Any]:
        """The sums of all rounds."""
        run_for, every = (seconds_of(name, getattr(self, name)) for name in ("run_for_seconds", "every_seconds"))
        leave, store = names_of("leave", self.leave), self.hook.open_store()
        rounds = self._rounds(context, store, store.clock() + run_for, leave)
        while True:
            next_begins = store.clock() + every
            if not self._ran(rounds):
                break
            time.sleep(max(0.0, (next_begins - store.clock()).total_seconds()))
        done = rounds.done
        self._transfers = [*rounds.captured.values(), *done.moved.values()]
        done.announce(self, context, self.replication)
        counts = {"rounds": rounds.number, "captured": rounds.events}
        return {**done.in_plain(self.replication), **counts, "events": rounds.applied}

    def _ran(self, rounds: _Rounds) -> bool:
        """Whether there was a round, and it ended well. Raises its error if no round has applied anything: else the
        asset events of what was applied would be lost.
        """
        from tidemark.errors import TidemarkError

        try:
            if not rounds.may_go_on():
                return False
            rounds.run()
        except TidemarkError as error:
            if not rounds.done.moved:
                raise
            self.log.error("The rounds end early, and the next run meets this again if it lasts: %s", error)
            return False
        return True

    def _rounds(self, context: Context, store: ControlStore, until: datetime, leave: Sequence[str]) -> _Rounds:
        from tidemark.hooks.source_connection import source_address
        from tidemark.operators._applied import Applied
        from tidemark.replication.sources.open import open_source
        from tidemark.replication.worker.definitions import get_replication
        from tidemark.replication.worker.run_backfills import RunBackfills

        address = source_address(get_replication(store, self.replication).source_conn_id)
        return _Rounds(
            task=self,
            context=context,
            store=store,
            address=address,
            source=open_source(address),
            capturing=self.runtime(source=address),
            applying=self.runtime(),
            until=until,
            backfills=RunBackfills(store, self.replication, key=key_of(context), expected=leave),
            done=Applied(),
        )


@dataclass
class _Rounds:
    """The rounds of one task. `number`: those that ended; `events`, `applied`: events captured and applied so far."""

    task: ReplicateContinuouslyOperator
    context: Context
    store: ControlStore
    address: SourceAddress
    source: Source
    capturing: Runtime
    applying: Runtime
    until: datetime
    backfills: RunBackfills
    done: Applied
    captured: dict[tuple[str, ...], Transfer] = field(default_factory=dict)
    number: int = 0
    events: int = 0
    applied: int = 0

    def may_go_on(self) -> bool:
        """Whether another round is to begin: until the deadline, and while the run backfills. Says why not."""
        log = self.task.log
        if self._is_paused():
            log.info("Replication %s is paused; resume it to continue.", self.task.replication)
            return False
        if self.backfills.go_on():
            return True
        waiting = self.backfills.of_the_next_run()
        if waiting and self.number:
            log.info("The next run backfills %s.", ", ".join(waiting))
            return False
        return self.store.clock() < self.until

    def run(self) -> None:
        """One round; nothing if the replication was paused since it was looked at."""
        from tidemark.errors import TidemarkError

        began = self.store.clock()
        try:
            if not self._prepare():
                return
            events = self._capture()
        except TidemarkError:
            self._apply()  # captured before
            raise
        applied = self._apply()
        self.number += 1
        self.events += events
        self.applied += applied
        self._report(events, applied, self.store.clock() - began)

    def _prepare(self) -> bool:
        from tidemark.errors import ReplicationRefused
        from tidemark.operators.replications import say_prepared
        from tidemark.replication.worker.preparing import prepare

        hook, name = self.task.hook, self.task.replication
        try:
            prepared = prepare(
                self.store,
                name,
                source=self.source,
                targets=targets_of(hook, self.store, name),
                by=by_of(self.context),
                open_log=event_log_of(hook),
            )
        except ReplicationRefused:
            if self._is_paused():
                return False
            raise
        say_prepared(prepared if self.number == 0 else replace(prepared, warnings=()), self.task.log)
        return True

    def _is_paused(self) -> bool:
        from tidemark.replication.model.replication import ReplicationState
        from tidemark.replication.worker.definitions import get_replication

        return get_replication(self.store, self.task.replication).state is ReplicationState.PAUSED

    def _capture(self) -> int:
        """The number of events."""
        from tidemark.operators.replication_capture import capture_now, captured_transfer
        from tidemark.replication.worker.definitions import get_replication

        name = self.task.replication
        try:
            report = capture_now(self.capturing, self.task.hook, name, self.source, self.context)
        except AirflowSkipException as elsewhere:
            self.task.log.info(str(elsewhere))
            return 0
        if report is None:
            return 0
        moved = captured_transfer(self.address, report, get_replication(self.store, name).event_log)
        self.captured[moved.tables] = moved
        return sum(report.events.values())

    def _apply(self) -> int:
        """The number of events. An object that failed for good is left out from now on."""
        from tidemark.operators._applied import apply_share
        from tidemark.replication.worker.lifecycle import drained
        from tidemark.replication.worker.run_work import objects_together

        name, key = self.task.replication, key_of(self.context)
        lasting = [failed for failed, error in self.done.failed.items() if isinstance(error, PERMANENT)]
        share = objects_together(self.store, name, key=key, leave=lasting)
        applied = apply_share(self.applying, name, share, self.context)
        self.done.take(applied)
        for failed, error in applied.failed.items():
            self.task.log.error("%s failed: %s", failed, error)
        if applied.failed and not applied.objects:
            raise applied.first_error()
        drained(self.store, name, by=by_of(self.context))
        return applied.events

    def _report(self, events: int, applied: int, took: timedelta) -> None:
        from tidemark.replication.worker.status import describe

        status = describe(self.store, self.task.replication)
        metrics.replicated(
            status.replication.name,
            lag_seconds=status.lag_seconds,
            lag_bytes=status.lag_bytes,
            failed_objects=len(status.failed),
        )
        if events or applied or self.number == 1:
            seconds = took.total_seconds()
            said = "Round %s: %s events captured, %s applied, in %.1f s"
            self.task.log.info(said, self.number, f"{events:,}", f"{applied:,}", seconds)
