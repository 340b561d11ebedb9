"""Jobs whose drivers run in YARN: submitted, found again by any worker, waited for, and ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from tidemark.errors import (
    ApplicationUnknown,
    ClusterError,
    ClusterUnreachable,
    DriverDied,
    DriverEndUnproven,
    DriverMayRunOn,
    JobCancelled,
    JobDeadlineExceeded,
    JobError,
    JobLeftNoResult,
    LakeError,
)
from tidemark.hooks._cluster_files import ClusterFiles
from tidemark.hooks.yarn import ResourceManager
from tidemark.model.jobs import JobResult
from tidemark.model.yarn import YarnApplication, driver_tag, surely_ended
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.worker.clusters import DriverGoesOn, LeftDriver

__all__ = ["GRACE", "YarnDrivers"]

GRACE = timedelta(seconds=60)  # after a deadline, at which a job stops itself
_SECONDS_BETWEEN_LOOKS = 2.0
_SECONDS_TO_END = 60.0  # until the state of an application that was killed must be final
_SECONDS_TO_PROVE = 15.0  # in which a node ends the container of an application that was killed
_PATIENCE = 300.0  # with a resource manager that does not answer
_MOST_OF_DIAGNOSTICS = 1000
_OF_THIS_PROCESS: set[str] = set()  # jobs, so of this attempt

_NOT_LISTED = "YARN was started after it, and does not list it"

T = TypeVar("T")
log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The wall clock in UTC, as deadlines have it."""
    return datetime.now(UTC)


