"""The watch of a job on marker and clock, also while the storage of the marker does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.until import wait_until
from tidemark.errors import JobCancelled, JobDeadlineExceeded, JobError, StorageUnreachable
from tidemark.jobs.watch import Watch
from tidemark.model.jobs import JobSpec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHECK = 0.01


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.jobs.watch.SECONDS_BETWEEN_CHECKS", CHECK)
    monkeypatch.setattr("tidemark.jobs.watch.SECONDS_TO_END", CHECK)


class Job:
    """A job whose watch has a storage that may not answer."""

    def __init__(self) -> None:
        self.now, self.answers, self.marked = NOW, False, False
        self.looks = 0
        self.said: list[str] = []
        self.cancelled = threading.Event()
        self.ended: list[JobError] = []

    def look(self) -> bool:
        self.looks += 1
        if not self.answers:
            raise StorageUnreachable(place="s3://lake", problem="no answer")
        return self.marked

    def watch(self, pause: float = CHECK, say: Callable[[str], None] | None = None) -> Watch:
        spec = JobSpec("write", "", {}, "store", "work", "result", "cancel", NOW + timedelta(hours=1))
        return Watch(
            spec,
            self.look,
            self.cancelled.set,
            lambda: self.now,
            self.ended.append,
            pause=pause,
            say=say or self.said.append,
        )


def test_a_marker_is_seen_after_the_storage_has_failed_a_while() -> None:
    job = Job()
    with job.watch() as watch:
        wait_until(lambda: job.looks > 3)
        watch.stop_if_due()  # a statement may begin
        assert not job.cancelled.is_set()
        job.answers = job.marked = True
        wait_until(lambda: bool(job.ended))
    assert job.cancelled.is_set()
    assert isinstance(job.ended[0], JobCancelled)
    assert len(job.said) == 1
    assert "s3://lake" in job.said[0]


def test_the_deadline_holds_without_an_answer_of_the_storage() -> None:
    job = Job()
    with job.watch() as watch:
        wait_until(lambda: job.looks > 1)
        job.now += timedelta(hours=2)
        with pytest.raises(JobDeadlineExceeded):
            watch.stop_if_due()
        wait_until(lambda: bool(job.ended))
    assert isinstance(job.ended[0], JobDeadlineExceeded)


def test_a_storage_is_asked_less_often_than_the_clock_and_the_job_ends_as_soon() -> None:
    job = Job()
    job.answers = True
    checks = []

    def clock() -> datetime:
        checks.append(job.looks)
        return job.now

    watch = job.watch(pause=10 * CHECK)
    watch._clock = clock
    with watch:
        wait_until(lambda: job.looks >= 2)
        assert len(checks) >= 20
        job.marked = True
        wait_until(lambda: bool(job.ended))
        seen = job.looks
        time.sleep(5 * CHECK)
        assert job.looks == seen
