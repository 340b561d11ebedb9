"""Jobs whose event logs are kept: their predicted and their measured time. None of it can fail a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidemark.acceleration.model.applications import Application
from tidemark.acceleration.model.estimates import JobRun
from tidemark.acceleration.planning.estimate import predicted_seconds
from tidemark.acceleration.planning.settings import Executors
from tidemark.acceleration.store import runs
from tidemark.acceleration.worker.event_logs import find_event_log, read_application
from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.model.jobs import JobResult, JobSpec

__all__ = ["KeptRuns", "kept", "list_runs"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptRuns:
    """The place of event logs, and the acceleration of the jobs. `factor`: None for plain jobs. `executors`: those
    of an accelerated job with these planned bytes.
    """

    store: ControlStore
    event_logs: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    factor: int | None = None
    executors: Callable[[int | None], Executors | None] = lambda planned_bytes: None


def kept(run: Callable[[JobSpec], JobResult], place: KeptRuns) -> Callable[[JobSpec], JobResult]:
    """`run`, and afterwards the run in the store, if the job was an application of its own that ended well.

    An accelerated job is predicted from the last plain run of its task. A log that cannot be read leaves a note. A
    second run of a job is another application, so it is kept beside the first.
    """

    def running(spec: JobSpec) -> JobResult:
        answer = run(spec)
        if answer.error is None and answer.application is not None and spec.key is not None:
            try:
                _keep(spec, answer.application, place)
            except TidemarkError as error:
                log.warning("The run of %s was not kept: %s", answer.application, error)
        return answer

    return running


def list_runs(store: ControlStore, *, limit: int, accelerated: bool = False) -> tuple[JobRun, ...]:
    """The newest runs whose event logs are kept, newest first; `accelerated`: only those with a scale factor."""
    return store.read(lambda connection: runs.newest_runs(connection, most=limit, accelerated=accelerated))


def _keep(spec: JobSpec, application: str, place: KeptRuns) -> None:
    assert spec.key is not None
    executors = place.executors(spec.planned_bytes)
    run = JobRun(
        application=application,
        dag_id=spec.key.dag_id,
        task_id=spec.key.task_id,
        run_id=spec.key.run_id,
        kind=spec.kind,
        ended_at=place.store.clock(),
        factor=place.factor,
        executors=None if executors is None else executors.base,
    )
    if place.factor is not None:
        run = _predicted(_measured(run, place), place, place.factor)
        _say(run)
    place.store.write(lambda connection: runs.keep_run(connection, run))


def _measured(run: JobRun, place: KeptRuns) -> JobRun:
    try:
        found = _read(run.application, place)
    except TidemarkError as error:
        return replace(run, note=str(error))
    if found.ended is None:
        return replace(run, note=f"the event log of {run.application} has no end")
    return replace(run, measured=found.seconds, peak=_peak(found))


def _predicted(run: JobRun, place: KeptRuns, factor: int) -> JobRun:
    def look(connection: Any) -> JobRun | None:
        return runs.plain_run_before(connection, dag_id=run.dag_id, task_id=run.task_id, kind=run.kind)

    before = place.store.read(look)
    if before is None:
        return replace(run, note=run.note or "no run without acceleration is kept, which a prediction needs")
    try:
        predicted = predicted_seconds(_read(before.application, place), factor)
    except TidemarkError as error:
        return replace(run, note=run.note or str(error))
    return replace(run, predicted=predicted, predicted_from=before.application)


def _read(application: str, place: KeptRuns) -> Application:
    return read_application(find_event_log(application, place.event_logs, place.options))


def _peak(application: Application) -> int:
    most = now = 0
    for change in application.executors:
        now += 1 if change.slots > 0 else -1
        most = max(most, now)
    return most


def _say(run: JobRun) -> None:
    if run.predicted is None or run.measured is None:
        log.info("Query acceleration of %s cannot be compared: %s", run.application, run.note)
        return
    log.info(
        "Query acceleration: %s took %.1f s with up to %s executors; %.1f s were predicted.",
        run.application,
        run.measured,
        run.peak,
        run.predicted,
    )
