"""Tidemark's metrics for Airflow's own backends (StatsD, OpenTelemetry, Datadog). If these are off, nothing happens.

A metric is a hint, as an event is. It may be lost with its worker, and it never fails a task. Names, types and tags are
those of `tidemark.model.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.delivery.model.transactions import CommitResult
from tidemark.hooks._metrics import (
    OwnNames,
    emit,
    job_ended,
    look_within,
    names_from,
    send,
    streams_tag,
    tag_of,
    wanted,
)
from tidemark.model.metrics import METRICS, Together

if TYPE_CHECKING:
    from tidemark.model.readings import Reading

__all__ = [
    "OwnNames",
    "delivered",
    "emit_gauges",
    "failed",
    "failing",
    "job_ended",
    "lag_in_versions",
    "names_from",
    "observed",
    "polled",
    "replicated",
    "rolled_back",
    "taken_over",
    "task_ended",
    "wanted",
    "worked_on",
]

_OF_SEVERAL: Mapping[Together, Callable[[Iterable[float]], float]] = {
    Together.MOST: max,
    Together.LEAST: min,
    Together.SUM: sum,
}


def delivered(result: CommitResult) -> None:
    """Reports a commit: rows and bytes written, and for each stream its window, its versions, and its lag."""
    together = streams_tag([window.stream for window in result.windows])
    if result.evidence:
        emit("rows_delivered", result.rows, together)
    sizes = [proof.bytes for proof in result.evidence if proof.bytes is not None]
    if sizes:
        emit("bytes_delivered", sum(sizes), together)
    for window in result.windows:
        stream = {"stream": window.stream}
        emit("windows_delivered" if result.evidence else "windows_empty", 1, stream)
        emit("versions_read", window.to_version - window.from_version, stream)
        failing(window.stream, 0)
        if window.lag_seconds is not None:
            emit("lag_seconds", window.lag_seconds, stream)


def lag_in_versions(stream: str, versions: int) -> None:
    """Reports how many versions the source was ahead of the offset when it moved."""
    emit("lag_versions", max(versions, 0), {"stream": stream})


def taken_over(results: Sequence[CommitResult]) -> None:
    """Reports windows of other runs with expired leases, which this run has finished."""
    for window in (window for result in results for window in result.windows):
        emit("windows_taken_over", 1, {"stream": window.stream})


def failed(streams: Sequence[str], error: BaseException) -> None:
    """Reports a failed attempt to deliver. Its offset has not moved."""
    emit("deliveries_failed", 1, streams_tag(streams), error=type(error).__name__)


def failing(stream: str, times: int) -> None:
    """Reports how many attempts to consume the stream have failed in a row; 0 after a commit."""
    emit("failures_in_row", times, {"stream": stream})


def rolled_back(streams: Sequence[str]) -> None:
    """Reports a transaction that was rolled back."""
    emit("transactions_rolled_back", 1, streams_tag(streams))


def polled(stream: str, found: bool) -> None:
    """Reports that a sensor has polled the stream for changes."""
    emit("looks", 1, {"stream": stream}, found=str(found).lower())


def replicated(name: str, *, lag_seconds: float | None, lag_bytes: int, failed_objects: int) -> None:
    """Reports a replication's lag and failed objects at the end of a run. Before its start it has no lag in seconds."""
    replication = {"replication": name}
    if lag_seconds is not None:
        emit("replication_lag_seconds", lag_seconds, replication)
    emit("replication_lag_bytes", lag_bytes, replication)
    emit("replication_objects_failed", failed_objects, replication)


def task_ended(operator: str, kind: str, name: str, *, seconds: float, outcome: str, attempt: int) -> None:
    """Reports the end of an attempt of a task. `name`: of its object; empty for none or several. `outcome`: `success`,
    `skipped`, or the name of its error.
    """
    from datetime import timedelta

    of = {"kind": kind, "object": name}
    emit("task_duration", timedelta(seconds=seconds), of, operator=operator, outcome=outcome)
    emit("task_seconds", round(seconds, 3), of, operator=operator, outcome=outcome)
    if outcome not in ("success", "skipped"):
        emit("task_failures", 1, of, operator=operator, error=outcome)
    if attempt > 1:
        emit("task_retries", 1, of, operator=operator)


def worked_on(kind: str, name: str, *, rows: int | None, size: int | None) -> None:
    """Reports the rows and bytes of a task for an object, if they are known."""
    of = {"kind": kind, "object": name}
    if rows is not None:
        emit("object_rows", rows, of)
    if size is not None:
        emit("object_bytes", size, of)


def emit_gauges(conn_id: str = "tidemark_default") -> int:
    """Looks at every object of a Tidemark connection, sends its lag, time to stale and severity, and returns the number
    of gauges. For a task of its own; logs are waited for at most 30 seconds. A second call looks and sends again.

    Raises AirflowNotFoundException, InvalidArgument, StoreError.
    """
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.streams.worker.gauges import look_for_gauges

    hook, within = TidemarkHook(conn_id), look_within()
    return observed(look_for_gauges(hook.open_store(), hook.open_table, within=within))


def observed(readings: Iterable[Reading]) -> int:
    """Reports gauges, and returns their number. Objects under one tag are one gauge: the worst of them."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[float]] = {}
    for one in readings:
        tags = {tag: str(value) for tag, value in one.tags.items()}
        if "object" in tags:
            tags["object"] = tag_of("object", tags)
        found.setdefault((one.name, tuple(tags.items())), []).append(one.value)
    for (name, given), values in found.items():
        tags = dict(given)
        named = {tag: tags.pop(tag) for tag in METRICS[name].objects}
        send(name, _OF_SEVERAL[METRICS[name].together](values), named, tags)
    return len(found)
