"""Tidemark's metrics for Airflow's own backends (StatsD, OpenTelemetry, Datadog). If these are off, nothing happens.

A metric is a hint, as an event is. It may be lost with its worker, and it never fails a task. Names, types and tags are
those of `tidemark.model.metrics`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from tidemark.delivery.model.transactions import CommitResult
from tidemark.errors import TidemarkError
from tidemark.model.jobs import JobSpec
from tidemark.model.metrics import METRICS, OTHER, MetricType, Together, cleaned

if TYPE_CHECKING:
    from tidemark.control.store import ControlStore
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

MOST_OBJECTS = 1000
_WRONG = (OSError, ValueError, TypeError, RuntimeError)  # a backend's errors about a name, a value or a socket
_BACKENDS = ("statsd_on", "otel_on", "statsd_datadog_enabled")
_KEPT = 60.0  # seconds for which a kind's last name with a tag of its own is kept
_CALLS = {MetricType.COUNTER: "incr", MetricType.GAUGE: "gauge", MetricType.TIMER: "timing"}
_OF_SEVERAL: Mapping[Together, Callable[[Iterable[float]], float]] = {
    Together.MOST: max,
    Together.LEAST: min,
    Together.SUM: sum,
}

_Names = Mapping[str, str | Sequence[str]]

log = logging.getLogger(__name__)


class OwnNames:
    """Decides which objects have tags of their own: the first ones of each kind by name, as the control store has them.

    So all processes decide in the same way, and no backend gets more names of a kind than `[tidemark] metrics_objects`.
    The store is asked once a minute for a kind, and only if it has been named.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._place: str | None = None
        self._open: Callable[[], ControlStore] | None = None
        self._last: dict[str, tuple[float, str | None]] = {}

    def ask(self, place: str, open_store: Callable[[], ControlStore]) -> None:
        """Decide by the store at that place from now on."""
        if place != self._place:
            self._last.clear()
        self._place, self._open = place, open_store

    def tag(self, kind: str, name: str) -> str:
        """The cleaned name, or `other`. While the store does not answer, all are `other`."""
        most = conf.getint("tidemark", "metrics_objects", fallback=MOST_OBJECTS)
        if most < 1 or not name:
            return OTHER
        if self._open is None:
            return cleaned(name)
        try:
            last = self._last_of(kind, most, self._open)
        except TidemarkError as error:
            log.warning("Metrics do not name the %s, since the control store does not answer: %s", kind, error)
            return OTHER
        return cleaned(name) if last is None or name.casefold() <= last else OTHER

    def _last_of(self, kind: str, most: int, open_store: Callable[[], ControlStore]) -> str | None:
        from tidemark.control.object_kinds import KINDS
        from tidemark.control.object_list import folded_name_at

        if kind not in KINDS:
            return ""  # the store has no list of them
        known = self._last.get(kind)
        if known is None or self._clock() >= known[0]:
            found = open_store().read(lambda connection: folded_name_at(connection, kind, most - 1))
            known = self._last[kind] = (self._clock() + _KEPT, found)
        return known[1]


_own = OwnNames()


def names_from(place: str, open_store: Callable[[], ControlStore]) -> None:
    """Names of objects are bounded by the store at that place from now on. It is opened when a metric is sent."""
    _own.ask(place, open_store)


def wanted() -> bool:
    """Whether a backend is on. Only then are metrics measured that need a read of the lake or of the store."""
    return any(conf.getboolean("metrics", backend, fallback=False) for backend in _BACKENDS)


def delivered(result: CommitResult) -> None:
    """Reports a commit: rows written, and for each stream its window, its versions, and its lag in seconds."""
    together = _together([window.stream for window in result.windows])
    if result.evidence:
        _emit("rows_delivered", result.rows, together)
    for window in result.windows:
        stream = {"stream": window.stream}
        _emit("windows_delivered" if result.evidence else "windows_empty", 1, stream)
        _emit("versions_read", window.to_version - window.from_version, stream)
        failing(window.stream, 0)
        if window.lag_seconds is not None:
            _emit("lag_seconds", window.lag_seconds, stream)


def lag_in_versions(stream: str, versions: int) -> None:
    """Reports how many versions the source was ahead of the offset when it moved."""
    _emit("lag_versions", max(versions, 0), {"stream": stream})


def taken_over(results: Sequence[CommitResult]) -> None:
    """Reports windows of other runs with expired leases, which this run has finished."""
    for window in (window for result in results for window in result.windows):
        _emit("windows_taken_over", 1, {"stream": window.stream})


def failed(streams: Sequence[str], error: BaseException) -> None:
    """Reports a failed attempt to deliver. Its offset has not moved."""
    _emit("deliveries_failed", 1, _together(streams), error=type(error).__name__)


def failing(stream: str, times: int) -> None:
    """Reports how many attempts to consume the stream have failed in a row; 0 after a commit."""
    _emit("failures_in_row", times, {"stream": stream})


