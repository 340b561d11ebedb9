"""Jobs with query acceleration, and jobs whose event logs are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.jobs import JobResult, JobSpec

__all__ = ["run_kept"]


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
