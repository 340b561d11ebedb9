"""Applications and event logs made for tests, in the form of Spark 4."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidemark.acceleration.model.applications import Application, ExecutorChange, Stage

__all__ = ["BEGAN", "application", "events", "lines", "stage"]

BEGAN = 1_700_000_000_000
SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"


def stage(number: int, at: int, until: int, tasks: Sequence[int], **more: Any) -> Stage:
    """A stage with these tasks; times are milliseconds since the begin."""
    return Stage(
        id=number,
        attempt=0,
        job=more.pop("job", number),
        submitted=BEGAN + at,
        completed=BEGAN + until,
        tasks=array("q", tasks),
        **more,
    )


def application(
    *stages: Stage, until: int, slots: int = 1, executors: int = 1, settings: Mapping[str, str] | None = None
) -> Application:
    """An application whose executors have `slots` each, from its begin on."""
    return Application(
        id="app-1",
        name="made",
        began=BEGAN,
        ended=BEGAN + until,
        stages=stages,
        executors=tuple(ExecutorChange(BEGAN, str(number), slots) for number in range(executors)),
        settings=settings or {},
        driver_ready=BEGAN,
    )


def events(
    tasks: Sequence[int], *, slots: int = 1, ended: bool = True, settings: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """The events of an application with one query, job and stage, whose tasks ran one after the other on each slot."""
    yield {"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"}
    yield {"Event": "SparkListenerApplicationStart", "App Name": "made", "App ID": "app-1", "Timestamp": BEGAN}
    yield {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.task.cpus": "1", **(settings or {})}}
    manager = {"Executor ID": "driver", "Host": "h", "Port": 1}
    yield {"Event": "SparkListenerBlockManagerAdded", "Block Manager ID": manager, "Timestamp": BEGAN}
    info = {"Host": "h", "Total Cores": slots}
    yield {"Event": "SparkListenerExecutorAdded", "Timestamp": BEGAN, "Executor ID": "0", "Executor Info": info}
    yield {"Event": f"{SQL}Start", "executionId": 7, "description": "count", "time": BEGAN + 100}
    properties = {"spark.sql.execution.id": "7"}
    yield {"Event": "SparkListenerJobStart", "Job ID": 3, "Stage IDs": [5], "Properties": properties}
    free = [BEGAN + 100] * slots
    for number, took in enumerate(tasks):
        at = min(range(slots), key=free.__getitem__)
        launched, free[at] = free[at], free[at] + took
        task = {"Task ID": number, "Launch Time": launched, "Finish Time": free[at], "Executor ID": "0"}
        yield {"Event": "SparkListenerTaskEnd", "Stage ID": 5, "Stage Attempt ID": 0, "Task Info": task}
    times = {"Submission Time": BEGAN + 100, "Completion Time": max(free)}
    about = {"Stage ID": 5, "Stage Attempt ID": 0, "Stage Name": "count", "Parent IDs": [], **times}
    yield {"Event": "SparkListenerStageCompleted", "Stage Info": about}
    yield {"Event": f"{SQL}End", "executionId": 7, "time": max(free)}
    if ended:
        yield {"Event": "SparkListenerApplicationEnd", "Timestamp": max(free) + 100}


def lines(tasks: Sequence[int], **how: Any) -> bytes:
    """The same as an event log."""
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events(tasks, **how))
