"""I1–I9 and I11 under random acts: consumers and clients that die anywhere or fail for good, drivers that outlive
them, users at will.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.control.kept_objects import drifted
from tests.tiers import nightly
from tidemark.delivery.model.marks import parse_mark
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import (
    CommitRefused,
    Fenced,
    JobDeadlineExceeded,
    JobsMayBeAlive,
    MissingMergeKey,
    PlanChanged,
    StreamLocked,
    SubmitRefused,
    Superseded,
    TargetChanged,
    TargetRewound,
    TransactionNotFound,
    TransactionOpen,
)
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.store import transactions
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.extend import extend
from tidemark.streams.worker.finish import finish
from tidemark.streams.worker.outcomes import Delivered
from tidemark.streams.worker.redo import redo
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import advance_stream, get_stream
from tidemark.streams.worker.submit import submit
from tidemark.streams.worker.unwritten import end_attempt, let_go

from .drivers import Driver, WorkerDied
from .world import LONG, SHORT, World, key_of

REFUSALS = (
    CommitRefused,
    Fenced,
    JobDeadlineExceeded,
    JobsMayBeAlive,
    MissingMergeKey,
    PlanChanged,
    StreamLocked,
    SubmitRefused,
    Superseded,
    TargetChanged,
    TargetRewound,
    TransactionNotFound,
    TransactionOpen,
)
AGES = st.sampled_from([0, 0, 0, 1, 1, 2, 3])  # of a consumer: 0 comes for the first time
PLANS = st.sampled_from([(0, 1), (1, 0), (1,)])
STREAMS = st.sampled_from([("s",), ("s", "t"), ("t", "s"), ("t",)])
TARGETS = st.sampled_from([0, 1])
DIES = st.sampled_from(
    ["never", "never", "after begin", "in the job", "killed in the job", "fails for good", "before commit"]
)
FOR_GOOD = MissingMergeKey(target="any", problem="no column")


class Consumers(RuleBasedStateMachine):
    """Sources go on, consumers come, die and come back, drivers live on; nobody touches the targets."""

    untouched = True

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="protocol-"))
        self.world = World(self.root, f"sqlite:///{self.root}/control.db")
        self.uids = [self.world.stream("s", "source").uid, self.world.stream("t", "other").uid]
        self.copies: list[Transaction] = []
        self.next_run = 0

    # --- what happens

    @rule(source=st.sampled_from(["source", "other"]))
    def source_commits(self, source: str) -> None:
        self.world.sources[source].append()

    @rule(age=AGES, plan=PLANS, streams=STREAMS, dies=DIES, data=st.data())
    def consumer_runs(
        self, age: int, plan: tuple[int, ...], streams: tuple[str, ...], dies: str, data: st.DataObject
    ) -> None:
        self._consume(self._run(age), plan, streams, dies, data, depth=0)

    @rule(plan=PLANS, streams=STREAMS, dies=DIES, data=st.data())
    def client_runs(self, plan: tuple[int, ...], streams: tuple[str, ...], dies: str, data: st.DataObject) -> None:
        """A transaction of a notebook: it takes one stream after the other, and nobody comes back for it."""
        self._interact(plan, streams, dies, data)

    @rule(stream=st.sampled_from(["s", "t"]), dies=DIES, data=st.data())
    def user_finishes(self, stream: str, dies: str, data: st.DataObject) -> None:
        self.next_run += 1
        by = key_of(f"finish {self.next_run}")
        run, paths = (lambda spec: self._job(spec, dies, data, depth=1)), self.world.paths
        self._refusable(lambda: finish(Runtime(self.world.store, run=run, paths=paths), stream, by=by, owner="ann"))

    @rule(age=AGES)
    def consumer_lets_go(self, age: int) -> None:
        run = self._run(age)
        before = self._versions(run)
        self._refusable(lambda: let_go(self.world.store, key_of(run)))
        self._nothing_new_while_alive(run, before)

    @rule(data=st.data(), steps=st.integers(1, 4))
    def late_driver_goes_on(self, data: st.DataObject, steps: int) -> None:
        if alive := [driver for driver in self.world.drivers if driver.alive]:
            driver = data.draw(st.sampled_from(alive))
            for _ in range(steps):
                driver.step()

    @rule()
    def lease_runs_out(self) -> None:
        self.world.clock.go(SHORT)

    @rule()
    def deadlines_pass(self) -> None:
        self.world.clock.go(LONG)

    @rule(age=AGES)
    def consumer_rolls_back(self, age: int) -> None:
        rollback(self.world.store, key_of(self._run(age)))

    @rule(age=AGES)
    def user_replans(self, age: int) -> None:
        run = self._run(age)
        before = self._versions(run)
        self._refusable(lambda: replan(self.world.runtime, key_of(run)))
        self._nothing_new_while_alive(run, before)

    @precondition(lambda self: bool(self.copies))
    @rule(data=st.data())
    def stale_copy_comes_back(self, data: st.DataObject) -> None:
        copy = data.draw(st.sampled_from(self.copies))
        jobs, now = len(self.world.drivers), self._current(copy)
        same = now is not None and now.state is TransactionState.OPEN and self._window(now) == self._window(copy)
        done = self._refusable(lambda: self.world.submit(copy, self._die))
        if not same:
            assert not done, "a stale copy was submitted (I11)"
            assert len(self.world.drivers) == jobs

    @rule(stream=st.sampled_from(["s", "t"]))
    def user_advances(self, stream: str) -> None:
        head = self.world.sources["source" if stream == "s" else "other"].head()
        self._refusable(lambda: advance_stream(self.world.store, stream, head, "user", "skip"))

    @rule(stream=st.sampled_from(["s", "t"]))
    def user_replaces_the_stream(self, stream: str) -> None:
        def replace() -> None:
            self.uids.append(self.world.stream(stream, "source" if stream == "s" else "other", or_replace=True).uid)

        self._refusable(replace)

    # --- how a consumer goes

    def _consume(
        self,
        run: str,
        plan: tuple[int, ...],
        streams: tuple[str, ...],
        dies: str,
        data: st.DataObject,
        depth: int,
    ) -> None:
        def whole() -> None:
            begun = begin(
                Runtime(self.world.store, run=lambda spec: self._job(spec, dies, data, depth), paths=self.world.paths),
                key=key_of(run),
                streams=streams,
                writes=self.world.writes(*plan),
                owner=run,
            )
            if isinstance(begun, Delivered):
                return
            self.copies.append(begun.transaction)
            if dies == "after begin":
                raise WorkerDied
            evidence = submit(
                Runtime(self.world.store, run=lambda spec: self._job(spec, dies, data, depth), paths=self.world.paths),
                begun.transaction,
            )
            if dies == "before commit":
                raise WorkerDied
            commit(self.world.store, key_of(run), evidence)

        before = self._versions(run)
        self._refusable(whole)
        self._end_attempt(run, dies)
        self._nothing_new_while_alive(run, before)

    def _interact(self, plan: tuple[int, ...], streams: tuple[str, ...], dies: str, data: st.DataObject) -> None:
        self.next_run += 1
        run, key, world = f"client {self.next_run}", key_of(f"client {self.next_run}"), self.world

        def job(spec: JobSpec) -> JobResult:
            return self._job(spec, dies, data, depth=0)

        def whole() -> None:
            begin(world.runtime, key=key, streams=(), writes=(), owner=run)
            for stream in streams:
                extend(Runtime(world.store, run=job, paths=world.paths), key, streams=(stream,))
            transaction = extend(Runtime(world.store, run=job, paths=world.paths), key, writes=world.writes(*plan))
            self.copies.append(transaction)
            if dies == "after begin":
                raise WorkerDied
            evidence = submit(Runtime(world.store, run=job, paths=world.paths), transaction)
            if dies == "before commit":
                raise WorkerDied
            commit(world.store, key, evidence)

        self._refusable(whole)
        self._end_attempt(run, dies)

    def _end_attempt(self, run: str, dies: str) -> None:
        if dies == "killed in the job":
            rollback(self.world.store, key_of(run))
        if dies == "fails for good":
            self._refusable(lambda: end_attempt(self.world.store, key_of(run), FOR_GOOD))

    def _run(self, age: int) -> str:
        """A consumer that was seen lately; for age 0 a new one, so that keys do not run out."""
        self.next_run += age == 0
        return f"run {max(0, self.next_run - age)}"

    def _job(self, spec: JobSpec, dies: str, data: st.DataObject, depth: int) -> JobResult:
        driver = self.world.driver(spec)
        for _ in range(20):
            if dies.endswith("in the job") and data.draw(st.booleans(), "worker dies"):
                raise WorkerDied
            if dies == "fails for good" and data.draw(st.booleans(), "job fails"):
                driver.result = JobResult(error=FOR_GOOD.to_record())
                return driver.result
            if depth == 0:
                self._meanwhile(data)
            driver.step()
            if driver.result is not None:
                return driver.result
        driver.fail()
        assert driver.result is not None
        return driver.result

    def _meanwhile(self, data: st.DataObject) -> None:
        act = data.draw(st.sampled_from(["nothing", "nothing", "commit", "lease", "consumer", "driver"]))
        if act == "commit":
            self.source_commits("source")
        elif act == "lease":
            self.world.clock.go(SHORT)
        elif act == "consumer":
            self._consume(
                self._run(data.draw(AGES)), data.draw(PLANS), data.draw(STREAMS), data.draw(DIES), data, depth=1
            )
        elif act == "driver":
            self.late_driver_goes_on(data, 1)

    def _die(self, spec: JobSpec) -> JobResult:
        self.world.driver(spec)
        raise WorkerDied

    def _refusable(self, act: Callable[[], object]) -> bool:
        """Whether it was done. Only refusals that have a name of ours may stop it."""
        try:
            act()
        except REFUSALS:
            return False
        except WorkerDied:
            return True
        return True

    # --- what must hold

    @invariant()
    def a_change_stands_in_a_target_once_i1_i7(self) -> None:
        planned = defaultdict(set)
        for stored in self._stored():
            for statement in stored.transaction.plan.statements:
                for window in stored.transaction.windows:
                    changes = {(window.stream_uid, v) for v in range(window.start + 1, window.end + 1)}
                    if stored.transaction.state is not TransactionState.RELEASED:
                        planned[statement.target.path] |= changes
        for target in self.world.targets:
            for change, count in target.contents().items():
                assert count == 1, f"{change} stands {count} times in {target.uri} (I1)"
                assert change in planned[target.uri], f"{change} in {target.uri} is of no plan (I7)"

    @invariant()
    def what_is_committed_is_delivered_i2_i3(self) -> None:
        for stored in self._stored():
            transaction = stored.transaction
            if transaction.result is not None and transaction.plan.statements:
                nothing = all(window.empty for window in transaction.windows)
                assert len(transaction.result.evidence) == (0 if nothing else len(transaction.plan.statements))
                if self.untouched:
                    self._require_delivered(transaction)

    @invariant()
    def offsets_move_forward_without_a_gap_i4(self) -> None:
        for name in ("s", "t"):
            moves = self.world.history(name)
            for earlier, later in pairwise(moves):
                assert earlier.to_version == later.from_version <= later.to_version
            assert moves[-1].to_version == self.world.offset(name)

    @invariant()
    def a_number_names_one_window_i5(self) -> None:
        named = defaultdict(set)
        for target in self.world.targets:
            for mark in filter(None, map(parse_mark, target.marks())):
                named[mark.app_id, mark.txn_version].add((mark.windows, mark.statement, mark.digest))
        assert all(len(names) == 1 for names in named.values())

    @invariant()
    def the_table_of_objects_shows_what_became_of_them(self) -> None:
        assert drifted(self.world.store) == []

    @invariant()
    def streams_move_together_and_have_one_holder_i8_i9(self) -> None:
        held = [
            window.stream_uid
            for stored in self._stored()
            if stored.transaction.state is TransactionState.OPEN
            for window in stored.transaction.windows
        ]
        assert len(held) == len(set(held))
        offsets = {name: get_stream(self.world.store, name) for name in ("s", "t")}
        for stored in self._stored():
            result = stored.transaction.result
            for window in result.windows if result else ():
                stream = offsets[window.stream]
                if stream.uid in {w.stream_uid for w in stored.transaction.windows}:
                    assert stream.offset.version >= window.to_version

    def teardown(self) -> None:
        """Progress: without further faults everything that is open is finished and the streams catch up."""
        self.world.clock.go(LONG)
        for _ in range(12):
            for stored in self._stored():
                if stored.transaction.state is TransactionState.OPEN and not self.untouched:
                    redo(self.world.store, stored.transaction.key)
            self.next_run += 1
            run = f"last {self.next_run}"
            if self._refusable(lambda name=run: self.world.consume(name, 0, 1, streams=("s", "t"))):  # type: ignore[misc]
                break
            self.world.clock.go(LONG)
        assert all(s.transaction.state is not TransactionState.OPEN for s in self._stored())
        assert self.world.offset("s") == self.world.source.head()
        assert self.world.offset("t") == self.world.sources["other"].head()
        self.a_change_stands_in_a_target_once_i1_i7()
        self.what_is_committed_is_delivered_i2_i3()
        shutil.rmtree(self.root)

    def _require_delivered(self, transaction: Transaction) -> None:
        for statement in transaction.plan.statements:
            contents = self.world.by_uri[statement.target.path].contents()
            for window in transaction.windows:
                for version in range(window.start + 1, window.end + 1):
                    assert contents[window.stream_uid, version] == 1, f"{version} is lost (I2)"

    def _stored(self) -> list[transactions.StoredTransaction]:
        def look(connection: object) -> dict[str, transactions.StoredTransaction]:
            found = (s for uid in self.uids for s in transactions.of_stream(connection, uid, 1000))  # type: ignore[arg-type]
            return {stored.id: stored for stored in found}

        return list(self.world.store.read(look).values())

    def _current(self, copy: Transaction) -> Transaction | None:
        stored = self.world.store.read(lambda connection: transactions.current(connection, copy.key))
        return None if stored is None else stored.transaction

    def _window(self, transaction: Transaction) -> tuple[object, ...]:
        return transaction.superseded_by, transaction.windows, transaction.plan

    def _versions(self, run: str) -> tuple[tuple[Driver, ...], tuple[int, ...] | None]:
        stored = self.world.store.read(lambda connection: transactions.current(connection, key_of(run)))
        drivers = tuple(d for d in self.world.drivers if d.alive and d.spec.key == key_of(run))
        opened = stored is not None and stored.transaction.state is TransactionState.OPEN
        return drivers, tuple(s.txn_version for s in stored.transaction.plan.statements) if stored and opened else None

    def _nothing_new_while_alive(self, run: str, before: tuple[tuple[Driver, ...], tuple[int, ...] | None]) -> None:
        """I6: versions change, or the window is released, only when no earlier job is alive."""
        drivers, versions = before
        after = self._versions(run)[1]
        if versions is not None and after is not None and versions != after:
            assert not any(driver.alive for driver in drivers), "a new version while a job lives (I6)"


class ConsumersAndUsers(Consumers):
    """The same, and users drop, replace and rewind the targets, and entries expire."""

    untouched = False

    @rule(which=TARGETS)
    def user_recreates_a_target(self, which: int) -> None:
        self.world.targets[which].recreate()

    @rule(which=TARGETS)
    def user_replaces_a_target(self, which: int) -> None:
        self.world.targets[which].replace()

    @rule(which=TARGETS, data=st.data())
    def user_restores_a_target(self, which: int, data: st.DataObject) -> None:
        table = self.world.targets[which]
        if table.head() > 0:
            table.restore(data.draw(st.integers(0, table.head() - 1)))

    @rule(which=TARGETS)
    def entries_expire(self, which: int) -> None:
        self.world.clock.go(LONG)  # a target remembers longer than any job lives
        self.world.targets[which].expire()

    @rule(age=AGES)
    def user_redoes(self, age: int) -> None:
        run = self._run(age)
        before = self._versions(run)
        self._refusable(lambda: redo(self.world.store, key_of(run)))
        self._nothing_new_while_alive(run, before)


QUICK = settings(
    max_examples=5,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
LONG_RUN = settings(QUICK, max_examples=1500, stateful_step_count=50)

# Each tier has a class of its own: a mark on the class that both inherit from would count before their own.


@pytest.mark.timeout(300)
class TestConsumers(Consumers.TestCase):  # type: ignore[name-defined,misc]
    settings = QUICK


@pytest.mark.timeout(300)
class TestConsumersAndUsers(ConsumersAndUsers.TestCase):  # type: ignore[name-defined,misc]
    settings = QUICK


@nightly("more random examples", "TestConsumersAndUsers")
@pytest.mark.timeout(7200)
class TestConsumersForLong(Consumers.TestCase):  # type: ignore[name-defined,misc]
    settings = LONG_RUN


@nightly("more random examples", "TestConsumersAndUsers")
@pytest.mark.timeout(7200)
class TestConsumersAndUsersForLong(ConsumersAndUsers.TestCase):  # type: ignore[name-defined,misc]
    settings = LONG_RUN