class YarnDrivers:
    """The drivers of one YARN, for this attempt and for later ones on any worker: a Cluster of `streams.worker`.

    `leaves`: the kinds of jobs whose driver a task leaves while it runs, to wait in the triggerer. `awaits`: the driver
    that this attempt has left so. `told`: is called with the job's id and the application when it is found, and when it
    has ended.
    """

    def __init__(
        self,
        manager: ResourceManager,
        files: ClusterFiles,
        *,
        pause: float = _SECONDS_BETWEEN_LOOKS,
        patience: float = _PATIENCE,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.manager, self.files = manager, files
        self.leaves: Collection[str] = frozenset()
        self.awaits: LeftDriver | None = None
        self.told: Callable[[str, YarnApplication], None] = lambda job_id, application: None
        self._pause, self._patience, self._clock = pause, patience, clock
        self._stopped_because: str | None = None
        self._waited_for: tuple[str, str | None] | None = None  # a job, and its application once that is known
        self._answers: dict[tuple[str, str], JobResult | JobError] = {}
        self._one_at_a_time = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the cluster, the same on each worker."""
        return self.manager.name

    def end(self, job_id: str) -> bool:
        """Whether the job can write no more: its marker is set, its application killed, and its end proven.

        False even if YARN does not answer. A job that has not begun stops at the marker. A second call is harmless.
        """
        try:
            self.files.cancel(job_id)
            application = self._find(job_id)
            if application is None:
                return self._never_began(job_id)
            self._ask_to_stop(job_id, application.id)
            until = time.monotonic() + _SECONDS_TO_END
            while not (application := self.manager.application(application.id)).final:
                if time.monotonic() > until:
                    return False
                time.sleep(self._pause)
            return self._proven(application)
        except (ClusterError, LakeError) as error:
            log.warning("It is not known whether job %s still runs: %s", job_id, error)
            return False

    def find(self, job_id: str) -> YarnApplication | None:
        """The application of the job by its tag, with patience for a resource manager that restarts. None if YARN lists
        none: the marker is set then, and a driver that is submitted later stops at once.
        """
        self._waited_for = (job_id, None)
        return self._patiently(partial(self._find, job_id))

    def _find(self, job_id: str) -> YarnApplication | None:
        found = self.manager.tagged(driver_tag(job_id))
        if not found:
            self.files.cancel(job_id)
            found = self.manager.tagged(driver_tag(job_id))
        return found[0] if found else None

    def wait_for(self, driver: LeftDriver) -> JobResult | None:
        """As `Cluster.wait_for`, for a writing job, which a later attempt finds again. If the attempt's own driver has
        failed, the attempt leaves no other.
        """
        application_id = driver.application
        if application_id is None:
            found = self.find(driver.job_id)
            if found is None and self._never_began(driver.job_id):
                return None
            if found is None:
                raise self._unproven(driver, _NOT_LISTED)
            application_id = found.id
        try:
            answer = self.outcome(driver, application_id, leaves=WRITE.name in self.leaves)
        except JobError:
            self._stay_after(driver)
            raise
        if answer.error is not None:
            self._stay_after(driver)
        return answer

    def take_up(self, owner: str, *, about: str, deadline: datetime) -> None:
        """As `Cluster.take_up`. For `answer_of` it keeps results of jobs that were found alive, and the end of the job
        that this attempt has left.
        """
        with self._one_at_a_time:
            for job_id, asked in self.files.registered(owner).items():
                if self.awaits is not None and job_id == self.awaits.job_id:
                    self._answers[owner, asked] = self._end_of_own(replace(self.awaits, about=about))
                    self.files.forget(owner, job_id)
                    continue
                if job_id in _OF_THIS_PROCESS:
                    continue
                log.info("Job %s of %s was started before; its driver is looked for in the cluster.", job_id, about)
                try:
                    answer = self._left_by_another(LeftDriver(job_id, None, about, deadline))
                except DriverEndUnproven as unproven:
                    log.warning("%s", unproven)
                    continue
                self.files.forget(owner, job_id)
                if answer is not None:
                    self._answers[owner, asked] = answer

    def answer_of(self, owner: str, asked: str) -> JobResult | None:
        """The result of a job that was taken up and asked for the same, once; None if there is none. Raises the error
        of the job that this attempt has left.
        """
        answer = self._answers.pop((owner, asked), None)
        if isinstance(answer, JobError):
            raise answer
        return answer

    def register(self, owner: str, job_id: str, asked: str) -> None:
        """Lets later attempts of the owner take the job up."""
        _OF_THIS_PROCESS.add(job_id)
        self.files.register(owner, job_id, asked)

    def forget(self, owner: str, job_id: str) -> None:
        """The end of the job was seen."""
        self.files.forget(owner, job_id)

    def end_registered(self, owner: str) -> None:
        """As `Cluster.end_registered`. A job whose end is not proven keeps its note."""
        for job_id in self.files.registered(owner):
            if self.end(job_id):
                self.files.forget(owner, job_id)

    def _stay_after(self, driver: LeftDriver) -> None:
        if driver.own:
            self.leaves = frozenset()

    def _end_of_own(self, driver: LeftDriver) -> JobResult | JobError:
        """The result of the driver that this attempt has left, or why it has none. It may be late: its own deadline
        counts. Raises JobCancelled, since this attempt was, and ClusterError.
        """
        assert driver.application is not None, "the trigger has asked for it"
        try:
            return self.outcome(driver, driver.application)
        except JobCancelled:
            raise
        except JobError as error:
            return error

    def _left_by_another(self, driver: LeftDriver) -> JobResult | None:
        """The result of a driver that was alive when it was found. None if it began never, or failed, or had ended: its
        result may be of another day.
        """
        try:
            found = self.find(driver.job_id)
            if found is None and not self._never_began(driver.job_id):
                raise self._unproven(driver, _NOT_LISTED)
            if found is None:
                return None
            answer = self.outcome(driver, found.id)
        except JobCancelled:  # this attempt was
            raise
        except JobError as error:
            log.warning("A driver that was left has ended: %s", error)
            return None
        return None if found.final or answer.error is not None else answer

    def outcome(self, driver: LeftDriver, application_id: str, *, leaves: bool = False) -> JobResult:
        """The result of the driver after its end.

        Raises JobError if it has surely ended without a result. Raises ClusterError if that is not known, and
        DriverGoesOn if it runs, and this attempt `leaves` it.
        """
        self._waited_for = (driver.job_id, application_id)
        asked_at: float | None = None
        said = False
        while True:
            try:
                application = self._patiently(partial(self.manager.application, application_id))
            except ApplicationUnknown as unknown:
                return self._without_application(driver, unknown)
            if not said:
                self._say(driver, application)
                said = True
            if application.final:
                self.told(driver.job_id, application)
                return self._last_word(driver, application)
            late = self._clock() > driver.deadline + GRACE
            if asked_at is None and (self._stopped_because or late):
                asked_at = time.monotonic()
                self._ask_to_stop(driver.job_id, application_id)
            if asked_at is not None and time.monotonic() - asked_at > _SECONDS_TO_END:
                problem = f"YARN still reports the state {application.state} a minute after the request to end it"
                raise self.may_run_on(driver, application_id, problem)
            if asked_at is None and leaves:
                raise DriverGoesOn(application_id, driver.job_id, driver.deadline, own=driver.own)
            time.sleep(self._pause)

    @contextmanager
    def handing_over(self, job_id: str) -> Iterator[None]:
        """A `stop` finds the job from here on. An exception in spark-submit, such as a time-out, sets the marker and
        kills an application that YARN lists.
        """
        self._waited_for = (job_id, None)
        try:
            yield
        except (JobError, LakeError):  # before spark-submit
            raise
        except BaseException:
            self._ask_to_stop(job_id, None)
            raise

    def stop(self, why: str) -> None:
        """Sets the marker and kills the application that is handed over or waited for. The one who waits sees the
        end.
        """
        self._stopped_because = self._stopped_because or why
        if self._waited_for is not None:
            self._ask_to_stop(*self._waited_for)

    def may_run_on(self, driver: LeftDriver, application_id: str | None, problem: str) -> DriverMayRunOn:
        """The error for a driver whose end nobody knows."""
        application = application_id or _known_by_tag(driver)
        return DriverMayRunOn(key=driver.about, application=application, problem=problem, deadline=driver.deadline)

    def _say(self, driver: LeftDriver, application: YarnApplication) -> None:
        page = self.manager.page_of(application)
        log.info("The driver of %s is the application %s: %s", driver.about, application.id, page)
        self.told(driver.job_id, application)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """The answer, with patience for a resource manager that restarts."""
        until = time.monotonic() + self._patience
        while True:
            try:
                return ask()
            except ClusterUnreachable as error:
                if time.monotonic() > until or self._stopped_because == "cancelled":
                    raise
                log.warning("%s", error)
            time.sleep(self._pause)

    def _ask_to_stop(self, job_id: str, application_id: str | None) -> None:
        """By the marker and by YARN. If a way fails, the other is tried all the same. Without an id those with the
        job's tag are killed.
        """
        for act in (partial(self.files.cancel, job_id), partial(self._kill, job_id, application_id)):
            try:
                act()
            except (ClusterError, LakeError) as error:
                log.warning("One of two ways to end %s failed: %s", application_id or f"job {job_id}", error)

    def _kill(self, job_id: str, application_id: str | None) -> None:
        if application_id is not None:
            self.manager.kill(application_id)
            return
        for application in self.manager.tagged(driver_tag(job_id)):
            self.manager.kill(application.id)

    def _last_word(self, driver: LeftDriver, application: YarnApplication) -> JobResult:
        result = self.files.result(driver.job_id)
        if result is not None:
            if result.error is None:
                self.files.remove(driver.job_id)
            return result
        if not self._proven(application):
            raise self._unproven(driver, "its node manager does not confirm it", application)
        if self._stopped_because == "cancelled":
            raise JobCancelled(key=driver.about)
        if self._stopped_because == "deadline" or self._clock() > driver.deadline:
            raise JobDeadlineExceeded(key=driver.about, deadline=driver.deadline)
        if application.succeeded:
            raise JobLeftNoResult(key=driver.about, result_uri=self.files.result_place(driver.job_id))
        raise DriverDied(
            key=driver.about,
            application=application.id,
            state=application.state,
            final_status=application.final_status,
            diagnostics=_diagnostics(application),
            tail=self.manager.driver_log(application),
        )

    def _without_application(self, driver: LeftDriver, unknown: ApplicationUnknown) -> JobResult:
        result = self.files.result(driver.job_id)
        if result is not None:
            return result
        forgotten = YarnApplication(unknown.facts["application"], "unknown")
        raise self._unproven(driver, "YARN has forgotten it", forgotten)

    def _unproven(
        self, driver: LeftDriver, problem: str, application: YarnApplication | None = None
    ) -> DriverEndUnproven:
        """The error, once the marker is set. `application`: as YARN told it last; None if it lists none."""
        self.files.cancel(driver.job_id)
        return DriverEndUnproven(
            key=driver.about,
            application=_known_by_tag(driver) if application is None else application.id,
            state="unknown" if application is None else application.state,
            problem=problem,
            deadline=driver.deadline,
            diagnostics=_diagnostics(application),
            tail="(none)" if application is None else self.manager.driver_log(application),
        )

    def _never_began(self, job_id: str) -> bool:
        """Whether a job that YARN does not list had no driver. A manager that was started after the job may have
        forgotten one.
        """
        handed_over = self.files.handed_over_at(job_id)
        return handed_over is None or self.manager.started_at() < handed_over

    def _proven(self, application: YarnApplication) -> bool:
        until = time.monotonic() + _SECONDS_TO_PROVE
        while not surely_ended(application, None if application.succeeded else self.manager.node_of(application)):
            if time.monotonic() > until:
                return False
            time.sleep(self._pause)
        return True


def _known_by_tag(driver: LeftDriver) -> str:
    return f"(unknown, with the tag {driver_tag(driver.job_id)})"


def _diagnostics(application: YarnApplication | None) -> str:
    told = "" if application is None else application.diagnostics
    return told[-_MOST_OF_DIAGNOSTICS:] or "(no diagnostics)"
