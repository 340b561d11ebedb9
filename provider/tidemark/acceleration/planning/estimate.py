"""Whether more executors would have made an application faster, and by how much."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median

from tidemark.acceleration.model.applications import Application, Execution, Stage
from tidemark.acceleration.model.estimates import MOST_FACTOR, SHOWN_FACTORS, Estimate, Status
from tidemark.acceleration.planning.schedule import Ramp, Replay, replay_of
from tidemark.acceleration.planning.settings import BASE_SETTING, FACTOR_SETTING, seconds_in

__all__ = ["LEAST_GAIN", "OLDEST", "estimate", "part_of", "predicted_seconds", "ramp_of"]

LEAST_GAIN = 0.20
OLDEST = timedelta(days=14)
_NEARLY_BEST = 1.01
_TRIED = (*SHOWN_FACTORS, 16, 32, 64, MOST_FACTOR)
_MOSTLY = 0.5


def estimate(application: Application, *, now: datetime) -> Estimate:
    """The estimate in the words of the source system. `now` decides whether the application is too old."""
    problem = _invalid(application, now)
    if problem is not None:
        return Estimate(application.id, Status.INVALID, application.seconds, reason=problem)
    replay = replay_of(application, ramp_of(application))
    if replay.slots == 0:
        reason = "the event log names no executor"
        return Estimate(application.id, Status.INVALID, application.seconds, reason=reason)
    if _was_accelerated(application, replay):
        reason = "the application had more executors than its base already"
        return Estimate(application.id, Status.ACCELERATED, application.seconds, reason=reason, slots=replay.slots)
    times = _Times(application, replay)
    tried = {factor: times.seconds(factor) for factor in _TRIED}
    found = Estimate(application.id, Status.INELIGIBLE, application.seconds, slots=replay.slots)
    if tried[MOST_FACTOR] > application.seconds * (1 - LEAST_GAIN):
        shown = {factor: tried[factor] for factor in SHOWN_FACTORS}
        return replace(found, times=shown, reason=_reason(application, replay, tried[MOST_FACTOR]))
    limit = _smallest_of_the_best(times)
    shown = {factor: times.seconds(factor) for factor in sorted({*SHOWN_FACTORS, limit})}
    return replace(found, status=Status.ELIGIBLE, times=shown, upper_limit=limit)


def predicted_seconds(application: Application, factor: int) -> float | None:
    """The seconds with that factor; 0 is as the greatest one. None if the log does not suffice for a prediction."""
    if application.ended is None:
        return None
    replay = replay_of(application, ramp_of(application))
    return None if replay.slots == 0 else _Times(application, replay).seconds(factor or MOST_FACTOR)


def part_of(application: Application, execution: int) -> Application | None:
    """The part of an application that belongs to one SQL query; None if it has no such query."""
    found: Execution | None = next((one for one in application.executions if one.id == execution), None)
    if found is None:
        return None
    stages = tuple(stage for stage in application.stages if stage.execution == execution)
    return replace(application, began=found.began, ended=found.ended, stages=stages, executions=(found,))


def ramp_of(application: Application) -> Ramp:
    """The ramp of dynamic allocation with the application's settings. A further executor needs as long as the first one
    did, and its first tasks last as much longer.
    """
    settings = application.settings
    backlog = seconds_in(settings.get("spark.dynamicAllocation.schedulerBacklogTimeout", "1s"), 1.0)
    sustained = seconds_in(settings.get("spark.dynamicAllocation.sustainedSchedulerBacklogTimeout", ""), backlog)
    first = min((one.at for one in application.executors), default=None)
    ready = application.driver_ready
    launch = 0 if first is None or ready is None else max(first - ready, 0)
    launch += _warm_up(application)
    return Ramp(backlog=round(backlog * 1000), sustained=max(round(sustained * 1000), 1), launch=launch)


def _warm_up(application: Application) -> int:
    """The milliseconds that the first tasks of an executor took longer than the others of their stage."""
    first = min((one for one in application.executors if one.slots > 0), key=lambda one: one.at, default=None)
    if first is None:
        return 0
    for stage in application.stages:
        if len(stage.tasks) > 2 * first.slots:
            return max(min(stage.tasks[: first.slots]) - round(median(stage.tasks)), 0)
    return 0


class _Times:
    """The seconds of an application by factor: never less than its share of the measured time, and never more than
    that. A greater factor never takes longer.
    """

    def __init__(self, application: Application, replay: Replay) -> None:
        self._measured, self._replay = application.seconds, replay
        self._base = max(replay.milliseconds(), 1)
        self._known: dict[int, int] = {}

    def seconds(self, factor: int) -> float:
        """The seconds with that factor, from 1 on."""
        if factor not in self._known:
            self._known[factor] = self._replay.milliseconds(factor)
        best = min(took for other, took in self._known.items() if other <= factor)
        share = min(max(best / self._base, 1 / (1 + factor)), 1.0)
        return self._measured * share


def _smallest_of_the_best(times: _Times) -> int:
    """The smallest factor within one percent of the time of the greatest factor."""
    enough = times.seconds(MOST_FACTOR) * _NEARLY_BEST
    low, high = 0, next(factor for factor in _TRIED if times.seconds(factor) <= enough)
    while high - low > 1:
        middle = (low + high) // 2
        if times.seconds(middle) <= enough:
            high = middle
        else:
            low = middle
    return high


def _invalid(application: Application, now: datetime) -> str | None:
    if application.ended is None:
        return "the event log has no end: the application runs, or was killed"
    ended = datetime.fromtimestamp(application.ended / 1000, UTC)
    if now - ended > OLDEST:
        return f"it ended at {ended:%Y-%m-%d %H:%M} UTC, more than {OLDEST.days} days ago"
    return None


def _was_accelerated(application: Application, replay: Replay) -> bool:
    """Whether the application had a scale factor, and more executors at a time than its base."""
    base = application.settings.get(BASE_SETTING, "")
    return FACTOR_SETTING in application.settings and base.isdecimal() and replay.executors > int(base)


def _reason(application: Application, replay: Replay, best: float) -> str:
    """The main reason why more executors save less than the least gain."""
    whole, slots = application.seconds, replay.slots
    if not application.stages:
        return "no stage ran"
    gain = f"100 times as many executors would save {1 - best / whole if whole else 0:.0%}, and 20% are needed"
    if all(len(stage.tasks) <= slots for stage in application.stages):
        return f"no stage has more tasks than the {slots} slots"
    alone = whole - _busy_seconds(application.stages)
    if alone > whole * _MOSTLY:
        return f"{gain}; no stage ran for {alone:.1f} of {whole:.1f} s"
    longest = max((took for stage in application.stages for took in stage.tasks), default=0) / 1000
    if longest > whole * _MOSTLY:
        return f"{gain}; a single task took {longest:.1f} of {whole:.1f} s"
    return f"{gain}; tasks waited for slots too briefly, compared with the start of further executors"


def _busy_seconds(stages: tuple[Stage, ...]) -> float:
    """The time in which at least one stage ran; the stages are in the order of their begin."""
    busy = until = 0
    for stage in stages:
        busy += max(stage.completed - max(stage.submitted, until), 0)
        until = max(until, stage.completed)
    return busy / 1000
