"""The runtime of jobs whose drivers run in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.model.yarn import YarnApplication
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["on_its_cluster"]


def on_its_cluster(
    runtime: Runtime,
    job: SparkJob,
    *,
    leaves: bool = False,
    told: Callable[[YarnApplication], None] = lambda application: None,
) -> Runtime:
    """The runtime with the cluster of the job's drivers as its host. Drivers on this host change nothing.

    Ids of applications are stored before anything waits for them. `leaves`: a driver that runs ends the attempt with
    DriverGoesOn. `told`: gets the application when it is found and when it has ended. Raises errors of `require_ready`.
    """
    from tidemark.streams.worker.left_drivers import keep_application

    if not job.in_cluster:
        return runtime

    def tell(job_id: str, application: YarnApplication) -> None:
        keep_application(runtime.store, job_id, application.id)
        told(application)

    cluster = job.cluster
    cluster.leaves, cluster.told = leaves, tell
    return replace(runtime, host=cluster, cluster=cluster)
