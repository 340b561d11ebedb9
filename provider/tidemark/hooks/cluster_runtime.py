"""The runtime of jobs whose drivers run in a cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.model.yarn import YarnApplication
    from tidemark.streams.worker.clusters import LeftDriver
    from tidemark.streams.worker.runtime import Runtime
    from tidemark.streams.worker.sizing import Sizing

__all__ = ["on_its_cluster"]

log = logging.getLogger(__name__)


def on_its_cluster(
    runtime: Runtime,
    job: SparkJob,
    *,
    leaves: Collection[str] = (),
    awaited: LeftDriver | None = None,
    told: Callable[[YarnApplication], None] = lambda application: None,
) -> Runtime:
    """The runtime with the cluster of the job's drivers as its host; drivers on this host leave that as it is. It plans
    executors, if the connection has bounds for them.

    Ids of applications are stored before anything waits for them. `leaves`: kinds of jobs whose driver, if it runs,
    ends the attempt with DriverGoesOn. `awaited`: the driver that it left then. `told`: gets the application when it is
    found and when it has ended. Raises errors of `require_ready`.
    """
    from tidemark.streams.worker.left_drivers import keep_application

    runtime = replace(runtime, sizing=_sizing(job))
    if not job.in_cluster:
        return runtime

    def tell(job_id: str, application: YarnApplication) -> None:
        keep_application(runtime.store, job_id, application.id)
        told(application)

    cluster = job.cluster
    cluster.leaves, cluster.awaits, cluster.told = frozenset(leaves), awaited, tell
    return replace(runtime, host=cluster, cluster=cluster, awaited=None if awaited is None else awaited.job_id)


def _sizing(job: SparkJob) -> Sizing | None:
    """Sizing within the connection's bounds. Settings of Spark that name numbers of executors count instead."""
    from tidemark.streams.planning.executors import named_by
    from tidemark.streams.worker.sizing import Sizing

    settings, bounds = job.drivers.settings, job.executor_bounds
    named = named_by(settings.spark_conf)
    if settings.executors is not None and named is not None:
        log.info("The Spark settings have %s, so max_executors of the connection is not used.", named)
    return None if bounds is None else Sizing(bounds)
