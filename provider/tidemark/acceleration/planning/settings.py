"""Spark's settings of an accelerated job, and those of event logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.acceleration.model.estimates import DEFAULT_FACTOR, MOST_FACTOR
from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import whole_number

__all__ = [
    "BASE_SETTING",
    "FACTOR_SETTING",
    "Executors",
    "accelerated_settings",
    "event_log_directory",
    "executors_of",
    "factor_of",
    "seconds_in",
]

FACTOR_SETTING = "spark.tidemark.queryAcceleration.maxScaleFactor"
BASE_SETTING = "spark.tidemark.queryAcceleration.baseExecutors"
_DYNAMIC = "spark.dynamicAllocation."
_OFF, _ON = ("", "none", "false"), ("true",)
_OF_A_MANAGER = 2  # spark.executor.instances of YARN and Kubernetes, if nothing else is set
_EVENT_LOGS = "file:/tmp/spark-events"  # Spark's own default
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}
_LENGTH = re.compile(r"\s*(\d{1,12})\s*([a-z]*)\s*")


@dataclass(frozen=True)
class Executors:
    """The executors of a job: those it begins with, and the most; None is without a limit."""

    base: int
    most: int | None


def factor_of(argument: str, value: bool | int | str | None) -> int | None:
    """The scale factor of an operator, also as a template renders it; None if acceleration is off.

    True is the default factor, and 0 sets no limit, as in the source system. Raises InvalidArgument.
    """
    text = str(value).strip().lower()
    if value is None or value is False or text in _OFF:
        return None
    if value is True or text in _ON:
        return DEFAULT_FACTOR
    number = whole_number(text)
    if number is None or number > MOST_FACTOR:
        problem = f"it must be a whole number from 0 (no limit) to {MOST_FACTOR}, True, or None for off"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return number


def executors_of(settings: Mapping[str, str], *, master: str, factor: int) -> Executors:
    """The executors of a job with that factor, on that master. Raises InvalidArgument if nothing says its base."""
    if not (master == "yarn" or master.startswith(("spark://", "k8s://"))):
        raise _unfit(factor, f"the master {master} has no executors to add; use standalone, YARN or Kubernetes")
    if master.startswith("spark://") and _number(settings, "spark.executor.cores") is None:
        raise _unfit(factor, "on a standalone cluster, set spark.executor.cores in the connection's Spark settings")
    base = _base(settings, master)
    if base is None:
        problem = "nothing says how many executors a plain job has; in the connection's Spark settings, set"
        name = "spark.cores.max" if master.startswith("spark://") else f"{_DYNAMIC}maxExecutors"
        raise _unfit(factor, f"{problem} {name}")
    return Executors(base, base * (1 + factor) if factor else None)


def accelerated_settings(settings: Mapping[str, str], *, master: str, factor: int) -> dict[str, str]:
    """The settings with dynamic allocation from the base of the job up to base × (1 + factor). Others of dynamic
    allocation are kept. Raises InvalidArgument as `executors_of`.
    """
    executors = executors_of(settings, master=master, factor=factor)
    found = {name: value for name, value in settings.items() if name != "spark.cores.max"}
    found |= {
        f"{_DYNAMIC}enabled": "true",
        f"{_DYNAMIC}minExecutors": str(executors.base),
        f"{_DYNAMIC}initialExecutors": str(executors.base),
        "spark.executor.instances": str(executors.base),
        FACTOR_SETTING: str(factor),
        BASE_SETTING: str(executors.base),
    }
    found.pop(f"{_DYNAMIC}maxExecutors", None)
    if settings.get("spark.shuffle.service.enabled", "").lower() != "true":
        found[f"{_DYNAMIC}shuffleTracking.enabled"] = "true"
    if executors.most is not None:
        found[f"{_DYNAMIC}maxExecutors"] = str(executors.most)
        cores = _number(settings, "spark.executor.cores")
        if "spark.cores.max" in settings and cores is not None:
            found["spark.cores.max"] = str(executors.most * cores)
    return found


def event_log_directory(settings: Mapping[str, str]) -> str | None:
    """The directory of event logs; None if none are written."""
    if settings.get("spark.eventLog.enabled", "").strip().lower() != "true":
        return None
    return settings.get("spark.eventLog.dir", "").strip() or _EVENT_LOGS


def seconds_in(text: str, otherwise: float) -> float:
    """The seconds in a span of time as Spark writes it, such as `500ms` or `1s`; `otherwise` for another text."""
    found = _LENGTH.fullmatch(text.lower())
    if found is None or found[2] not in _UNITS:
        return otherwise
    return int(found[1]) * _UNITS[found[2]]


def _base(settings: Mapping[str, str], master: str) -> int | None:
    """The executors of a plain job. A standalone master divides spark.cores.max, and ignores the other settings."""
    standalone = master.startswith("spark://")
    most, cores = _number(settings, "spark.cores.max"), _number(settings, "spark.executor.cores")
    if standalone and most is not None and cores is not None and most >= cores:
        return most // cores
    dynamic = settings.get(f"{_DYNAMIC}enabled", "").lower() == "true"
    named = _number(settings, f"{_DYNAMIC}maxExecutors" if dynamic else "spark.executor.instances")
    return named or (None if standalone or dynamic else _OF_A_MANAGER)


def _number(settings: Mapping[str, str], name: str) -> int | None:
    return whole_number(settings.get(name, "").strip()) or None


def _unfit(factor: int, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="query_acceleration_max_scale_factor", value=factor, problem=problem)
