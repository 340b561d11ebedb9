"""Replications as they stand in the store: created, started, paused, failed, recovered, dropped; their objects."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.control.replication_model import ME, Ends, WorkerDied, World, at, found
from tidemark.errors import (
    InvalidArgument,
    ObjectNotFound,
    ReplicationExists,
    ReplicationNotFound,
    ReplicationRefused,
    SlotAhead,
    SlotLost,
    SourceIsAnother,
    SourceUnreachable,
)
from tidemark.replication.model.replication import (
    Actor,
    InvalidValues,
    ObjectState,
    ReplicationOptions,
    ReplicationState,
    Selection,
)
from tidemark.replication.planning.lifecycle import ObjectAct
from tidemark.replication.worker import definitions, lifecycle, objects, status

OTHER = Actor("scheduler", "", "dag/run-2/task/-1")
S = ReplicationState
NO_BACKFILL = ReplicationOptions(target="lake", backfill=False)


@pytest.fixture
def world(replication_world: World) -> World:
    return replication_world


def acts(world: World) -> list[str]:
    return [move.act for move in reversed(status.history(world.store, "r", limit=1000))]


class TestDefinitions:
    def test_a_replication_is_named_in_the_source_after_its_uid(self, world: World) -> None:
        made = world.create("Übersicht der Bestellungen, " * 4)
        assert made.slot == made.publication
        assert made.slot.startswith("tidemark__bersicht_der_bestellungen__")
        assert made.slot.endswith(made.uid[:8])
        assert len(made.slot.encode()) == 63

    def test_one_that_exists_is_kept_or_refused(self, world: World) -> None:
        assert world.create("R", if_not_exists=True) == world.replication
        with pytest.raises(ReplicationExists):
            world.create("R")

    def test_how_values_and_batches_are_handled_can_be_altered_and_nothing_else(self, world: World) -> None:
        made = world.replication
        wanted = ReplicationOptions(
            target="other",
            invalid_values=InvalidValues.NULL,
            max_events=7,
            backfill=False,
            gives_way_after=60.0,
            fetch_rows=100,
            target_table="{table}",
            append_only_tables=("s.a",),
        )
        for _ in range(2):
            altered = definitions.alter_options(world.store, "R", wanted, by=ME)
            options = replace(
                made.options, invalid_values=InvalidValues.NULL, max_events=7, gives_way_after=60.0, fetch_rows=100
            )
            assert altered == world.replication == replace(made, options=options)
        assert acts(world).count("alter options") == 1
        with pytest.raises(InvalidArgument, match="max_events"):
            definitions.alter_options(world.store, "r", replace(wanted, max_events=0), by=ME)
        with pytest.raises(ReplicationNotFound):
            definitions.alter_options(world.store, "x", wanted, by=ME)

    def test_what_cannot_be_is_refused_before_anything_is_written(self, world: World) -> None:
        wrong = {
            "target": ReplicationOptions(target=" "),
            "max_events": ReplicationOptions(target="t", max_events=0),
            "gives_way_after": ReplicationOptions(target="t", gives_way_after=float("inf")),
            "numeric_as": ReplicationOptions(target="t", numeric_as="decimal(39,0)"),
            "backfill_exclude": ReplicationOptions(target="t", backfill_exclude=("a.b.c",)),
            "append_only_tables": ReplicationOptions(target="t", append_only_tables=("a.b.c",)),
            "merge_tables": ReplicationOptions(target="t", merge_tables=("",)),
            "target_table": ReplicationOptions(target="t", target_table="one"),
            "fetch_rows": ReplicationOptions(target="t", fetch_rows=0),
        }
        for argument, options in wrong.items():
            with pytest.raises(InvalidArgument, match=argument):
                world.create("other", options=options)
        for pattern in ("", "a..b", "a.b.c.d", 'a"b', "a.", '"a'):
            with pytest.raises(InvalidArgument, match="include"):
                world.create("other", Selection(include=(pattern,)))
        assert [one.name for one in definitions.list_replications(world.store)] == ["r"]

    def test_one_that_is_not_there_is_named_with_those_that_are(self, world: World) -> None:
        with pytest.raises(ReplicationNotFound, match="These exist: r"):
            definitions.get_replication(world.store, "x")

    def test_the_slot_is_told_before_the_store_forgets_it(self, world: World) -> None:
        world.replicated("s.a")
        with pytest.raises(ReplicationRefused, match="dropped in the source first"):
            definitions.drop_replication(world.store, "r", by=ME)
        for _ in range(2):
            assert definitions.begin_drop(world.store, "r", by=ME).slot == world.replication.slot
        for begins in (lambda: lifecycle.start(world.store, "r", by=ME), world.capture):
            with pytest.raises(ReplicationRefused, match="being dropped"):
                begins()
        assert "being dropped" in str(world.apply("s.a").reason)
        definitions.drop_replication(world.store, "r", by=ME)
        with pytest.raises(ReplicationNotFound):
            definitions.begin_drop(world.store, "r", by=ME)
        assert world.create("r").state is S.NOT_STARTED

    def test_a_drop_waits_for_jobs_that_may_be_alive_unless_it_is_forced(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(WorkerDied):
            world.backfill("s.a", Ends.WORKER_DIED_BEFORE)
        with pytest.raises(ReplicationRefused, match="may run until"):
            definitions.begin_drop(world.store, "r", by=ME)
        definitions.begin_drop(world.store, "r", by=ME, force=True)
        world.clock.go(timedelta(hours=7))
        definitions.begin_drop(world.store, "r", by=ME)

    def test_a_drop_waits_for_a_capture(self, world: World) -> None:
        world.start("s.a")
        world.source.commit("id of s.a")
        with pytest.raises(WorkerDied):
            world.capture(Ends.WORKER_DIED_BEFORE)
        with pytest.raises(ReplicationRefused, match="may run until"):
            definitions.begin_drop(world.store, "r", by=ME)


class TestLife:
    def test_a_start_that_died_is_begun_again_and_keeps_its_first_position(self, world: World) -> None:
        lifecycle.start(world.store, "r", by=ME)
        assert lifecycle.start(world.store, "r", by=ME).state is S.STARTING
        begun = lifecycle.validated(world.store, "r", system_id="c", position=at(5), by=ME)
        again = lifecycle.validated(world.store, "r", system_id="c", position=at(9), by=ME)
        assert (begun.state, begun.captured, again.captured) == (S.RUNNING, at(5), at(5))
        assert acts(world) == ["create", "start", "validated"]

    def test_a_source_that_is_not_fit_leaves_it_unstarted_with_the_problems(self, world: World) -> None:
        lifecycle.start(world.store, "r", by=ME)
        after = lifecycle.invalid(world.store, "r", problems="wal_level is replica", by=ME)
        assert (after.state, after.error) == (S.NOT_STARTED, "wal_level is replica")
        with pytest.raises(ReplicationRefused, match="has not been started"):
            world.capture()
        with pytest.raises(ReplicationRefused, match="has not been started"):
            lifecycle.pause(world.store, "r", by=ME)

    def test_a_pause_drains_and_captures_nothing_new(self, world: World) -> None:
        world.replicated("s.a", "s.b")
        world.source.commit("id of s.a")
        world.capture()
        assert lifecycle.pause(world.store, "r", by=ME).state is S.DRAINING
        world.source.commit("id of s.a")
        assert world.capture() is None
        assert lifecycle.drained(world.store, "r", by=ME).state is S.DRAINING
        for name in ("s.a", "s.b"):
            world.apply(name)
        assert lifecycle.drained(world.store, "r", by=ME).state is S.PAUSED
        assert objects.to_work_at(world.store, "r") == ()
        assert lifecycle.resume(world.store, "r", by=ME).state is S.RUNNING
        world.capture()
        world.apply("s.a")
        assert world.object("s.a").applied == at(world.source.head)

    def test_what_has_nothing_left_to_apply_is_paused_at_once(self, world: World) -> None:
        world.replicated("s.a")
        for _ in range(2):
            assert lifecycle.let_drain(world.store, "r", by=ME).state is S.PAUSED
        assert acts(world)[-2:] == ["pause", "drained"]
        lifecycle.resume(world.store, "r", by=ME)
        world.source.commit("id of s.a")
        world.capture()
        for _ in range(2):
            assert lifecycle.let_drain(world.store, "r", by=ME).state is S.DRAINING
        assert lifecycle.let_drain(world.store, "r", by=ME, at_once=True).state is S.PAUSED

    def test_what_cannot_go_on_holds_no_pause_up(self, world: World) -> None:
        world.replicated("s.a", "s.b", "s.c")
        world.register(found("s.a", "another"), found("s.b"), found("s.c"))
        objects.request_backfill(world.store, "r", ["s.b"], by=ME)
        with pytest.raises(WorkerDied):
            world.backfill("s.b", Ends.WORKER_DIED_AFTER)
        world.source.commit("id of s.c")
        world.capture()
        world.apply("s.c")
        lifecycle.pause(world.store, "r", by=ME)
        assert lifecycle.drained(world.store, "r", by=ME).state is S.DRAINING  # s.b may be at it
        world.clock.go(timedelta(minutes=11))
        assert lifecycle.drained(world.store, "r", by=ME).state is S.PAUSED

    def test_a_pause_at_once_applies_afterwards(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        world.capture()
        assert lifecycle.pause(world.store, "r", by=ME, at_once=True).state is S.PAUSED
        assert "paused" in str(world.apply("s.a").reason)
        with pytest.raises(ReplicationRefused, match="resume it"):
            lifecycle.start(world.store, "r", by=ME)
        lifecycle.resume(world.store, "r", by=ME)
        assert world.apply("s.a").report is not None

    def test_a_failed_run_is_healed_by_the_next_good_one(self, world: World) -> None:
        world.replicated("s.a")
        world.source.down = True
        with pytest.raises(SourceUnreachable):
            world.capture()
        assert (world.replication.state, "it is down" in str(world.replication.error)) == (S.FAILED, True)
        world.source.down = False
        world.capture()
        assert (world.replication.state, world.replication.error) == (S.RUNNING, None)

    @pytest.mark.parametrize("broken", ["lost", "ahead", "another"])
    def test_a_log_that_cannot_be_read_on_fails_for_good(self, world: World, broken: str) -> None:
        world.replicated("s.a")
        world.capture()
        if broken == "another":
            error = SourceIsAnother(source="s", found="c2", expected="c1")
            lifecycle.settle(world.store, "r", error=error, by=ME)
        else:
            world.source.slot = None if broken == "lost" else world.source.head + 100
            with pytest.raises((SlotLost, SlotAhead)):
                world.capture()
        assert world.replication.state is S.FAILED_PERMANENTLY
        lifecycle.failed(world.store, "r", error="something else", by=ME)
        lifecycle.went_well(world.store, "r", by=ME)
        assert "something else" not in str(world.replication.error)
        for refused in (lifecycle.start, lifecycle.resume, lifecycle.pause):
            with pytest.raises(ReplicationRefused, match="recover it from an explicit position"):
                refused(world.store, "r", by=ME)

    def test_a_recovery_needs_a_backfill_of_all_but_what_is_kept(self, world: World) -> None:
        world.replicated("s.a", "s.b")
        world.source.slot = None
        with pytest.raises(SlotLost):
            world.capture()
        world.source.commit("id of s.a")
        with pytest.raises(ObjectNotFound):
            lifecycle.recover(world.store, "r", position=at(99), system_id="cluster-1", keep=["s.x"], by=ME)
        position = world.source.make_slot()
        foretold = lifecycle.recovery_acts(world.store, "r", keep=["s.b"])
        assert foretold == {"s.a": ObjectAct.RESTART, "s.b": None}
        for _ in range(2):
            again = lifecycle.recover(world.store, "r", position=position, system_id="cluster-1", keep=["s.b"], by=ME)
            assert (again.state, again.captured, again.error) == (S.RUNNING, position, None)
        needs_backfill, kept = world.objects()
        assert (needs_backfill.state, kept.state, kept.needs_backfill) == (
            ObjectState.PENDING,
            ObjectState.COMPLETED,
            None,
        )
        assert "not captured are lost" in str(world.apply("s.a").reason)
        world.backfill("s.a")
        assert world.object("s.a").needs_backfill is None

    def test_another_cluster_begins_a_new_event_log(self, world: World) -> None:
        world.replicated("s.a", "s.b")
        world.source.commit("id of s.a")
        world.capture()
        world.apply("s.b")
        lifecycle.failed_permanently(world.store, "r", error="it is another", by=ME)
        with pytest.raises(ReplicationRefused, match="new one"):
            lifecycle.recover(world.store, "r", position=at(3), system_id="c2", by=ME)
        events = (world.root / "second").as_uri()
        with pytest.raises(ReplicationRefused, match=r"s\.a cannot continue"):
            lifecycle.recover(world.store, "r", position=at(3), system_id="c2", keep=["s.a"], event_log=events, by=ME)
        after = lifecycle.recover(
            world.store, "r", position=at(3), system_id="c2", keep=["s.b"], event_log=events, by=ME
        )
        assert (after.event_log, after.batches, after.captured) == (events, 0, at(3))
        assert [one.applied for one in world.objects()] == [None, at(3)]

    def test_every_move_says_who_when_why_and_in_which_run(self, world: World) -> None:
        world.replicated("s.a")
        moves = status.history(world.store, "r")
        assert [move.act for move in reversed(moves)] == [
            "create", "start", "validated", "register", "begin", "complete",
        ]  # fmt: skip
        assert {(move.by, move.at) for move in moves} == {(ME, world.clock.now)}
        assert moves[0].object_uid == world.object("s.a").uid
        assert moves[0].position == at(16)
