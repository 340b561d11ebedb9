"""Refreshes of views: planned as a wave, then level by level, each level as one transaction if that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import RefreshesFailed, TidemarkError
from tidemark.errors.lasting import OF_THE_PLAN
from tidemark.materialized.model.definitions import KeptView, RefreshMode
from tidemark.materialized.model.refreshes import Refreshed, RefreshState, Wave
from tidemark.materialized.planning.graph import RUNS_EVERY
from tidemark.materialized.store import refreshes, views
from tidemark.materialized.worker.ends import Planned, keep_end, keep_failure, refreshed_from
from tidemark.materialized.worker.following import follow_bases
from tidemark.materialized.worker.prepare import LOST, Prepared, Preparing
from tidemark.materialized.worker.waves import plan_due, plan_named
from tidemark.model.statements import TransactionKey
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.store import transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.unwritten import let_go

__all__ = ["refresh_due", "refresh_level", "refresh_view", "refresh_wave", "transaction_keys"]

_OF_UID = 8  # characters, which tell views of one name apart
_ENDED = (RefreshState.DONE, RefreshState.UNCHANGED)


def refresh_view(
    runtime: Runtime, name: str, *, key: TransactionKey, mode: RefreshMode | None = None
) -> tuple[Refreshed, ...]:
    """Refresh a view, and before it the dynamic tables that it reads, all as of one point in time. The view is last.

    `mode`: in place of the view's own. A second run with the same key finishes what the first one began, and changes
    nothing after it has ended. Raises KeptViewNotFound, KeptViewSuspended, StreamLocked while another run refreshes it,
    RefreshesFailed if several were refreshed, and else the error of the refresh.
    """
    wave = plan_named(runtime.store, runtime.tables, str(key), [name], mode)
    return refresh_wave(runtime, wave, key=key)


def refresh_due(
    runtime: Runtime,
    names: Sequence[str] | None = None,
    *,
    key: TransactionKey,
    if_changed: bool = False,
    runs_every: timedelta = RUNS_EVERY,
) -> tuple[Refreshed, ...]:
    """Refresh the views that are due, among `names` or all, level by level. Arguments as in `plan_due`, retries and
    errors as in `refresh_view`.
    """
    wave = plan_due(runtime.store, runtime.tables, str(key), names, if_changed=if_changed, runs_every=runs_every)
    return refresh_wave(runtime, wave, key=key)


def transaction_keys(store: ControlStore, run: str, key: TransactionKey) -> tuple[TransactionKey, ...]:
    """The keys of the transactions that a task with `key` may have begun for the wave of `run`."""

    def look(connection: sa.Connection) -> tuple[TransactionKey, ...]:
        wave = refreshes.wave_of(connection, run)
        live = views.views_with_uids(connection, [one.view_uid for one in wave])
        levels = sorted({one.level for one in wave})
        together = [_together(key, number) for number in levels]
        return (*together, *(_alone(key, view) for view in live))

    return store.read(look)


def refresh_wave(runtime: Runtime, wave: Wave, *, key: TransactionKey) -> tuple[Refreshed, ...]:
    """Refresh all levels of a wave in their order. A view whose refresh fails stops its readers alone; the error is
    raised after the others.
    """
    done: list[Refreshed] = []
    errors: list[TidemarkError] = []
    for level in wave.levels:
        found = _Level(runtime, wave.run, level.number, key)
        done += found.refreshed()
        errors += found.errors
    _raise(errors, len(done))
    return tuple(done)


def refresh_level(runtime: Runtime, run: str, number: int, *, key: TransactionKey) -> tuple[Refreshed, ...]:
    """Refresh the views of one level of the wave that `run` has planned.

    Earlier levels that no task has begun come first, since mapped tasks have no order. Retries and errors as in
    `refresh_wave`. Views that fail in an earlier level are left to its own task.
    """
    for earlier in runtime.store.read(lambda connection: _unbegun_levels(connection, run, number)):
        _Level(runtime, run, earlier, key).refreshed()
    level = _Level(runtime, run, number, key)
    done = level.refreshed()
    _raise(level.errors, len(done))
    return done


def _raise(errors: Sequence[TidemarkError], total: int) -> None:
    if len(errors) == 1 and total == 1:
        raise errors[0]
    if errors:
        problems = " ".join(f"{type(error).__name__}: {error}" for error in errors)
        raise RefreshesFailed(failed=len(errors), total=total, problems=problems)


@dataclass
class _Level:
    """The refreshes of one level. `errors`: of those that have failed."""

    runtime: Runtime
    run: str
    number: int
    key: TransactionKey
    errors: list[TidemarkError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runtime = replace(self.runtime, serves_views=True)

    def refreshed(self) -> tuple[Refreshed, ...]:
        """The outcome for each view of the level."""
        self._finish(_together(self.key, self.number))
        failed = {one.view.name for one in self._planned() if not self._finished_alone(one)}
        left = [one for one in self._planned() if one.refresh.state not in _ENDED and one.view.name not in failed]
        ready = [one for one in map(self._prepared, left) if one is not None]
        changed = [one for one in ready if not one.silent]
        for one in ready:
            if one.silent:
                self._consume_alone(one)
        if len(changed) == 1 or (changed and not self._consumed_together(changed)):
            for one in changed:
                self._consume_alone(one)
        return tuple(refreshed_from(one.view, one.refresh) for one in self._planned())

    def _planned(self) -> list[Planned]:
        """The views of the level that live, as the store has them now."""
        return self.runtime.store.read(lambda connection: _planned(connection, self.run, self.number))

    def _prepared(self, planned: Planned) -> Prepared | None:
        """None if the refresh has failed before it began."""
        try:
            return Preparing(self.runtime, planned, _alone(self.key, planned.view)).prepared()
        except TidemarkError as error:
            self._failed(planned, error)
            return None

    def _finish(self, key: TransactionKey) -> None:
        """An earlier attempt has begun the transaction of that key: finish it as it is planned, and keep its end. Bases
        that were renamed or moved since are followed. If it fails for good, and nothing is written, the level begins
        again.
        """
        store, tables = self.runtime.store, self.runtime.tables
        stored = store.read(lambda connection: transactions.current(connection, key))
        if stored is None:
            return
        bases = (base.table.path for window in stored.transaction.windows for base in window.bases)
        if follow_bases(store, tables, set(bases)):
            stored = store.read(lambda connection: transactions.current(connection, key)) or stored
        try:
            self._consume(key, _streams(stored), Bound(), stored=stored)
        except TidemarkError as error:
            if not (isinstance(error, OF_THE_PLAN) and self._freed(key)):
                raise

    def _finished_alone(self, planned: Planned) -> bool:
        """Whether the view may still be refreshed. The driver for which the attempt has waited elsewhere fails one
        refresh, as one that is waited for here.
        """
        try:
            self._finish(_alone(self.key, planned.view))
        except TidemarkError as error:
            if self.runtime.awaited is None:
                raise
            self._failed(planned, error)
            return False
        return True

    def _consumed_together(self, ready: Sequence[Prepared]) -> bool:
        """Whether all were refreshed in one transaction. If the plan or the data of one are at fault, and nothing is
        written, they are refreshed one by one. So are views that have replaced those of an ended transaction. Raises
        other errors.
        """
        key = _together(self.key, self.number)
        if self.runtime.store.read(lambda connection: transactions.current(connection, key)) is not None:
            return False
        ends = {path: end for one in ready for path, end in one.bound.ends.items()}
        try:
            self._consume(key, [one.planned.view.stream for one in ready], Bound(ends=ends), ready=ready)
        except TidemarkError as error:
            if isinstance(error, OF_THE_PLAN) and self._freed(key):
                return False
            for one in ready:
                self._failed(one.planned, error, raised=False)
            raise
        return True

    def _consume_alone(self, ready: Prepared) -> None:
        """One refresh. If the window cannot be read, it begins again with all rows."""
        planned, key = ready.planned, _alone(self.key, ready.planned.view)
        try:
            try:
                self._consume(key, [planned.view.stream], ready.bound, ready=[ready])
            except LOST as error:
                why = f"{type(error).__name__}: {error}"
                again = Preparing(self.runtime, planned, key, why=why).prepared()
                self._consume(key, [planned.view.stream], again.bound, ready=[again])
        except TidemarkError as error:
            if isinstance(error, OF_THE_PLAN):
                self._freed(key)
            self._failed(planned, error)

    def _consume(
        self,
        key: TransactionKey,
        streams: Sequence[str],
        bound: Bound,
        *,
        ready: Sequence[Prepared] = (),
        stored: StoredTransaction | None = None,
    ) -> None:
        plan = () if stored is None else stored.transaction.plan.statements
        writes = [statement.write for statement in plan] or [one.write for one in ready]
        runtime, began = self.runtime, self.runtime.store.clock()
        if stored is not None and runtime.awaited is not None:
            began = min(began, stored.transaction.opened_at)
        consumed = consume(runtime, key=key, streams=streams, writes=writes, owner=self.run, bound=bound)
        seconds = (runtime.store.clock() - began).total_seconds()
        names = {name.casefold() for name in streams}
        for planned in self._planned():
            if planned.view.stream.casefold() in names:
                keep_end(runtime, planned, consumed.result, seconds=seconds)

    def _freed(self, key: TransactionKey) -> bool:
        store = self.runtime.store
        stored = store.read(lambda connection: transactions.current(connection, key))
        if stored is None or stored.transaction.state is not TransactionState.OPEN:
            return stored is None
        return let_go(store, key, tables=self.runtime.tables)

    def _failed(self, planned: Planned, error: TidemarkError, *, raised: bool = True) -> None:
        keep_failure(self.runtime, planned, error)
        if raised:
            self.errors.append(error)


def _together(key: TransactionKey, number: int) -> TransactionKey:
    return replace(key, task_id=f"{key.task_id}/level {number}")


def _alone(key: TransactionKey, view: KeptView) -> TransactionKey:
    """A view that has replaced another one has a key of its own, so that a cleared run refreshes it, too."""
    return replace(key, task_id=f"{key.task_id}/{view.name} {view.uid[:_OF_UID]}")


def _streams(stored: StoredTransaction) -> list[str]:
    return [window.stream_name for window in stored.transaction.windows]


def _unbegun_levels(connection: sa.Connection, run: str, number: int) -> list[int]:
    wave = refreshes.wave_of(connection, run)
    return sorted({one.level for one in wave if one.level < number and one.state is RefreshState.PLANNED})


def _planned(connection: sa.Connection, run: str, number: int) -> list[Planned]:
    wave = [one for one in refreshes.wave_of(connection, run) if one.level == number]
    live = {view.uid: view for view in views.views_with_uids(connection, [one.view_uid for one in wave])}
    return [Planned(live[one.view_uid], one) for one in wave if one.view_uid in live]
