"""Objects of a replication in the store: found, backfilled, applied, stopped; what a capture tells of them."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from tests.control.replication_model import ME, Ends, WorkerDied, World, at, columns, found
from tidemark.errors import (
    EventLogChanged,
    InvalidArgument,
    JobDied,
    JobFailed,
    ObjectNotFound,
    ObjectNotReplicable,
    ReplicationRefused,
    SlotAhead,
    SourceUnreachable,
)
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.streams import TableRef
from tidemark.replication.model.jobs import (
    AppliedObject,
    AppliedObjects,
    ApplyEvents,
    ApplyObjects,
    ApplyReport,
    BackfillObject,
    CaptureEvents,
    CaptureReport,
)
from tidemark.replication.model.replication import (
    Actor,
    BackfillProgress,
    LogPosition,
    ObjectState,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
    WriteMode,
)
from tidemark.replication.store import replicated_objects
from tidemark.replication.worker import definitions, lifecycle, objects, status
from tidemark.replication.worker.capture import require_slot

OTHER = Actor("scheduler", "", "dag/run-2/task/-1")
EVERY_MOMENT = 0.05


@pytest.fixture
def world(replication_world: World) -> World:
    return replication_world


def without_backfill(world: World) -> None:
    definitions.begin_drop(world.store, "r", by=ME)
    definitions.drop_replication(world.store, "r", by=ME)
    world.create("r", options=ReplicationOptions(target="lake", backfill=False))


class TestFinding:
    def test_new_objects_wait_for_their_backfill(self, world: World) -> None:
        world.start()
        seen = world.register(found("s.b"), found("s.a", schema=columns("x", key="none")), found("other.c"))
        assert seen.new == ("s.a", "s.b")
        assert [one.state for one in seen.objects] == [ObjectState.PENDING] * 2
        assert [one.mode for one in seen.objects] == [WriteMode.APPEND_ONLY, WriteMode.MERGE]
        assert seen.objects[0].target.name == "lake.s_a"
        again = world.register(found("s.b"), found("s.a", schema=columns("x", key="none")), found("other.c"))
        assert (again.objects, again.new) == (seen.objects, ())

    def test_nothing_is_registered_before_the_start(self, world: World) -> None:
        with pytest.raises(ReplicationRefused, match="validate it first"):
            world.register(found("s.a"))

    def test_one_that_is_not_backfilled_begins_with_what_is_captured_from_now_on(self, world: World) -> None:
        without_backfill(world)
        world.start("s.a")
        one = world.object("s.a")
        assert (one.state, one.snapshot, one.applied) == (ObjectState.NOT_STARTED, None, at(16))
        world.source.commit("id of s.a")
        world.capture()
        report = world.apply("s.a").report
        assert report is not None
        assert (report.events, world.object("s.a").applied) == (1, at(17))
        assert "no backfill is requested" in str(world.backfill("s.a").reason)

    def test_two_objects_for_one_target_are_refused_and_nothing_is_taken_up(self, world: World) -> None:
        world.create("all", Selection())
        world.start()
        with pytest.raises(ReplicationRefused, match=r"s\.A and s\.a would be written to one target"):
            world.register(found("s.a"), found("s.A"))
        assert world.objects() == ()

    def test_a_key_column_cannot_be_excluded(self, world: World) -> None:
        definitions.alter_selection(world.store, "r", Selection(exclude=("s.a.id",)), by=ME)
        world.start()
        with pytest.raises(ObjectNotReplicable, match="key column id is excluded"):
            world.register(found("s.a"))

    def test_excluded_columns_are_told_to_the_capture(self, world: World) -> None:
        definitions.alter_selection(world.store, "r", Selection(exclude=("s.a.x",)), by=ME)
        world.start("s.a")
        world.source.commit("id of s.a")
        asks: list[CaptureEvents] = []

        def run(spec: JobSpec) -> JobResult:
            asks.append(from_plain(CaptureEvents, spec.request))
            return world.work(spec)

        world.runner = lambda ends: run  # type: ignore[method-assign]
        world.capture()
        (told,) = asks[0].objects
        assert (told.keys, told.excluded, told.schema) == (("id",), ("x",), None)
        assert asks[0].until == at(17)

    def test_one_that_is_unsupported_says_why_and_leaves_the_others(self, world: World) -> None:
        world.start()
        world.register(found("s.a", unsupported="no key: ALTER TABLE …"), found("s.b"))
        assert world.object("s.a").state is ObjectState.UNSUPPORTED
        assert [one.name.text for one in objects.to_work_at(world.store, "r")] == ["s.b"]
        with pytest.raises(ObjectNotReplicable, match="no key"):
            objects.request_backfill(world.store, "r", ["s.b", "s.a"], by=ME)
        assert world.backfill("s.a").reason == world.apply("s.a").reason == "no key: ALTER TABLE …"
        world.register(found("s.a"), found("s.b"))
        assert (world.object("s.a").state, world.object("s.a").problem) == (ObjectState.PENDING, None)

    def test_one_that_the_selection_leaves_is_kept_and_waits_for_a_backfill_when_it_comes_again(
        self, world: World
    ) -> None:
        world.replicated("s.a", "s.b")
        definitions.alter_selection(world.store, "r", Selection(include=("s.b",)), by=ME)
        seen = world.register(found("s.a"), found("s.b"))
        assert seen.deselected == ("s.a",)
        assert (world.object("s.a").state, world.object("s.a").selected) == (ObjectState.STOPPED, False)
        assert "no longer names it" in str(world.apply("s.a").reason)
        assert world.register(found("s.a"), found("s.b")).deselected == ()
        definitions.alter_selection(world.store, "r", Selection(), by=ME)
        assert world.register(found("s.a"), found("s.b")).selected_again == ("s.a",)
        again = world.object("s.a")
        assert again.state is ObjectState.PENDING
        assert "the selection did not name it" in str(world.apply("s.a").reason)
        world.backfill("s.a")
        assert world.apply("s.a").reason is None

    def test_one_that_is_gone_gets_its_last_events(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        world.capture()
        assert world.register().gone == ("s.a",)
        assert world.register().gone == ()
        assert [one.name.text for one in objects.to_work_at(world.store, "r")] == ["s.a"]
        assert world.apply("s.a").report is not None
        assert objects.to_work_at(world.store, "r") == ()
        with pytest.raises(ObjectNotReplicable, match="no longer has it"):
            objects.request_backfill(world.store, "r", ["s.a"], by=ME)

    def test_one_that_was_made_anew_keeps_its_target_until_a_backfill_is_asked_for(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        world.capture()
        assert world.register(found("s.a", "new id")).recreated == ("s.a",)
        one = world.object("s.a")
        assert (one.state, one.source_id) == (ObjectState.COMPLETED, "new id")
        assert "was dropped in the source and recreated" in str(world.apply("s.a").reason)
        assert "no backfill is requested" in str(world.backfill("s.a", by=OTHER).reason)
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        world.source.commit("new id")
        world.backfill("s.a", by=OTHER)
        world.source.commit("new id")
        world.capture()
        report = world.apply("s.a").report
        assert report is not None
        assert report.events == 1

    def test_one_that_was_renamed_goes_on_under_its_name(self, world: World) -> None:
        world.replicated("s.a")
        seen = world.register(found("s.old", "id of s.a"), found("s.a", "a later table"))
        assert (seen.renamed, seen.taken, seen.new) == ({"s.a": "s.old"}, ("s.a",), ())
        assert world.object("s.a").needs_backfill is None


class TestBackfill:
    def test_it_ends_at_the_snapshot_with_the_jobs_columns_and_table(self, world: World) -> None:
        world.start("s.a")
        world.source.commit("id of s.a")
        outcome = world.backfill("s.a")
        one = world.object("s.a")
        assert outcome.report is not None
        assert (one.state, one.snapshot, one.applied, one.writes) == (ObjectState.COMPLETED, at(17), at(17), 1)
        assert one.target.table_id == "table of s.a"
        assert one.progress == BackfillProgress(3, 3, world.clock.now)

    def test_a_clear_of_a_complete_one_answers_the_same_and_another_run_has_nothing_to_do(self, world: World) -> None:
        world.start("s.a")
        first = world.backfill("s.a").report
        again = world.backfill("s.a").report
        assert first is not None
        assert again == replace(first, found=True)
        assert "no backfill is requested" in str(world.backfill("s.a", by=OTHER).reason)
        assert world.jobs == 1

    def test_the_first_copy_is_told_whose_target_it_takes_over(self, world: World) -> None:
        world.replicated("s.a", "s.b")
        before = world.object("s.a")
        definitions.begin_drop(world.store, "r", by=ME)
        definitions.drop_replication(world.store, "r", by=ME)
        world.create("r")
        world.start("s.a", "s.b")
        told: list[tuple[str, ...]] = []

        def run(spec: JobSpec) -> JobResult:
            told.append(from_plain(BackfillObject, spec.request).earlier)
            return world.work(spec)

        world.backfill("s.a", run=run)
        assert told == [(before.uid,)]
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        world.backfill("s.a", run=run)
        assert told == [(before.uid,), ()]  # by then it is its own

    @pytest.mark.parametrize("ends", [Ends.WORKER_DIED_AFTER, Ends.JOB_DIED_AFTER, Ends.ERROR_BEHIND])
    def test_what_an_attempt_has_copied_that_did_not_end_well_is_found(self, world: World, ends: Ends) -> None:
        world.start("s.a")
        with pytest.raises((WorkerDied, JobDied, JobFailed)):
            world.backfill("s.a", ends)
        world.source.commit("id of s.a")
        report = world.backfill("s.a").report
        assert report is not None
        assert (report.found, report.snapshot, world.object("s.a").writes) == (True, at(16), 1)

    def test_another_run_waits_for_the_lease_of_a_silent_worker(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(WorkerDied):
            world.backfill("s.a", Ends.WORKER_DIED_BEFORE)
        assert "its lease ends at" in str(world.backfill("s.a", by=OTHER).reason)
        world.clock.go(timedelta(minutes=11))
        report = world.backfill("s.a", by=OTHER).report
        assert report is not None
        assert world.work(world.late.pop()).report["found"]  # the other one, late
        assert world.object("s.a").applied == report.applied

    def test_another_run_waits_for_nobody_where_the_job_is_dead(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(JobDied):
            world.backfill("s.a", Ends.JOB_DIED_BEFORE)
        assert world.object("s.a").state is ObjectState.FAILED
        assert world.backfill("s.a", by=OTHER).report is not None

    def test_an_error_is_kept_and_the_next_run_begins_with_a_new_number(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(SourceUnreachable):
            world.backfill("s.a", Ends.ERROR)
        one = world.object("s.a")
        assert (one.state, "it went away" in str(one.problem)) == (ObjectState.FAILED, True)
        world.backfill("s.a")
        one = world.object("s.a")
        assert (one.state, one.problem, one.writes) == (ObjectState.COMPLETED, None, 2)

    def test_an_error_says_nothing_of_an_earlier_job_that_may_still_write(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(WorkerDied):
            world.backfill("s.a", Ends.WORKER_DIED_BEFORE)
        with pytest.raises(SourceUnreachable):
            world.backfill("s.a", Ends.ERROR)
        world.work(world.late.pop())
        report = world.backfill("s.a").report
        assert report is not None
        assert (report.found, world.object("s.a").writes) == (True, 1)

    def test_a_failed_one_of_an_old_target_keeps_it_applied(self, world: World) -> None:
        world.replicated("s.a")
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        with pytest.raises(SourceUnreachable):
            world.backfill("s.a", Ends.ERROR)
        world.source.commit("id of s.a")
        world.capture()
        assert world.apply("s.a").report is not None

    def test_an_old_target_that_may_have_a_copy_waits_for_the_answer(self, world: World) -> None:
        world.replicated("s.a")
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        with pytest.raises(JobDied):
            world.backfill("s.a", Ends.JOB_DIED_AFTER)
        world.source.commit("id of s.a")
        world.capture()
        assert "may be in the target" in str(world.apply("s.a").reason)
        world.backfill("s.a")
        assert world.apply("s.a").report is not None

    def test_a_stop_ends_the_job_and_a_stopped_one_is_begun_only_when_asked_for(self, world: World) -> None:
        world.start("s.a")
        cancelled = threading.Event()

        def run(spec: JobSpec) -> JobResult:
            objects.stop_backfill(world.store, "r", ["s.a"], by=OTHER)
            assert cancelled.wait(20)
            return JobResult(error=JobDied(key="k", exit_code=143, tail="").to_record())

        outcome = world.backfill("s.a", run=run, cancel=cancelled.set, looks=EVERY_MOMENT)
        assert "it was stopped" in str(outcome.reason)
        assert world.object("s.a").state is ObjectState.STOPPED
        assert "it is stopped" in str(world.backfill("s.a").reason)
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        assert world.backfill("s.a").report is not None

    def test_a_stop_that_comes_too_late_leaves_it_complete(self, world: World) -> None:
        world.start("s.a")

        def run(spec: JobSpec) -> JobResult:
            objects.stop_backfill(world.store, "r", ["s.a"], by=OTHER)
            return world.work(spec)

        assert world.backfill("s.a", run=run).report is not None
        assert world.object("s.a").state is ObjectState.COMPLETED

    def test_one_that_is_begun_again_meanwhile_counts_for_nothing(self, world: World) -> None:
        world.replicated("s.a")
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)

        def run(spec: JobSpec) -> JobResult:
            objects.request_backfill(world.store, "r", ["s.a"], by=OTHER)
            assert world.object("s.a").state is ObjectState.ACTIVE  # only a restart begins it again
            objects.request_backfill(world.store, "r", ["s.a"], by=OTHER, restart=True)
            return world.work(spec)

        assert "begun again" in str(world.backfill("s.a", run=run).reason)
        assert world.object("s.a").state is ObjectState.PENDING
        assert "cut off" in str(world.apply("s.a").reason)
        world.backfill("s.a")
        assert (world.object("s.a").writes, world.object("s.a").needs_backfill) == (3, None)

    def test_progress_is_stored_while_the_job_runs_and_its_lease_renewed(self, world: World) -> None:
        world.start("s.a")
        seven = BackfillProgress(10, 7, world.clock.now)
        stored = threading.Event()

        def run(spec: JobSpec) -> JobResult:
            ask = from_plain(BackfillObject, spec.request)
            progress = BackfillProgress(10, 4, world.clock.now)
            set_progress = partial(replicated_objects.set_progress, uid=ask.object.uid, progress=progress)
            for number in (ask.number, ask.number + 1):
                assert world.store.write(partial(set_progress, number=number)) is (number == ask.number)
            assert stored.wait(20)
            assert world.object("s.a").progress == seven
            for _ in range(2):
                world.clock.go(timedelta(minutes=9))
                stored.clear()
                assert stored.wait(20)
                stored.clear()
                assert stored.wait(20)
            assert "its lease ends" in str(world.backfill("s.a", by=OTHER).reason)
            return world.work(spec)

        def read_progress(spec: JobSpec) -> BackfillProgress:
            if world.object("s.a").progress == seven:
                stored.set()
            return seven

        assert world.backfill("s.a", run=run, read_progress=read_progress, looks=EVERY_MOMENT).report is not None

    def test_a_new_backfill_begins_without_the_progress_of_the_last_one(self, world: World) -> None:
        world.replicated("s.a")
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        assert world.object("s.a").progress is not None

        def run(spec: JobSpec) -> JobResult:
            assert world.object("s.a").progress is None
            return world.work(spec)

        assert world.backfill("s.a", run=run).report is not None

    def test_it_belongs_to_a_run(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(InvalidArgument, match="belongs to a run"):
            world.backfill("s.a", by=Actor("me"))

    def test_an_object_is_found_by_its_whole_name(self, world: World) -> None:
        world.create("dotted", Selection())
        lifecycle.start(world.store, "dotted", by=ME)
        lifecycle.validated(world.store, "dotted", system_id="c", position=at(1), by=ME)
        there = (found("s.b.c"), found("s.b"), found("s.B c"), found("t.b"))
        objects.register(world.store, "dotted", there, targets=lambda name: TableRef(name.text, "/x", ""), by=ME)
        for one in there:
            known = objects.get_object(world.store, "dotted", one.name.text)
            assert (known.name, known.source_id) == (one.name, one.source_id)
            assert status.describe_object(world.store, "dotted", one.name.text).object == known
        for wrong in ("b", "s", "s.c", "S.b", "s_b", "s.%"):
            with pytest.raises(ObjectNotFound, match=r"s\.B c, s\.b, s\.b\.c, t\.b"):
                objects.get_object(world.store, "dotted", wrong)

    def test_an_unknown_object_is_named_with_those_there_are(self, world: World) -> None:
        world.start("s.a")
        with pytest.raises(ObjectNotFound, match=r"It has: s\.a"):
            objects.request_backfill(world.store, "r", ["s.x"], by=ME)


class TestCapture:
    def test_an_idle_source_moves_the_position_and_needs_no_job(self, world: World) -> None:
        world.replicated("s.a")
        world.source.head += 100
        assert world.capture() is None
        assert world.replication.captured == at(world.source.head)
        assert (world.source.slot, world.jobs) == (world.source.head, 1)
        assert world.apply("s.a").report is None
        assert (world.object("s.a").applied, world.jobs) == (at(world.source.head), 1)

    @pytest.mark.parametrize("ends", [Ends.WORKER_DIED_AFTER, Ends.JOB_DIED_AFTER])
    def test_what_a_dead_attempt_has_captured_is_applied_although_nobody_said_of_which_object(
        self, world: World, ends: Ends
    ) -> None:
        world.replicated("s.a", "s.b")
        world.source.commit("id of s.a")
        with pytest.raises((WorkerDied, JobDied)):
            world.capture(ends)
        assert world.source.slot == world.source.head  # further than the store
        world.capture()
        assert world.replication.batches == 1
        report = world.apply("s.a").report
        assert report is not None
        assert report.events == 1

    def test_a_slot_that_is_ahead_of_store_and_log_is_another_thing(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        with pytest.raises(WorkerDied):
            world.capture(Ends.WORKER_DIED_AFTER)
        world.source.slot = world.source.head + 5
        with pytest.raises(SlotAhead):
            world.capture()

    def test_a_slot_that_another_run_moves_on_meanwhile_is_not_ahead(self, world: World) -> None:
        """One run reads the store, another moves on store and slot, and the first one reads the slot."""
        world.replicated("s.a")
        answers = world.source.require_ours

        def overtaken(replication: Replication) -> LogPosition:
            world.source.require_ours = answers  # type: ignore[method-assign]
            world.source.head += 5
            assert world.capture() is None
            return answers(replication)

        before = world.replication
        world.source.require_ours = overtaken  # type: ignore[method-assign]
        assert require_slot(world.store, before, world.source) == at(world.source.head)
        world.source.require_ours = overtaken  # type: ignore[method-assign]
        world.capture()
        assert (world.replication.state, world.replication.captured) == (
            ReplicationState.RUNNING,
            at(world.source.head),
        )

    def test_a_slot_that_another_run_moves_on_during_the_job_is_not_ahead(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        own = world.runner

        def overtaken(spec: JobSpec) -> JobResult:
            world.runner = own  # type: ignore[method-assign]
            world.capture()
            world.source.head += 5
            assert world.capture() is None
            return world.work(spec)

        world.runner = lambda ends: overtaken  # type: ignore[method-assign]
        assert world.capture() is None
        assert (world.replication.state, world.replication.captured) == (
            ReplicationState.RUNNING,
            at(world.source.head),
        )

    def test_a_slot_that_is_behind_the_store_is_moved_first(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        world.capture()
        world.source.slot = 16
        assert world.capture() is None
        assert world.source.slot == world.source.head

    def test_only_objects_that_have_events_need_a_job(self, world: World) -> None:
        world.replicated("s.a", "s.b")
        world.source.commit("id of s.a", "id of s.a")
        report = world.capture()
        assert report is not None
        assert report.events == {"s.a": 2}
        jobs = world.jobs
        assert world.apply("s.b").report is None
        assert world.jobs == jobs
        assert [one.behind for one in status.describe(world.store, "r").objects] == [True, False]

    def test_an_event_log_that_has_less_than_it_had_is_not_believed(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        less = JobResult(to_plain(CaptureReport(at(1), 0, 0, {})))
        world.runner = lambda ends: lambda spec: less  # type: ignore[method-assign]
        with pytest.raises(EventLogChanged, match="before batch"):
            world.capture()
        assert world.replication.captured == at(16)

    def test_new_columns_are_told_to_the_next_capture(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        wider = columns("id", "x", "y")
        told: list[CaptureEvents] = []

        def run(spec: JobSpec) -> JobResult:
            told.append(from_plain(CaptureEvents, spec.request))
            answer = world.work(spec)
            return replace(answer, report={**answer.report, "schemas": {"s.a": to_plain(wider)}})

        world.runner = lambda ends: run  # type: ignore[method-assign]
        for _ in range(2):
            world.capture()
            world.source.commit("id of s.a")
        assert [one.objects[0].schema for one in told] == [None, wider]
        assert world.object("s.a").schema == columns("id", "x")  # as of what is applied


def _answer(world: World, report: ApplyReport) -> JobResult:
    return JobResult(to_plain(AppliedObjects((AppliedObject(world.object("s.a").uid, report),))))


class TestApply:
    def ready(self, world: World) -> None:
        world.replicated("s.a")
        world.source.commit("id of s.a")
        world.capture()

    @pytest.mark.parametrize("ends", list(Ends)[1:])
    def test_a_retry_has_the_same_number_and_bounds_and_then_goes_on(self, world: World, ends: Ends) -> None:
        self.ready(world)
        with pytest.raises((WorkerDied, JobDied, JobFailed, SourceUnreachable)):
            world.apply("s.a", ends)
        world.source.commit("id of s.a", "id of s.a")
        world.capture()
        asks: list[ApplyEvents] = []

        def run(spec: JobSpec) -> JobResult:
            asks.extend(from_plain(ApplyObjects, spec.request).objects)
            return world.work(spec)

        report = world.apply("s.a", run=run, by=OTHER).report
        assert [(one.number, one.start, one.end) for one in asks] == [(2, at(16), at(17)), (3, at(17), at(19))]
        assert report is not None
        assert (report.events, report.segments, report.applied) == (3, 2, at(19))
        assert world.object("s.a").problem is None

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("begun", [False, True])
    def test_one_that_a_backfill_interrupted_goes_on_where_that_came_to_nothing(
        self, world: World, restart: bool, begun: bool
    ) -> None:
        self.ready(world)
        with pytest.raises(WorkerDied):
            world.apply("s.a", Ends.WORKER_DIED_AFTER)
        objects.request_backfill(world.store, "r", ["s.a"], by=ME, restart=restart)
        if begun:
            with pytest.raises(SourceUnreachable):
                world.backfill("s.a", Ends.ERROR)
        world.source.commit("id of s.a")
        world.capture()
        asks: list[ApplyEvents] = []

        def run(spec: JobSpec) -> JobResult:
            asks.extend(from_plain(ApplyObjects, spec.request).objects)
            return world.work(spec)

        world.apply("s.a", run=run, by=OTHER)
        next_one = 4 if begun else 3
        assert [(one.number, one.start, one.end) for one in asks] == [(2, at(16), at(17)), (next_one, at(17), at(18))]
        assert world.wrongs == []
        assert world.object("s.a").applied == at(18)

    def test_two_at_once_apply_it_once(self, world: World) -> None:
        self.ready(world)

        def run(spec: JobSpec) -> JobResult:
            inner = world.apply("s.a", by=OTHER).report
            assert inner is not None
            return world.work(spec)

        outer = world.apply("s.a", run=run).report
        assert outer is not None
        assert (outer.applied, world.object("s.a").writes) == (at(17), 2)

    def test_a_backfill_that_begins_meanwhile_makes_it_count_for_nothing(self, world: World) -> None:
        self.ready(world)

        def run(spec: JobSpec) -> JobResult:
            objects.request_backfill(world.store, "r", ["s.a"], by=ME)
            world.backfill("s.a", by=OTHER)
            (refused,) = from_plain(AppliedObjects, world.work(spec).report).objects
            assert refused.error is not None
            return _answer(world, ApplyReport(at(17), columns("id"), 1, 1, {}))

        outcome = world.apply("s.a", run=run)
        assert outcome.reason == "a backfill of it has begun during the apply"
        assert world.object("s.a").schema == columns("id", "x")

    def test_one_that_needs_a_backfill_needs_a_backfill_where_it_stopped(self, world: World) -> None:
        self.ready(world)
        stopped = ApplyReport(at(16), columns("id", "x"), 0, 0, {}, needs_backfill="column y may have any value")
        outcome = world.apply("s.a", run=lambda spec: _answer(world, stopped))
        assert (outcome.report, outcome.reason) == (stopped, "column y may have any value")
        assert world.object("s.a").applied == at(16)
        assert "column y may have any value" in status.describe(world.store, "r").alerts[0]
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)
        world.backfill("s.a", by=OTHER)
        assert status.describe(world.store, "r").alerts == ()

    def test_while_a_backfill_runs_nothing_is_written(self, world: World) -> None:
        self.ready(world)
        objects.request_backfill(world.store, "r", ["s.a"], by=ME)

        def run(spec: JobSpec) -> JobResult:
            assert world.apply("s.a").reason == "its backfill is under way"
            return world.work(spec)

        assert world.backfill("s.a", run=run).report is not None

    def test_the_lag_is_the_age_of_what_the_target_shows(self, world: World) -> None:
        self.ready(world)
        world.apply("s.a")
        world.clock.go(timedelta(seconds=90))
        stands = status.describe(world.store, "r")
        assert (stands.lag_seconds, stands.objects[0].lag_seconds) == (90.0, 90.0)
        world.source.commit("id of s.a")
        world.capture()
        stands = status.describe(world.store, "r")
        assert (stands.lag_seconds, stands.objects[0].lag_seconds, stands.objects[0].behind) == (0.0, 90.0, True)

    def test_one_that_nothing_feeds_shows_an_older_and_older_state(self, world: World) -> None:
        self.ready(world)
        world.apply("s.a")
        definitions.alter_selection(world.store, "r", Selection(include=("s.b",)), by=ME)
        world.register(found("s.a"), found("s.b"))
        world.clock.go(timedelta(seconds=90))
        world.source.head += 1
        world.capture()
        stands = status.describe(world.store, "r")
        assert (stands.lag_seconds, stands.objects[0].lag_seconds) == (0.0, 90.0)

    def test_jobs_are_of_their_kinds(self, world: World) -> None:
        kinds: list[str] = []

        def run(spec: JobSpec) -> JobResult:
            kinds.append(spec.kind)
            return world.work(spec)

        world.runner = lambda ends: run  # type: ignore[method-assign]
        self.ready(world)
        world.apply("s.a")
        assert kinds == ["backfill_object", "capture_events", "apply_events"]
