"""The table of all metrics: names, types, units and tags. Docs, dashboard and alert rules are tested against it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

__all__ = ["METRICS", "OTHER", "Metric", "MetricType", "Together", "cleaned"]

OTHER = "other"
"""The tag of all objects that have none of their own."""

LONGEST_NAME = 100
_UNFIT = re.compile(r"[^a-zA-Z0-9_.-]")


class MetricType(StrEnum):
    """The types that StatsD and OpenTelemetry share."""

    COUNTER = "counter"
    GAUGE = "gauge"
    TIMER = "timer"


class Together(StrEnum):
    """The value of a gauge for several objects under one tag."""

    MOST = "most"
    LEAST = "least"
    SUM = "sum"


@dataclass(frozen=True)
class Metric:
    """One metric. `name`: without the prefix `tidemark.`. `objects`: tags whose values are names of objects. These are
    bounded in number, and become a part of the name for backends without tags. `tags`: the others, with few values.
    `looks`: `airflow tidemark metrics emit` sends it; else tasks do. `together`: see `Together`.
    """

    name: str
    type: MetricType
    unit: str
    meaning: str
    objects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    looks: bool = False
    together: Together = Together.MOST

    @property
    def prometheus(self) -> str:
        """The name in Prometheus, as OpenTelemetry's translation makes it. A timer is a histogram of that name."""
        ending = {MetricType.COUNTER: "_total", MetricType.TIMER: "_milliseconds", MetricType.GAUGE: ""}[self.type]
        return f"airflow_tidemark_{self.name}{ending}"


_COUNTER, _GAUGE, _TIMER = MetricType.COUNTER, MetricType.GAUGE, MetricType.TIMER
_STREAM, _OBJECT, _REPLICATION = ("stream",), ("kind", "object"), ("replication",)

_ALL = (
    Metric("rows_delivered", _COUNTER, "rows", "rows written to targets by a commit", _STREAM),
    Metric(
        "bytes_delivered",
        _COUNTER,
        "bytes",
        "bytes of the data files that a commit added to targets, by their logs",
        _STREAM,
    ),
    Metric("windows_delivered", _COUNTER, "windows", "windows that a commit delivered", _STREAM),
    Metric("windows_empty", _COUNTER, "windows", "windows with nothing in them, for which no job ran", _STREAM),
    Metric("versions_read", _COUNTER, "versions", "versions of the source by which the offset moved", _STREAM),
    Metric(
        "lag_versions", _GAUGE, "versions", "versions that the source was ahead of the offset after the commit", _STREAM
    ),
    Metric("lag_seconds", _GAUGE, "seconds", "age of the window's newest version at the commit", _STREAM),
    Metric(
        "job_duration",
        _TIMER,
        "milliseconds",
        "a Spark job from its submission to its end, start of the driver included",
        (*_STREAM, "kind"),
        ("outcome",),
    ),
    Metric(
        "deliveries_failed",
        _COUNTER,
        "attempts",
        "attempts that ended in an error of Tidemark's; the window is not lost",
        _STREAM,
        ("error",),
    ),
    Metric(
        "failures_in_row",
        _GAUGE,
        "attempts",
        "attempts to consume the stream that have failed in a row; 0 after a commit",
        _STREAM,
    ),
    Metric("transactions_rolled_back", _COUNTER, "groups", "task groups that released their windows", _STREAM),
    Metric(
        "windows_taken_over",
        _COUNTER,
        "windows",
        "finished windows of other runs, whose leases had expired",
        _STREAM,
    ),
    Metric("looks", _COUNTER, "looks", "checks of sensors whether a stream has data", _STREAM, ("found",)),
    Metric(
        "replication_lag_seconds",
        _GAUGE,
        "seconds",
        "time since the latest captured commit, at the end of a run",
        _REPLICATION,
    ),
    Metric("replication_lag_bytes", _GAUGE, "bytes", "the source's log after the captured position", _REPLICATION),
    Metric("replication_objects_failed", _GAUGE, "objects", "objects whose last backfill failed", _REPLICATION),
    Metric(
        "task_duration",
        _TIMER,
        "milliseconds",
        "one attempt of a task of an operator, without deferred time",
        _OBJECT,
        ("operator", "outcome"),
    ),
    Metric("task_seconds", _COUNTER, "seconds", "the seconds of all attempts", _OBJECT, ("operator", "outcome")),
    Metric(
        "task_failures",
        _COUNTER,
        "attempts",
        "attempts that failed, by the name of their error",
        _OBJECT,
        ("operator", "error"),
    ),
    Metric("task_retries", _COUNTER, "attempts", "attempts after the first one", _OBJECT, ("operator",)),
    Metric("object_rows", _COUNTER, "rows", "rows that a task wrote, read or loaded for the object", _OBJECT),
    Metric("object_bytes", _COUNTER, "bytes", "bytes that a task wrote or loaded for the object", _OBJECT),
    Metric(
        "object_lag_seconds",
        _GAUGE,
        "seconds",
        "how far the object is behind its source",
        _OBJECT,
        looks=True,
    ),
    Metric(
        "object_lag_amount",
        _GAUGE,
        "the tag's",
        "the same in versions, bytes or rows",
        _OBJECT,
        ("unit",),
        looks=True,
    ),
    Metric(
        "object_hours_to_stale",
        _GAUGE,
        "hours",
        "time that a stream can wait, by Delta's retention; 0: it cannot be read, or may soon not be",
        _OBJECT,
        looks=True,
        together=Together.LEAST,
    ),
    Metric(
        "object_severity",
        _GAUGE,
        "rank",
        "0: ok, 1: waiting, 2: warning, 3: failed",
        _OBJECT,
        looks=True,
    ),
    Metric(
        "objects",
        _GAUGE,
        "objects",
        "living objects of the kind with that severity",
        tags=("kind", "severity"),
        looks=True,
        together=Together.SUM,
    ),
    Metric(
        "needs",
        _GAUGE,
        "objects",
        "objects of the overview: failed, warning or stopped",
        tags=("need",),
        looks=True,
        together=Together.SUM,
    ),
    Metric(
        "objects_not_looked_at",
        _GAUGE,
        "objects",
        "living objects of the kind whose logs have not answered for `look_minutes`, or never",
        tags=("kind",),
        looks=True,
        together=Together.SUM,
    ),
    Metric("emitted_at", _GAUGE, "Unix seconds", "when gauges were sent last", looks=True),
)

METRICS = {metric.name: metric for metric in _ALL}
"""Name to metric."""


def cleaned(name: str) -> str:
    """The name as a backend takes it as a tag or as a part of a metric's name: other letters become `_`. A long name
    ends in a digest.
    """
    fit = _UNFIT.sub("_", name)
    if len(fit) <= LONGEST_NAME:
        return fit
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fit[: LONGEST_NAME - 9]}_{digest}"
