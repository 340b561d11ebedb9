"""A replication at random: jobs and workers that die at any step, two runs at once, slots that are lost, tables that
are made anew. Nothing is lost, nothing is applied twice, and nothing goes back.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.control.kept_objects import drifted
from tests.control.replication_model import ME, Ends, WorkerDied, World, at, found
from tests.tiers import some
from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.replication.model.replication import Actor, LogPosition, ObjectState, ReplicationOptions, ReplicationState
from tidemark.replication.planning.lifecycle import Act, ObjectAct, leads_to, object_leads_to
from tidemark.replication.worker import lifecycle, objects, status

TABLES = ("s.a", "s.b", "s.c")
names = st.sampled_from(TABLES[:2])
ends = st.sampled_from([*Ends, Ends.WELL, Ends.WELL, Ends.WELL])
a_few = st.lists(st.sampled_from(TABLES), min_size=1, max_size=3)
several = st.lists(ends, min_size=7, max_size=7)
runs = st.sampled_from([Actor("w", "", "dag/1/t/-1"), Actor("w", "", "dag/2/t/-1")])


class Replications(RuleBasedStateMachine):
    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        shutil.copy(self.template, self.root / "control.db")
        store = ControlStore(f"sqlite:///{self.root}/control.db", keep_connections=True)
        store.migrate()
        options = ReplicationOptions(target="lake", backfill_exclude=("s.c",))
        self.world = World(store, self.root, options)
        self.ids = {name: f"{name} 1" for name in TABLES}
        self.seen: dict[str, tuple[LogPosition | None, int]] = {}
        self.began: dict[str, LogPosition] = {}
        self.log: tuple[str, LogPosition | None, int] = ("", None, 0)

    def teardown(self) -> None:
        try:
            self.to_the_end()
        finally:
            self.world.store.close()
            shutil.rmtree(self.root)

    @initialize()
    def begin(self) -> None:
        self.world.start()
        self.look()

    def look(self) -> None:
        with suppress(TidemarkError):
            self.world.register(*(found(name, one) for name, one in self.ids.items()))

    @rule(names=a_few)
    def commit(self, names: list[str]) -> None:
        self.commit_to(names)

    def commit_to(self, names: list[str]) -> None:
        self.world.source.commit(*(self.ids[name] for name in names))

    def run(self, names: list[str], how: list[Ends], by: Actor) -> None:
        """What one run of a DAG does, each task with an end of its own; somebody has mended what was broken."""
        self.recover()
        self.resume()
        self.commit_to(names)
        self.look()
        self.capture_once(how[0], by)
        for number, name in enumerate(TABLES, 1):
            self.backfill_once(name, how[number], by)
            self.apply_once(name, how[-number], by)
        self.apply_all_once(how[-4], by)
        self.expire_once(how[-1])

    @rule(names=a_few, how=several, by=runs)
    def run_once(self, names: list[str], how: list[Ends], by: Actor) -> None:
        self.run(names, how, by)

    @rule(names=a_few, more=a_few, how=several, again=several, by=runs)
    def run_twice(self, names: list[str], more: list[str], how: list[Ends], again: list[Ends], by: Actor) -> None:
        self.run(names, how, by)
        self.run(more, again, by)

    @rule()
    def look_at_the_source(self) -> None:
        self.look()

    @rule(name=st.sampled_from(TABLES))
    def make_anew(self, name: str) -> None:
        number = int(self.ids[name].rpartition(" ")[2]) + 1
        self.ids[name] = f"{name} {number}"

    @rule(ends=ends, by=runs)
    def capture_once(self, ends: Ends, by: Actor) -> None:
        with suppress(TidemarkError, WorkerDied):
            self.world.capture(ends, by)

    @rule(name=names, ends=ends, by=runs)
    def backfill_once(self, name: str, ends: Ends, by: Actor) -> None:
        with suppress(TidemarkError, WorkerDied):
            self.world.backfill(name, ends, by)

    @rule(name=st.sampled_from(TABLES), ends=ends, by=runs)
    def apply_once(self, name: str, ends: Ends, by: Actor) -> None:
        with suppress(TidemarkError, WorkerDied):
            self.world.apply(name, ends, by)

    @rule(ends=ends, by=runs)
    def apply_all_once(self, ends: Ends, by: Actor) -> None:
        with suppress(TidemarkError, WorkerDied):
            self.world.apply_all(ends, by)

    @rule(ends=ends)
    def expire_once(self, ends: Ends) -> None:
        with suppress(TidemarkError, WorkerDied):
            self.world.expire(ends)

    @rule(name=st.sampled_from(TABLES), restart=st.booleans())
    def request(self, name: str, restart: bool) -> None:
        with suppress(TidemarkError):
            objects.request_backfill(self.world.store, "r", [name], by=ME, restart=restart)

    @rule(name=names)
    def stop(self, name: str) -> None:
        objects.stop_backfill(self.world.store, "r", [name], by=ME)

    @precondition(lambda self: self.world.late)
    @rule(data=st.data())
    def a_job_does_its_work_late(self, data: st.DataObject) -> None:
        chosen = data.draw(st.integers(0, len(self.world.late) - 1))
        self.world.work(self.world.late.pop(chosen))

    @rule()
    def time_goes_on(self) -> None:
        self.world.clock.go()

    @rule(at_once=st.booleans())
    def pause(self, at_once: bool) -> None:
        with suppress(TidemarkError):
            lifecycle.pause(self.world.store, "r", by=ME, at_once=at_once)
            lifecycle.drained(self.world.store, "r", by=ME)

    def resume(self) -> None:
        with suppress(TidemarkError):
            lifecycle.resume(self.world.store, "r", by=ME)

    @rule()
    def lose_the_slot(self) -> None:
        self.world.source.slot = None

    def recover(self) -> None:
        if self.world.replication.state is ReplicationState.FAILED_PERMANENTLY:
            position = self.world.source.make_slot()
            lifecycle.recover(self.world.store, "r", position=position, system_id="cluster-1", by=ME)

    @invariant()
    def nothing_is_lost_or_applied_twice(self) -> None:
        assert self.world.wrongs == []

    @invariant()
    def nothing_goes_back_and_nothing_is_ahead_of_what_it_follows(self) -> None:
        replication = self.world.replication
        url, captured, batches = self.log
        if url == replication.event_log and captured is not None:
            assert replication.captured is not None
            assert (replication.captured, replication.batches) >= (captured, batches)
            assert replication.batches >= batches
        self.log = (replication.event_log, replication.captured, replication.batches)
        for one in self.world.objects():
            applied, writes = self.seen.get(one.uid, (None, 0))
            assert one.writes >= writes
            if applied is not None:
                assert one.applied is not None
                assert one.applied >= applied
            if one.applied is not None and replication.captured is not None:
                assert one.applied <= replication.captured or one.applied == one.snapshot
            assert one.snapshot is None or (one.applied is not None and one.snapshot <= one.applied)
            self.seen[one.uid] = (one.applied, one.writes)

    @invariant()
    def the_table_of_objects_shows_what_became_of_them(self) -> None:
        assert drifted(self.world.store) == []

    @invariant()
    def a_target_has_what_the_store_says_that_it_has(self) -> None:
        for one in self.world.objects():
            if one.applied is not None and one.needs_backfill is None:
                target = self.world.targets.get(one.uid)
                end = self.began.setdefault(one.uid, one.applied) if target is None else target.end
                assert self.world.source.of(one.source_id, end, one.applied) == []

    @invariant()
    def a_number_is_of_one_write(self) -> None:
        kinds: dict[tuple[str, int], str] = {}
        for uid, number, kind in self.world.given:
            assert kinds.setdefault((uid, number), kind) == kind

    @invariant()
    def only_moves_that_may_be_are_in_the_history(self) -> None:
        acts = {act.value: act for act in Act}
        for move in status.history(self.world.store, "r", limit=3):
            if move.object_uid is None and move.act in acts:
                assert leads_to(ReplicationState(move.before), acts[move.act]) == ReplicationState(move.after)
            elif move.act in {act.value for act in ObjectAct}:
                assert object_leads_to(ObjectState(move.before), ObjectAct(move.act)) == ObjectState(move.after)

    def to_the_end(self) -> None:
        """Whatever has happened, runs that go well bring every target to where the source is."""
        world = self.world
        for spec in world.late:
            world.work(spec)
        world.clock.go(timedelta(hours=8))
        self.recover()
        self.resume()
        if world.source.slot is None:
            with suppress(TidemarkError):
                world.capture()
            self.recover()
        self.look()
        objects.request_backfill(world.store, "r", TABLES, by=ME)
        world.capture()
        for name in TABLES:
            assert world.backfill(name).report is not None
        world.source.commit(*self.ids.values())
        world.capture()
        for name in TABLES:
            world.apply(name)
            one = world.object(name)
            assert one.applied == world.replication.captured == at(world.source.head)
            assert (one.needs_backfill, one.problem, one.state) == (None, None, ObjectState.COMPLETED)
            assert world.targets[one.uid].end == one.applied
        self.nothing_is_lost_or_applied_twice()


@pytest.mark.parametrize("lives", some((6, 500), now=(6,)))
@pytest.mark.timeout(3600)
def test_a_replication_at_random(migrated_file: Path, lives: int) -> None:
    Replications.template = migrated_file
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    how = settings(max_examples=lives, stateful_step_count=20, deadline=None, suppress_health_check=slow)
    run_state_machine_as_test(Replications, settings=how)


@pytest.mark.parametrize("act", list(Act))
def test_no_act_leads_out_of_failed_permanently_but_a_recovery(act: Act) -> None:
    to = leads_to(ReplicationState.FAILED_PERMANENTLY, act)
    assert (to in (None, ReplicationState.FAILED_PERMANENTLY)) == (act is not Act.RECOVER)


@pytest.mark.parametrize("act", list(Act))
def test_nothing_but_a_start_leads_out_of_not_started(act: Act) -> None:
    to = leads_to(ReplicationState.NOT_STARTED, act)
    assert (to in (None, ReplicationState.NOT_STARTED)) == (act is not Act.START)


@pytest.mark.parametrize("state", list(ObjectState))
def test_only_a_backfill_that_was_begun_or_asked_for_completes(state: ObjectState) -> None:
    to = object_leads_to(state, ObjectAct.COMPLETE)
    never = (ObjectState.NOT_STARTED, ObjectState.UNSUPPORTED, ObjectState.COMPLETED)
    assert (to is None) == (state in never)
