"""Jobs with query acceleration, and jobs whose event logs are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument
from tidemark.hooks.spark_mode import SparkMode

if TYPE_CHECKING:
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.jobs import JobResult, JobSpec

__all__ = ["require_submitted", "run_kept"]

_INSTEAD = {
    SparkMode.WARM: "jobs share the warm Spark of this host, which runs in one process. Set spark_mode to submit, and "
    "name a Spark connection to a cluster",
    SparkMode.CONNECT: "jobs run in a Spark Connect server, which decides on its executors. Set dynamic allocation "
    "there, or name a Spark connection to a cluster",
}


def require_submitted(mode: SparkMode, factor: int) -> None:
    """Nothing, or InvalidArgument for a job that is not an application of its own."""
    if mode in _INSTEAD:
        argument = "query_acceleration_max_scale_factor"
        raise InvalidArgument(argument=argument, value=factor, problem=_INSTEAD[mode])


def run_kept(hook: TidemarkHook, job: SparkJob, factor: int | None) -> Callable[[JobSpec], JobResult]:
    """`job.run`; runs of a job with an event log are kept in the control store."""
    from tidemark.acceleration.planning.settings import event_log_directory
    from tidemark.acceleration.worker.runs import KeptRuns, kept

    settings = hook.settings.spark_conf
    event_logs = event_log_directory(settings)
    if event_logs is None:
        return job.run
    options = hook.settings.storage_options
    return kept(job.run, KeptRuns(hook.open_store(), event_logs, options, factor, job.drivers.executors))
