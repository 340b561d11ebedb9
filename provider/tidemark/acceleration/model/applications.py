"""A Spark application, as its event log describes it. Times are milliseconds since 1970, as Spark has them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Application", "Execution", "ExecutorChange", "Stage"]


@dataclass(frozen=True)
class Stage:
    """An attempt of a stage that has ended.

    `parents`: ids of the stages whose output it reads, if they ran. `tasks`: the milliseconds that tasks
    took, in the order in which they started; failed ones count, since they had a slot. `tail`: milliseconds between the
    end of the last task and that of the stage. `execution`: of the SQL query that it belongs to.
    """

    id: int
    attempt: int
    job: int
    submitted: int
    completed: int
    tasks: array[int]
    name: str = ""
    parents: tuple[int, ...] = ()
    tail: int = 0
    execution: int | None = None


@dataclass(frozen=True)
class ExecutorChange:
    """Slots that came with an executor, or left with it (negative)."""

    at: int
    executor: str
    slots: int


@dataclass(frozen=True)
class Execution:
    """A SQL query of an application; `ended` is None if the log does not have its end."""

    id: int
    description: str
    began: int
    ended: int | None = None


@dataclass(frozen=True)
class Application:
    """An application, or the part of it that belongs to one SQL query.

    `ended` is None if the log does not have the end. `driver_ready`: the time from which executors could be asked for.
    `left_out`: lines of the log that were too long to be read.
    """

    id: str
    name: str
    began: int
    ended: int | None
    stages: tuple[Stage, ...] = ()
    executors: tuple[ExecutorChange, ...] = ()
    executions: tuple[Execution, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    driver_ready: int | None = None
    left_out: int = 0

    @property
    def seconds(self) -> float:
        """The wall clock from begin to end; 0 without an end."""
        return 0.0 if self.ended is None else max(self.ended - self.began, 0) / 1000
