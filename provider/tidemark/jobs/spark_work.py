"""A job's part of Spark: its session, its active stages, and the cancellation of its work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.jobs.remote import is_remote
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NOT_INHERITED", "ActiveStage", "SparkWork", "own_session", "work_in"]

MOST_STAGES = 4
NOT_INHERITED = frozenset({APP_ID, TXN_VERSION, USER_METADATA, "spark.databricks.delta.lastCommitVersionInSession"})


@dataclass(frozen=True)
class ActiveStage:
    """A stage of a running query, with its finished tasks."""

    number: int
    completed: int
    tasks: int


class SparkWork(AbstractContextManager["SparkWork"]):
    """The work of a job. As a context, other threads can cancel and observe what `session` runs inside."""

    session: SparkSession

    def cancel(self) -> None:
        """Cancels running queries, not later ones. Idempotent: a second run is harmless."""
        raise NotImplementedError

    def active_stages(self) -> Sequence[ActiveStage]:
        """The stages that run now."""
        raise NotImplementedError


def work_in(spark: SparkSession, name: str) -> SparkWork:
    """The work of the job `name` on the Spark of `spark`. Its cancellation does not touch other jobs."""
    return _RemoteWork(spark) if is_remote(spark) else _LocalWork(spark, name)


def own_session(spark: SparkSession) -> SparkSession:
    """A session with the settings of `spark` but its own transaction settings and views (V15)."""
    session = spark.newSession()
    for name, value in spark.conf.getAll.items():
        if name in NOT_INHERITED or session.conf.get(name, None) == value:
            continue
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


class _LocalWork(SparkWork):
    """Spark in this process's JVM: a tag marks the job's queries."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._context = spark.sparkContext
        self._tracker = self._context.statusTracker()
        self._tag = name.replace(",", "_")
        self.session = own_session(spark)

    def __enter__(self) -> _LocalWork:
        self._context.addJobTag(self._tag)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._context.removeJobTag(self._tag)

    def cancel(self) -> None:
        self._context.cancelJobsWithTag(self._tag)

    def active_stages(self) -> list[ActiveStage]:
        known = ((number, self._tracker.getStageInfo(number)) for number in sorted(self._tracker.getActiveStageIds()))
        return [ActiveStage(number, stage.numCompletedTasks, stage.numTasks) for number, stage in known if stage]


class _RemoteWork(SparkWork):
    """A session of Spark Connect that is the job's own: all that runs in it is the job's."""

    def __init__(self, spark: SparkSession) -> None:
        self.session = spark
        self._stages: list[ActiveStage] = []

    def __enter__(self) -> _RemoteWork:
        self._remote.registerProgressHandler(self._note)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._remote.removeProgressHandler(self._note)

    def cancel(self) -> None:
        from pyspark.errors import PySparkException

        with suppress(PySparkException):  # if the server does not answer, the next try is in a second
            self._remote.interruptAll()

    def active_stages(self) -> list[ActiveStage]:
        return self._stages

    @property
    def _remote(self) -> Any:
        return self.session

    def _note(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Keeps the first unfinished stages of a query, which reports all of its stages, waiting ones too."""
        unfinished = [] if done else [stage for stage in stages or () if not stage.done]
        active = sorted(unfinished, key=lambda stage: stage.stage_id)[:MOST_STAGES]
        self._stages = [ActiveStage(s.stage_id, s.num_completed_tasks, s.num_tasks) for s in active]
