"""A job whose driver runs in the cluster: handed over, registered with its task, and waited for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import tidemark
from tidemark.errors import JobCancelled, JobDeadlineExceeded, JobDied, JobError
from tidemark.failpoints import failpoint
from tidemark.hooks._drivers import Drivers, JobFiles
from tidemark.hooks._files import private_directory
from tidemark.hooks._job_files import alive, local_path, sweep_hourly, worked_for
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.model.transaction_jobs import FENCE, WRITE
from tidemark.streams.worker.clusters import LeftDriver, owner_of
from tidemark.warm_spark.scratch import remove_scratch

if TYPE_CHECKING:
    from tidemark.hooks._process_group import Driver
    from tidemark.hooks.yarn_job import YarnDrivers

__all__ = ["InCluster"]

_APPLICATION = Path(tidemark.__file__).parent / "jobs" / "in_cluster.py"
_HAVE_A_ROW = (WRITE.name, FENCE.name)  # in the control store, by which a later attempt finds them

log = logging.getLogger(__name__)


class InCluster:
    """Runs jobs in the cluster. `watched`: lets a spark-submit be cancelled while the context lasts. `stopped`: why the
    job was stopped; None if it was not.
    """

    def __init__(
        self,
        drivers: Drivers,
        cluster: YarnDrivers,
        watched: Callable[[Driver], contextlib.AbstractContextManager[None]],
        stopped: Callable[[], str | None],
    ) -> None:
        self._drivers, self._cluster, self._watched, self._stopped = drivers, cluster, watched, stopped

    def run(self, spec: JobSpec) -> JobResult:
        """The result after the driver's end. Raises as `SparkJob.run`, and DriverGoesOn. ClusterError means that nobody
        knows whether the driver has ended.

        A job without a row in the control store is registered with its task in the lake. First it waits for jobs that
        an earlier attempt of the task has left. If one of them was asked for the same, its result is the answer. So is
        that of the job for which this attempt has waited elsewhere, or its failure.
        """
        job_id = local_path(spec.result_uri).name.partition(".")[0]
        owner = None if spec.key is None or spec.kind in _HAVE_A_ROW else owner_of(spec.store_id, spec.key)
        if owner is None:
            return self._run(spec, job_id)
        cluster, asked = self._cluster, _asked(spec)
        cluster.take_up(owner, about=spec.about, deadline=spec.deadline)
        answered = cluster.answer_of(owner, asked)
        if answered is not None:
            log.info("The job of the earlier attempt was asked for the same, so its result is used.")
            return answered
        if cluster.awaits is not None:
            log.info("This job is another than the one that was waited for; the task waits for it on its worker.")
        cluster.register(owner, job_id, asked)
        try:
            answer = self._run(spec, job_id)
        except JobError:
            cluster.forget(owner, job_id)
            raise
        cluster.forget(owner, job_id)
        return answer

    def _run(self, spec: JobSpec, job_id: str) -> JobResult:
        """The listener of the cluster gets the application's id before anything waits for it."""
        cluster, driver = self._cluster, LeftDriver(job_id, None, spec.about, spec.deadline, own=True)
        with cluster.handing_over(job_id):
            submission = self._hand_over(spec, job_id)
            failpoint("cluster.submitted")
        try:
            application = cluster.find(job_id)
            if application is not None:
                cluster.told(job_id, application)
                return cluster.outcome(driver, application.id, leaves=self._may_leave(spec))
        except OSError as error:  # of this host: it says nothing about the driver
            raise cluster.may_run_on(driver, None, str(error)) from error
        self._require_not_stopped(spec)
        if submission.exit_code == 0:
            raise cluster.may_run_on(driver, None, "spark-submit handed it over, and YARN does not list it")
        log.error("The log of spark-submit is kept in %s", submission.spark_log)
        raise JobDied(key=spec.about, exit_code=submission.exit_code, tail="\n".join(submission.tail))

    def _require_not_stopped(self, spec: JobSpec) -> None:
        if self._stopped() == "cancelled":
            raise JobCancelled(key=spec.about)
        if self._stopped() == "deadline":
            raise JobDeadlineExceeded(key=spec.about, deadline=spec.deadline)

    def _may_leave(self, spec: JobSpec) -> bool:
        """Whether the attempt may end here and find the driver again: in the store, or once by its note in the lake.
        An attempt that came back and asks for something else would leave its jobs for ever.
        """
        by_note = spec.key is not None and self._cluster.awaits is None
        return spec.kind in self._cluster.leaves and (spec.kind == WRITE.name or by_note)

    def _hand_over(self, spec: JobSpec, job_id: str) -> Driver:
        """The spark-submit that has ended. Its own log and temporary files are on this host, the job's in the lake."""
        settings, files = self._drivers.settings, self._cluster.files
        sweep_hourly((settings.jobs_root, *settings.former_jobs_roots), datetime.now(UTC))
        directory = private_directory(settings.jobs_root) / job_id
        directory.mkdir(mode=0o700, exist_ok=True)
        placed = files.put(files.spec(spec, job_id), job_id)
        with worked_for(directory), alive(directory) as inherited:
            job_files = JobFiles(directory, placed.arguments, inherited)
            submission = self._drivers.in_cluster(job_files, job_id, spec.planned_bytes)
            with self._watched(submission):
                self._require_not_stopped(spec)  # a stop before found no process to end
                submission.submit(str(_APPLICATION), cwd=str(directory))
        with contextlib.suppress(OSError):  # the sweep removes the rest
            remove_scratch(directory)
        if submission.exit_code == 0:
            shutil.rmtree(directory, ignore_errors=True)
        return submission


def _asked(spec: JobSpec) -> str:
    """The same for two jobs that are asked for the same."""
    asked = json.dumps([spec.kind, spec.entry, spec.request], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()
