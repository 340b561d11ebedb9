"""The events of Spark's log, one after the other, gathered into an application.

An event log is a text of others. An unknown event is left out, as Spark's history server does, and so is a known one
of another form. Each task keeps two numbers, so memory grows with tasks and not with the log.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.acceleration.model.applications import Application, Execution, ExecutorChange, Stage

__all__ = ["Gathered", "application_of"]

_SQL = "org.apache.spark.sql.execution.ui."
_KEPT_SETTINGS = ("spark.tidemark.", "spark.dynamicAllocation.", "spark.executor.", "spark.task.", "spark.master")
_LAST = 253_402_300_799_999  # milliseconds: the end of the year 9999
_OF_ANOTHER_FORM = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass
class _Running:
    """A stage whose end has not been read yet."""

    launched: array[int] = field(default_factory=lambda: array("q"))
    took: array[int] = field(default_factory=lambda: array("q"))


@dataclass
class Gathered:
    """All that was read of a log so far."""

    id: str = ""
    name: str = ""
    began: int | None = None
    ended: int | None = None
    driver_ready: int | None = None
    cores_per_task: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    cores: list[tuple[int, str, int]] = field(default_factory=list)
    jobs: dict[int, tuple[int, int | None]] = field(default_factory=dict)  # stage → job, execution
    running: dict[tuple[int, int], _Running] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    executions: dict[int, Execution] = field(default_factory=dict)

    def read(self, event: Any) -> None:
        """Take one event in. One of another form than Spark's changes nothing."""
        try:
            reader = _READERS.get(event["Event"])
            if reader is not None:
                reader(self, event)
        except _OF_ANOTHER_FORM:
            return

    def application(self, *, left_out: int = 0) -> Application | None:
        """The application; None if the log has no beginning of one."""
        if self.began is None:
            return None
        return Application(
            id=self.id,
            name=self.name,
            began=self.began,
            ended=self.ended,
            stages=tuple(sorted(self.stages, key=lambda one: (one.submitted, one.job, one.id, one.attempt))),
            executors=tuple(self._executors()),
            executions=tuple(self.executions.values()),
            settings=self.settings,
            driver_ready=self.driver_ready,
            left_out=left_out,
        )

    def _executors(self) -> Iterable[ExecutorChange]:
        known: dict[str, int] = {}
        for at, executor, cores in self.cores:
            if cores > 0:
                known[executor] = cores // self.cores_per_task
                yield ExecutorChange(at, executor, known[executor])
            elif executor in known:
                yield ExecutorChange(at, executor, -known.pop(executor))


def application_of(events: Iterable[Any], *, left_out: Callable[[], int] = lambda: 0) -> Application | None:
    """The application of all these events; None if they have no beginning of one. `left_out` is asked at the end."""
    gathered = Gathered()
    for event in events:
        gathered.read(event)
    return gathered.application(left_out=left_out())


def _time(said: Any) -> int:
    """Milliseconds since 1970. Raises ValueError for a time that no calendar has."""
    time = int(said)
    if not 0 <= time <= _LAST:
        raise ValueError(f"{said} is not a time")
    return time


def _began(log: Gathered, event: Mapping[str, Any]) -> None:
    log.began = _time(event["Timestamp"])
    log.id, log.name = str(event.get("App ID") or ""), str(event.get("App Name") or "")


def _ended(log: Gathered, event: Mapping[str, Any]) -> None:
    log.ended = _time(event["Timestamp"])


def _environment(log: Gathered, event: Mapping[str, Any]) -> None:
    said = {str(name): str(value) for name, value in dict(event["Spark Properties"]).items()}
    log.settings.update({name: value for name, value in said.items() if name.startswith(_KEPT_SETTINGS)})
    log.cores_per_task = max(int(said.get("spark.task.cpus", "1")), 1)


def _block_manager(log: Gathered, event: Mapping[str, Any]) -> None:
    if event["Block Manager ID"]["Executor ID"] == "driver":
        log.driver_ready = _time(event["Timestamp"])


def _executor_added(log: Gathered, event: Mapping[str, Any]) -> None:
    cores = int(event["Executor Info"]["Total Cores"])
    if cores > 0:
        log.cores.append((_time(event["Timestamp"]), str(event["Executor ID"]), cores))


def _executor_removed(log: Gathered, event: Mapping[str, Any]) -> None:
    log.cores.append((_time(event["Timestamp"]), str(event["Executor ID"]), 0))


def _job_started(log: Gathered, event: Mapping[str, Any]) -> None:
    said = (event.get("Properties") or {}).get("spark.sql.execution.id")
    job, execution = int(event["Job ID"]), None if said is None else int(said)
    for stage in event["Stage IDs"]:
        log.jobs.setdefault(int(stage), (job, execution))


def _task_ended(log: Gathered, event: Mapping[str, Any]) -> None:
    info = event["Task Info"]
    launched, finished = _time(info["Launch Time"]), _time(info["Finish Time"])
    if launched <= 0 or finished < launched:
        return
    key = (int(event["Stage ID"]), int(event["Stage Attempt ID"]))
    running = log.running.setdefault(key, _Running())
    running.launched.append(launched)
    running.took.append(finished - launched)


def _stage_completed(log: Gathered, event: Mapping[str, Any]) -> None:
    info = event["Stage Info"]
    key = (int(info["Stage ID"]), int(info["Stage Attempt ID"]))
    submitted, completed = _time(info["Submission Time"]), _time(info["Completion Time"])
    running = log.running.pop(key, _Running())
    order = sorted(range(len(running.took)), key=running.launched.__getitem__)
    last = max((running.launched[at] + running.took[at] for at in order), default=completed)
    job, execution = log.jobs.get(key[0], (-1, None))
    log.stages.append(
        Stage(
            id=key[0],
            attempt=key[1],
            job=job,
            submitted=submitted,
            completed=max(completed, submitted),
            tasks=array("q", (running.took[at] for at in order)),
            name=str(info.get("Stage Name") or ""),
            parents=tuple(int(one) for one in info.get("Parent IDs") or ()),
            tail=max(completed - last, 0),
            execution=execution,
        )
    )


def _query_began(log: Gathered, event: Mapping[str, Any]) -> None:
    number = int(event["executionId"])
    log.executions[number] = Execution(number, str(event.get("description") or ""), _time(event["time"]))


def _query_ended(log: Gathered, event: Mapping[str, Any]) -> None:
    begun = log.executions[int(event["executionId"])]
    log.executions[begun.id] = Execution(begun.id, begun.description, begun.began, _time(event["time"]))


_READERS: Mapping[str, Callable[[Gathered, Mapping[str, Any]], None]] = {
    "SparkListenerApplicationStart": _began,
    "SparkListenerApplicationEnd": _ended,
    "SparkListenerEnvironmentUpdate": _environment,
    "SparkListenerBlockManagerAdded": _block_manager,
    "SparkListenerExecutorAdded": _executor_added,
    "SparkListenerExecutorRemoved": _executor_removed,
    "SparkListenerJobStart": _job_started,
    "SparkListenerTaskEnd": _task_ended,
    "SparkListenerStageCompleted": _stage_completed,
    f"{_SQL}SparkListenerSQLExecutionStart": _query_began,
    f"{_SQL}SparkListenerSQLExecutionEnd": _query_ended,
}
