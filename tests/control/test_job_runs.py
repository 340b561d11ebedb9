"""Runs of jobs in the store, predicted from the last plain run of their task; none of it can fail a job."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.acceleration.made_logs import lines
from tidemark.acceleration.model.estimates import JobRun
from tidemark.acceleration.planning.settings import Executors
from tidemark.acceleration.store.history import drop_runs
from tidemark.acceleration.store.runs import keep_run, newest_runs, plain_run_before
from tidemark.acceleration.worker.runs import KeptRuns, kept, list_runs
from tidemark.control.history import drop_step
from tidemark.control.store import ControlStore
from tidemark.model.jobs import ErrorRecord, JobResult, JobSpec
from tidemark.model.statements import TransactionKey

AT = datetime(2026, 11, 27, tzinfo=UTC)
RUN = JobRun("app-1", "shop", "deliver", "r1", "write", AT)


def spec(task: str = "deliver", run: str = "r1") -> JobSpec:
    key = TransactionKey("shop", run, task)
    return JobSpec("write", "a:b", {}, "s", "/w", "/r", "/c", AT, key=key)


def answers(application: str | None, error: ErrorRecord | None = None) -> JobResult:
    return JobResult(error=error, application=application)


def test_a_run_is_kept_once(store: ControlStore) -> None:
    assert store.write(lambda c: keep_run(c, RUN))
    assert not store.write(lambda c: keep_run(c, replace(RUN, measured=5.0)))
    assert store.read(lambda c: newest_runs(c, most=9)) == (RUN,)


def test_runs_are_listed_newest_first_and_accelerated_ones_alone(store: ControlStore) -> None:
    runs = [
        replace(RUN, application=f"app-{n}", ended_at=AT + timedelta(hours=n), factor=n % 2 or None) for n in range(5)
    ]
    for run in runs:
        store.write(lambda c, run=run: keep_run(c, run))
    assert [run.application for run in list_runs(store, limit=2)] == ["app-4", "app-3"]
    assert [run.application for run in list_runs(store, limit=9, accelerated=True)] == ["app-3", "app-1"]
    plain = store.read(lambda c: plain_run_before(c, dag_id="shop", task_id="deliver", kind="write"))
    assert plain == runs[4]
    assert store.read(lambda c: plain_run_before(c, dag_id="shop", task_id="deliver", kind="other")) is None


def test_old_runs_are_dropped_but_the_newest_of_each_task_stays(store: ControlStore) -> None:
    for n in range(4):
        run = replace(RUN, application=f"app-{n}", ended_at=AT + timedelta(hours=n))
        store.write(lambda c, run=run: keep_run(c, run))
    store.write(lambda c: keep_run(c, replace(RUN, application="other", task_id="rare")))
    later = AT + timedelta(days=1)
    step = store.write(lambda c: drop_step(c, "runs of jobs", before=later, after=None, most=2))
    assert (step.dropped, step.cursor) == (2, ("",))
    assert store.write(lambda c: drop_runs(c, later, None, 2)).dropped == 1
    assert store.write(lambda c: drop_runs(c, later, None, 2)).dropped == 0
    assert {run.application for run in list_runs(store, limit=9)} == {"app-3", "other"}


def test_an_accelerated_run_is_compared_with_its_prediction(
    store: ControlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "app-plain").write_bytes(lines([4000] * 4).replace(b'"app-1"', b'"app-plain"'))
    (tmp_path / "app-fast").write_bytes(lines([4000] * 4, slots=2).replace(b'"app-1"', b'"app-fast"'))
    kept(lambda _: answers("app-plain"), KeptRuns(store, str(tmp_path)))(spec())
    faster = KeptRuns(store, str(tmp_path), factor=1, executors=lambda planned_bytes: Executors(1, 2))
    with caplog.at_level(logging.INFO, "tidemark"):
        kept(lambda _: answers("app-fast"), faster)(spec(run="r2"))
    accelerated, plain = list_runs(store, limit=9)
    assert (plain.application, plain.factor, plain.measured, plain.note) == ("app-plain", None, None, "")
    assert (accelerated.factor, accelerated.executors, accelerated.peak) == (1, 1, 1)
    assert accelerated.measured == 8.2
    assert accelerated.predicted == pytest.approx(9.2)  # the second slot comes a second late
    assert accelerated.predicted_from == "app-plain"
    assert accelerated.off_by == pytest.approx(1 / 8.2)
    assert "app-fast took 8.2 s" in caplog.text


def test_missing_logs_and_missing_plain_runs_leave_a_note_and_never_fail_a_job(
    store: ControlStore, tmp_path: Path
) -> None:
    place = KeptRuns(store, str(tmp_path), factor=1, executors=lambda planned_bytes: Executors(1, 2))
    answer = answers("app-1")
    assert kept(lambda _: answer, place)(spec()) is answer
    (run,) = list_runs(store, limit=9)
    assert "There is no event log of app-1" in run.note
    (tmp_path / "app-2").write_bytes(lines([10]))
    kept(lambda _: answers("app-2"), place)(spec())
    assert "no run without acceleration" in list_runs(store, limit=1)[0].note


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (answers(None), True),
        (answers("app-1", ErrorRecord("JobFailed", {}, "no")), True),
        (answers("app-1"), False),
    ],
)
def test_failed_jobs_and_jobs_without_an_application_or_a_run_are_not_kept(
    store: ControlStore, tmp_path: Path, answer: JobResult, key: bool
) -> None:
    given = spec() if key else replace(spec(), key=None)
    assert kept(lambda _: answer, KeptRuns(store, str(tmp_path)))(given) is answer
    assert list_runs(store, limit=9) == ()
