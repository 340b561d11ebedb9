"""Metrics on their way to Airflow's backends: which names are sent with them, and those of a job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from tidemark.errors import InvalidArgument, TidemarkError
from tidemark.model.jobs import JobSpec
from tidemark.model.metrics import METRICS, OTHER, MetricType, cleaned

if TYPE_CHECKING:
    from tidemark.control.store import ControlStore

__all__ = ["OwnNames", "emit", "job_ended", "look_within", "names_from", "send", "streams_tag", "tag_of", "wanted"]

MOST_OBJECTS = 1000
LOOK_MINUTES = 60
MOST_MINUTES = 525_600  # a year
_WRONG = (OSError, ValueError, TypeError, RuntimeError)  # a backend's errors about a name, a value or a socket
_BACKENDS = ("statsd_on", "otel_on", "statsd_datadog_enabled")
_KEPT = 60.0  # seconds for which a kind's last name with a tag of its own is kept
_CALLS = {MetricType.COUNTER: "incr", MetricType.GAUGE: "gauge", MetricType.TIMER: "timing"}

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
        most = _whole_number(conf.get("tidemark", "metrics_objects", fallback="") or str(MOST_OBJECTS))
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


@cache
def _whole_number(given: str) -> int:
    """The number of `[tidemark] metrics_objects`. Another text is no reason for a task to fail; it is said once."""
    try:
        return int(given)
    except ValueError:
        log.warning("[tidemark] metrics_objects=%r is no whole number, so it is %s.", given, MOST_OBJECTS)
        return MOST_OBJECTS


_own = OwnNames()


def names_from(place: str, open_store: Callable[[], ControlStore]) -> None:
    """Names of objects are bounded by the store at that place from now on. It is opened when a metric is sent."""
    _own.ask(place, open_store)


def wanted() -> bool:
    """Whether a backend is on. Only then are metrics measured that need a read of the lake or of the store."""
    return any(conf.getboolean("metrics", backend, fallback=False) for backend in _BACKENDS)


def look_within() -> timedelta:
    """The time in which each object should have a look at its logs, by `[tidemark] look_minutes`. Raises
    InvalidArgument.
    """
    given = conf.get("tidemark", "look_minutes", fallback="") or str(LOOK_MINUTES)
    try:
        minutes = int(given)
    except ValueError:
        minutes = 0
    if not 1 <= minutes <= MOST_MINUTES:
        problem = f"it is the number of minutes in [tidemark] of Airflow's configuration, 1 to {MOST_MINUTES:,}"
        raise InvalidArgument(argument="look_minutes", value=given, problem=problem)
    return timedelta(minutes=minutes)


def job_ended(spec: JobSpec, seconds: float, outcome: str) -> None:
    """Reports a Spark job from its submission to its end. `outcome`: `done` or the name of its error."""
    streams = streams_tag(spec.streams)
    emit("job_duration", timedelta(seconds=seconds), {**streams, "kind": spec.kind}, outcome=outcome)


def streams_tag(streams: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tag of all streams of a transaction, to which its rows and failures belong."""
    return {"stream": tuple(sorted(streams))} if streams else {}


def tag_of(tag: str, by_name: _Names) -> str:
    """The tag's value as it is sent. Several names are one value, and those without a tag of their own are `other`."""
    given = by_name[tag]
    names = (given,) if isinstance(given, str) else given
    if tag not in ("stream", "replication", "object") or not wanted():
        return cleaned("_and_".join(names)) or OTHER
    kind = str(by_name.get("kind", OTHER)) if tag == "object" else tag
    return cleaned("_and_".join(dict.fromkeys(_own.tag(kind, name) for name in names)))


def emit(name: str, value: Any, by_name: _Names, **tags: str) -> None:
    """Sends `tidemark.<name>` with tags, names of objects bounded and cleaned."""
    send(name, value, {tag: tag_of(tag, by_name) for tag in by_name}, tags)


def send(name: str, value: Any, named: Mapping[str, str], tags: Mapping[str, str]) -> None:
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
