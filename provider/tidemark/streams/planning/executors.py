"""How many executors a job asks for: by the bytes that it is planned to read, within bounds of the connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import whole_number

__all__ = [
    "DEFAULT_BYTES",
    "MOST_BYTES",
    "ExecutorBounds",
    "PlannedExecutors",
    "executors_for",
    "named_by",
    "sized_settings",
]

DEFAULT_BYTES = 4 << 30  # of one executor
_MOST_EXECUTORS = 10_000
MOST_BYTES = 1 << 60
_DYNAMIC = "spark.dynamicAllocation."
_NUMBERS_OF_EXECUTORS = (
    "spark.executor.instances",
    "spark.cores.max",
    f"{_DYNAMIC}enabled",
    f"{_DYNAMIC}initialExecutors",
    f"{_DYNAMIC}maxExecutors",
    f"{_DYNAMIC}minExecutors",
)


@dataclass(frozen=True)
class ExecutorBounds:
    """The executors that a job may ask for, and the bytes for which it asks for one. Raises InvalidArgument."""

    max_executors: int
    min_executors: int = 1
    bytes_per_executor: int = DEFAULT_BYTES

    def __post_init__(self) -> None:
        mosts = {"max_executors": _MOST_EXECUTORS, "min_executors": _MOST_EXECUTORS, "bytes_per_executor": MOST_BYTES}
        for argument, most in mosts.items():
            value = getattr(self, argument)
            if not 0 < value <= most:
                raise InvalidArgument(argument=argument, value=value, problem=f"it must be from 1 to {most}")
        if self.min_executors > self.max_executors:
            problem = f"it must be at most max_executors, which is {self.max_executors}"
            raise InvalidArgument(argument="min_executors", value=self.min_executors, problem=problem)


@dataclass(frozen=True)
class PlannedExecutors:
    """The executors of one job: it begins with `initial`, and has from `least` to `most`. `planned_bytes`: None if
    nobody knows how much it reads.
    """

    planned_bytes: int | None
    least: int
    initial: int
    most: int

    def __str__(self) -> str:
        if self.planned_bytes is None:
            return f"unknown bytes, {self.least} to {self.most} executors"
        executors = "executor" if self.initial == 1 else "executors"
        idle = "" if self.least == self.initial else f", {self.least} if they are idle"
        return f"{self.planned_bytes:,} bytes, {self.initial} {executors}{idle}"


def executors_for(bounds: ExecutorBounds, planned_bytes: int | None) -> PlannedExecutors:
    """One executor for each `bytes_per_executor`, within the bounds. A job of unknown size begins with the least, and
    grows while its tasks wait.
    """
    if planned_bytes is None:
        return PlannedExecutors(None, bounds.min_executors, bounds.min_executors, bounds.max_executors)
    wanted = -(-planned_bytes // bounds.bytes_per_executor)
    number = min(max(wanted, bounds.min_executors), bounds.max_executors)
    return PlannedExecutors(planned_bytes, bounds.min_executors, number, number)


def named_by(settings: Mapping[str, str]) -> str | None:
    """The setting by which a user names the number of executors: it counts, and bytes do not. None if none does."""
    return next((name for name in _NUMBERS_OF_EXECUTORS if name in settings), None)


def sized_settings(settings: Mapping[str, str], executors: PlannedExecutors, *, master: str) -> dict[str, str]:
    """The settings with dynamic allocation in these numbers; a standalone master gets the cores, too.

    Raises InvalidArgument on a standalone master without `spark.executor.cores`. Its executors would take all cores of
    a worker, so their number would mean nothing.
    """
    found = {
        **settings,
        f"{_DYNAMIC}enabled": "true",
        f"{_DYNAMIC}minExecutors": str(executors.least),
        f"{_DYNAMIC}initialExecutors": str(executors.initial),
        f"{_DYNAMIC}maxExecutors": str(executors.most),
    }
    if settings.get("spark.shuffle.service.enabled", "").lower() != "true":
        found.setdefault(f"{_DYNAMIC}shuffleTracking.enabled", "true")
    if master.startswith("spark://"):
        cores = whole_number(settings.get("spark.executor.cores", "").strip())
        if not cores:
            problem = "on a standalone cluster, set spark.executor.cores in the connection's Spark settings"
            raise InvalidArgument(argument="max_executors", value=executors.most, problem=problem)
        found["spark.cores.max"] = str(executors.most * cores)
    return found
