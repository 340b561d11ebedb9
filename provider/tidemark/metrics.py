"""Tidemark's metrics for Airflow's own backends (StatsD, OpenTelemetry, Datadog). If these are off, nothing happens.

A metric is a hint, as an event is. It may be lost with its worker, and it never fails a task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow.sdk.configuration import conf

from tidemark.delivery.model.transactions import CommitResult
from tidemark.model.jobs import JobSpec

__all__ = [
    "delivered",
    "failed",
    "failing",
    "job_ended",
    "lag_in_versions",
    "polled",
    "replicated",
    "rolled_back",
    "taken_over",
    "wanted",
]

_WRONG = (OSError, ValueError, TypeError, RuntimeError)  # a backend's errors about a name, a value or a socket
_BACKENDS = ("statsd_on", "otel_on", "statsd_datadog_enabled")

log = logging.getLogger(__name__)


def wanted() -> bool:
    """Whether a backend is on. Only then are metrics measured that need a read of the lake."""
    return any(conf.getboolean("metrics", backend, fallback=False) for backend in _BACKENDS)


def delivered(result: CommitResult) -> None:
    """Reports a commit: rows written, and for each stream its window, its versions, and its lag in seconds."""
    together = _together([window.stream for window in result.windows])
    if result.evidence:
        _count("rows_delivered", result.rows, together)
    for window in result.windows:
        stream = {"stream": window.stream}
        _count("windows_delivered" if result.evidence else "windows_empty", 1, stream)
        _count("versions_read", window.to_version - window.from_version, stream)
        failing(window.stream, 0)
        if window.lag_seconds is not None:
            _gauge("lag_seconds", window.lag_seconds, stream)


def lag_in_versions(stream: str, versions: int) -> None:
    """Reports how many versions the source was ahead of the offset when it moved."""
    _gauge("lag_versions", max(versions, 0), {"stream": stream})


def taken_over(results: Sequence[CommitResult]) -> None:
    """Reports windows of other runs with expired leases, which this run has finished."""
    for window in (window for result in results for window in result.windows):
        _count("windows_taken_over", 1, {"stream": window.stream})


def failed(streams: Sequence[str], error: BaseException) -> None:
    """Reports a failed attempt to deliver. Its offset has not moved."""
    _count("deliveries_failed", 1, _together(streams), error=type(error).__name__)


def failing(stream: str, times: int) -> None:
    """Reports how many attempts to consume the stream have failed in a row; 0 after a commit."""
    _gauge("failures_in_row", times, {"stream": stream})


def rolled_back(streams: Sequence[str]) -> None:
    """Reports a transaction that was rolled back."""
    _count("transactions_rolled_back", 1, _together(streams))


def polled(stream: str, found: bool) -> None:
    """Reports that a sensor has polled the stream for changes."""
    _count("looks", 1, {"stream": stream}, found=str(found).lower())


def replicated(name: str, *, lag_seconds: float | None, lag_bytes: int, failed_objects: int) -> None:
    """Reports a replication's lag and failed objects at the end of a run. Before its start it has no lag in seconds."""
    replication = {"replication": name}
    if lag_seconds is not None:
        _gauge("replication_lag_seconds", lag_seconds, replication)
    _gauge("replication_lag_bytes", lag_bytes, replication)
    _gauge("replication_objects_failed", failed_objects, replication)


def job_ended(spec: JobSpec, seconds: float, outcome: str) -> None:
    """Reports a Spark job from its submission to its end. `outcome`: `done` or the name of its error."""
    from datetime import timedelta

    streams = _together(spec.streams)
    _emit("timing", "job_duration", timedelta(seconds=seconds), {**streams, "kind": spec.kind}, outcome=outcome)


def _together(streams: Sequence[str]) -> dict[str, str]:
    """The tag of all streams of a transaction, to which its rows and failures belong."""
    return {"stream": "_and_".join(sorted(streams))} if streams else {}


def _count(name: str, number: int, by_name: Mapping[str, str], **tags: str) -> None:
    _emit("incr", name, number, by_name, **tags)


def _gauge(name: str, value: float, by_name: Mapping[str, str]) -> None:
    _emit("gauge", name, value, by_name)


def _emit(kind: str, name: str, value: Any, by_name: Mapping[str, str], **tags: str) -> None:
    """Emits `tidemark.<name>` with tags and, as Airflow does for backends without tags, `tidemark.<name>.<stream>`."""
    from airflow.sdk.observability import stats

    tell: Callable[..., None] = getattr(stats, kind)
    try:
        plain = {tag: stats.normalize_name_for_stats(value, False) for tag, value in by_name.items()}
        tell(f"tidemark.{name}", value, tags={**plain, **tags})
        if plain and conf.getboolean("metrics", "legacy_names_on", fallback=True):
            parts = [part.replace(".", "__") for part in plain.values()]
            tell(".".join(("tidemark", name, *parts)), value, tags=dict(tags))
    except _WRONG as error:
        log.warning("The metric tidemark.%s was not sent: %s", name, error)