def rolled_back(streams: Sequence[str]) -> None:
    """Reports a transaction that was rolled back."""
    _emit("transactions_rolled_back", 1, _together(streams))


def polled(stream: str, found: bool) -> None:
    """Reports that a sensor has polled the stream for changes."""
    _emit("looks", 1, {"stream": stream}, found=str(found).lower())


def replicated(name: str, *, lag_seconds: float | None, lag_bytes: int, failed_objects: int) -> None:
    """Reports a replication's lag and failed objects at the end of a run. Before its start it has no lag in seconds."""
    replication = {"replication": name}
    if lag_seconds is not None:
        _emit("replication_lag_seconds", lag_seconds, replication)
    _emit("replication_lag_bytes", lag_bytes, replication)
    _emit("replication_objects_failed", failed_objects, replication)


def job_ended(spec: JobSpec, seconds: float, outcome: str) -> None:
    """Reports a Spark job from its submission to its end. `outcome`: `done` or the name of its error."""
    from datetime import timedelta

    streams = _together(spec.streams)
    _emit("job_duration", timedelta(seconds=seconds), {**streams, "kind": spec.kind}, outcome=outcome)


def task_ended(operator: str, kind: str, name: str, *, seconds: float, outcome: str, attempt: int) -> None:
    """Reports the end of an attempt of a task. `name`: of its object; empty for none or several. `outcome`: `success`,
    `skipped`, or the name of its error.
    """
    from datetime import timedelta

    of = {"kind": kind, "object": name}
    _emit("task_duration", timedelta(seconds=seconds), of, operator=operator, outcome=outcome)
    _emit("task_seconds", round(seconds, 3), of, operator=operator, outcome=outcome)
    if outcome not in ("success", "skipped"):
        _emit("task_failures", 1, of, operator=operator, error=outcome)
    if attempt > 1:
        _emit("task_retries", 1, of, operator=operator)


def worked_on(kind: str, name: str, *, rows: int | None, size: int | None) -> None:
    """Reports the rows and bytes of a task for an object, if they are known."""
    of = {"kind": kind, "object": name}
    if rows is not None:
        _emit("object_rows", rows, of)
    if size is not None:
        _emit("object_bytes", size, of)


def emit_gauges(conn_id: str = "tidemark_default") -> int:
    """Looks at every object of a Tidemark connection, sends its lag, time to stale and severity, and returns the number
    of gauges. For a task of its own; logs are waited for at most 30 seconds. A second call looks and sends again.

    Raises AirflowNotFoundException, InvalidArgument, StoreError.
    """
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.streams.worker.gauges import look_for_gauges

    hook = TidemarkHook(conn_id)
    return observed(look_for_gauges(hook.open_store(), hook.open_table))


def observed(readings: Iterable[Reading]) -> int:
    """Reports gauges, and returns their number. Objects under one tag are one gauge: the worst of them."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[float]] = {}
    for one in readings:
        tags = {tag: str(value) for tag, value in one.tags.items()}
        if "object" in tags:
            tags["object"] = _tag("object", tags)
        found.setdefault((one.name, tuple(tags.items())), []).append(one.value)
    for (name, given), values in found.items():
        tags = dict(given)
        named = {tag: tags.pop(tag) for tag in METRICS[name].objects}
        _send(name, _OF_SEVERAL[METRICS[name].together](values), named, tags)
    return len(found)


def _together(streams: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tag of all streams of a transaction, to which its rows and failures belong."""
    return {"stream": tuple(sorted(streams))} if streams else {}


def _tag(tag: str, by_name: _Names) -> str:
    """The tag's value as it is sent. Several names are one value, and those without a tag of their own are `other`."""
    given = by_name[tag]
    names = (given,) if isinstance(given, str) else given
    if tag not in ("stream", "replication", "object") or not wanted():
        return cleaned("_and_".join(names)) or OTHER
    kind = str(by_name.get("kind", OTHER)) if tag == "object" else tag
    return cleaned("_and_".join(dict.fromkeys(_own.tag(kind, name) for name in names)))


def _emit(name: str, value: Any, by_name: _Names, **tags: str) -> None:
    """Sends `tidemark.<name>` with tags, names of objects bounded and cleaned."""
    _send(name, value, {tag: _tag(tag, by_name) for tag in by_name}, tags)


def _send(name: str, value: Any, named: Mapping[str, str], tags: Mapping[str, str]) -> None:
    """Sends `tidemark.<name>` with tags and, as Airflow does for backends without tags, `tidemark.<name>.<stream>`."""
    from airflow.sdk.observability import stats

    tell: Callable[..., None] = getattr(stats, _CALLS[METRICS[name].type])
    try:
        tell(f"tidemark.{name}", value, tags={**named, **tags})
        if named and conf.getboolean("metrics", "legacy_names_on", fallback=True):
            parts = [part.replace(".", "__") for part in named.values()]
            tell(".".join(("tidemark", name, *parts)), value, tags=dict(tags))
    except _WRONG as error:
        log.warning("The metric tidemark.%s was not sent: %s", name, error)
