"""What Tidemark tells Airflow's own metrics (StatsD, OpenTelemetry, Datadog); where these are off, nothing happens.

A metric is a hint, as an event is: it may be lost with its worker, and it never fails a task.
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

_WRONG = (OSError, ValueError, TypeError, RuntimeError)  # what a backend may raise about a name, a value or a socket
_BACKENDS = ("statsd_on", "otel_on", "statsd_datadog_enabled")

log = logging.getLogger(__name__)


def wanted() -> bool:
    """Whether anybody listens; what costs a look at the lake is only asked for then."""
    return any(conf.getboolean("metrics", backend, fallback=False) for backend in _BACKENDS)


def delivered(result: CommitResult) -> None:
    """A commit: rows written, and for each stream its window, its versions, and its lag in seconds."""
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
    """How many versions the source was ahead of the offset when this moved."""
    _gauge("lag_versions", max(versions, 0), {"stream": stream})


def taken_over(results: Sequence[CommitResult]) -> None:
    """Windows of other runs, whose leases had run out, that were finished on the way."""
    for window in (window for result in results for window in result.windows):
        _count("windows_taken_over", 1, {"stream": window.stream})


def failed(streams: Sequence[str], error: BaseException) -> None:
    """An attempt to deliver that ended in an error; its window stays where it was, or pinned."""
    _count("deliveries_failed", 1, _together(streams), error=type(error).__name__)


def failing(stream: str, times: int) -> None:
    """How many attempts to consume the stream have failed in a row; 0 after a commit."""
    _gauge("failures_in_row", times, {"stream": stream})


def rolled_back(streams: Sequence[str]) -> None:
    """A transaction that was let go."""
    _count("transactions_rolled_back", 1, _together(streams))


def polled(stream: str, found: bool) -> None:
    """A sensor has polled whether there is something to deliver."""
    _count("looks", 1, {"stream": stream}, found=str(found).lower())


def replicated(name: str, *, lag_seconds: float | None, lag_bytes: int, failed_objects: int) -> None:
    """How a replication stands at the end of a run; no lag in seconds before its start."""
    replication = {"replication": name}
    if lag_seconds is not None:
        _gauge("replication_lag_seconds", lag_seconds, replication)
    _gauge("replication_lag_bytes", lag_bytes, replication)
    _gauge("replication_objects_failed", failed_objects, replication)


def job_ended(spec: JobSpec, seconds: float, outcome: str) -> None:
    """A Spark job, from its submission to its end. `outcome`: `done` or the name of its error."""
    from datetime import timedelta

    streams = _together(spec.streams)
    _emit("timing", "job_duration", timedelta(seconds=seconds), {**streams, "kind": spec.kind}, outcome=outcome)


def _together(streams: Sequence[str]) -> dict[str, str]:
    """Rows and failures belong to a transaction, so to all of its streams."""
    return {"stream": "_and_".join(sorted(streams))} if streams else {}


def _count(name: str, number: int, by_name: Mapping[str, str], **tags: str) -> None:
    _emit("incr", name, number, by_name, **tags)


def _gauge(name: str, value: float, by_name: Mapping[str, str]) -> None:
    _emit("gauge", name, value, by_name)


def _emit(kind: str, name: str, value: Any, by_name: Mapping[str, str], **tags: str) -> None:
    """`tidemark.<name>` with tags; and, as Airflow does for backends without tags, `tidemark.<name>.<stream>`."""
    from airflow.sdk.observability import stats

    tell: Callable[..., None] = getattr(stats, kind)
    try:
        plain = {tag: stats.normalize_name_for_stats(value, False) for tag, value in by_name.items()}
        tell(f"tidemark.{name}", value, tags={**plain, **tags})
        if plain and conf.getboolean("metrics", "legacy_names_on", fallback=True):
            parts = [part.replace(".", "__") for part in plain.values()]
            tell(".".join(("tidemark", name, *parts)), value, tags=dict(tags))
    except _WRONG as error:
        log.warning("The metric tidemark.%s was not told: %s", name, error)
