"""The time of an application with more executors: its tasks, as long as they were measured, on more slots.

Tasks are given to free slots in the order of jobs and stages, as Spark's scheduler does without pools. A stage begins
after the stages on which it waited, with the same pause as measured. Further executors come as dynamic allocation
brings them: one, two, four at a time while tasks wait. They come after the time that an executor needs to start.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from operator import itemgetter

from tidemark.acceleration.model.applications import Application, Stage

__all__ = ["Ramp", "Replay", "replay_of"]

_FINISHED, _SLOTS, _ENDED, _RELEASED, _LOOKED = range(5)  # the order of events at the same time


@dataclass(frozen=True)
class Ramp:
    """The times of dynamic allocation in milliseconds. `backlog`: tasks wait so long for the first further executors.
    `sustained`: they wait so long for more. `launch`: from a request to the executor.
    """

    backlog: int = 1000
    sustained: int = 1000
    launch: int = 0


@dataclass(frozen=True)
class _Wait:
    """The stages that a stage waits for, by their places, and its pause after the last of them. Without stages it is
    the time at which the stage begins.
    """

    on: tuple[int, ...]
    pause: int


@dataclass(frozen=True)
class Replay:
    """An application, ready to be scheduled again. `executors`, `slots`: those that it had at most.

    `per_executor`: slots of an executor. `end`: the wait of the application's own end.
    """

    began: int
    stages: tuple[Stage, ...]
    waits: tuple[_Wait, ...]
    end: _Wait
    changes: tuple[tuple[int, int], ...]
    executors: int
    slots: int
    per_executor: int
    ramp: Ramp

    def milliseconds(self, factor: int = 0) -> int:
        """From begin to end with `factor` times as many executors beside those that there were."""
        return _Simulation(self, factor * self.executors).run()


def replay_of(application: Application, ramp: Ramp) -> Replay:
    """The application in the form in which it is scheduled again. It must have an end."""
    assert application.ended is not None
    stages = application.stages
    last = max((stage.completed for stage in stages), default=application.began)
    lived = [one for one in application.executors if one.slots > 0 or one.at <= last]
    executors, slots = _peak([1 if one.slots > 0 else -1 for one in lived]), _peak([one.slots for one in lived])
    done = sorted((stage.completed, place) for place, stage in enumerate(stages))
    return Replay(
        began=application.began,
        stages=stages,
        waits=_waits(stages, done),
        end=_after(done, application.ended, len(stages)) or _Wait((), application.ended - application.began),
        changes=tuple(_never_none((one.at, one.slots) for one in lived)),
        executors=executors,
        slots=slots,
        per_executor=max(slots // executors, 1) if executors else 1,
        ramp=ramp,
    )


def _peak(changes: list[int]) -> int:
    most = now = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most


def _never_none(changes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The changes, without a time at which no slot is left: the last executor leaves when the next one comes."""
    slots = owed = 0
    for at, change in changes:
        if slots + change <= 0:
            owed += change
            continue
        if change > 0:
            change, owed = max(change + owed, 0), 0
        slots += change
        yield at, change


def _waits(stages: tuple[Stage, ...], done: list[tuple[int, int]]) -> tuple[_Wait, ...]:
    """The waits of stages, by their places: for parents that ran; without one, for the stage that ended last before."""
    places: dict[int, int] = {}
    found: list[_Wait] = []
    for place, stage in enumerate(stages):
        on = [places[one] for one in stage.parents if one in places]
        ended = [stages[one].completed for one in on]
        if on and stage.attempt == 0 and max(ended) <= stage.submitted:
            found.append(_Wait(tuple(on), stage.submitted - max(ended)))
        else:
            found.append(_after(done, stage.submitted, place) or _Wait((), stage.submitted))
        places[stage.id] = place
    return tuple(found)


def _after(done: list[tuple[int, int]], at: int, before: int) -> _Wait | None:
    """The wait for the stage that ended last until `at`, of those with a place before `before`; None if none did."""
    for index in range(bisect_right(done, at, key=itemgetter(0)) - 1, -1, -1):
        completed, place = done[index]
        if place < before:
            return _Wait((place,), at - completed)
    return None


class _Simulation:
    """One schedule. Events are (time, kind, a number of its kind)."""

    def __init__(self, replay: Replay, extra: int) -> None:
        self.replay, self.left_to_add = replay, extra
        self.events: list[tuple[int, int, int]] = [(at, _SLOTS, slots) for at, slots in replay.changes]
        self.capacity = self.running = self.waiting_tasks = 0
        self.ready: list[tuple[int, int]] = []  # job, place of the stage
        self.started = [0] * len(replay.stages)
        self.unfinished = [len(stage.tasks) for stage in replay.stages]
        self.waits = [len(wait.on) for wait in replay.waits]
        self.followers: list[list[int]] = [[] for _ in replay.stages]
        self.ended: dict[int, int] = {}
        self.target, self.to_add, self.look = replay.executors, 1, 0  # `look`: the number of the expected look, or 0
        self.looks = 0
        for place, wait in enumerate(replay.waits):
            for other in wait.on:
                self.followers[other].append(place)
            if not wait.on:
                self.events.append((max(wait.pause, replay.began), _RELEASED, place))
        heapq.heapify(self.events)

    def run(self) -> int:
        """The milliseconds from begin to end."""
        acts = (self._finish, self._change, self._end, self._release, self._look)
        now = self.replay.began
        while self.events:
            now = max(now, self.events[0][0])
            while self.events and self.events[0][0] <= now:
                _, kind, number = heapq.heappop(self.events)
                acts[kind](now, number)
            self._start(now)
        return self._whole()

    def _whole(self) -> int:
        end = self.replay.end
        last = max((self.ended[place] for place in end.on), default=self.replay.began) + end.pause
        return max(last, *self.ended.values(), self.replay.began) - self.replay.began

    def _start(self, now: int) -> None:
        """Give free slots to waiting tasks; if some still wait, more executors are asked for after a while."""
        while self.ready and self.running < self.capacity:
            _, place = self.ready[0]
            task = self.started[place]
            tasks = self.replay.stages[place].tasks
            heapq.heappush(self.events, (now + tasks[task], _FINISHED, place))
            self.started[place] = task + 1
            self.running += 1
            self.waiting_tasks -= 1
            if task + 1 == len(tasks):
                heapq.heappop(self.ready)
        if not self.ready:
            self.look, self.to_add = 0, 1
        elif not self.look and self.left_to_add > 0:
            self._look_again(now + self.replay.ramp.backlog)

    def _look_again(self, at: int) -> None:
        self.looks += 1
        self.look = self.looks
        heapq.heappush(self.events, (at, _LOOKED, self.look))

    def _finish(self, now: int, place: int) -> None:
        self.running -= 1
        self.unfinished[place] -= 1
        if self.unfinished[place] == 0:
            heapq.heappush(self.events, (now + self.replay.stages[place].tail, _ENDED, place))

    def _change(self, now: int, slots: int) -> None:
        self.capacity += slots

    def _end(self, now: int, place: int) -> None:
        self.ended[place] = now
        for follower in self.followers[place]:
            self.waits[follower] -= 1
            if self.waits[follower] == 0:
                heapq.heappush(self.events, (now + self.replay.waits[follower].pause, _RELEASED, follower))

    def _release(self, now: int, place: int) -> None:
        stage = self.replay.stages[place]
        if not stage.tasks:
            heapq.heappush(self.events, (now + stage.completed - stage.submitted, _ENDED, place))
            return
        self.waiting_tasks += len(stage.tasks)
        heapq.heappush(self.ready, (stage.job, place))

    def _look(self, now: int, number: int) -> None:
        """Ask for executors, twice as many as before, while tasks wait and this many are needed."""
        if number != self.look:
            return
        needed = ceil((self.running + self.waiting_tasks) / self.replay.per_executor)
        more = max(min(self.to_add, self.left_to_add, needed - self.target), 0)
        if more:
            self.target += more
            self.left_to_add -= more
            heapq.heappush(self.events, (now + self.replay.ramp.launch, _SLOTS, more * self.replay.per_executor))
        self.to_add = self.to_add * 2 if more == self.to_add else 1
        self.look = 0
        if self.left_to_add > 0:
            self._look_again(now + self._turns_until_news(now, more) * self.replay.ramp.sustained)

    def _turns_until_news(self, now: int, more: int) -> int:
        """How many looks later there may be something to ask for: without a change a look finds what this one did."""
        if more or not self.events:
            return 1
        return max(ceil((self.events[0][0] - now) / self.replay.ramp.sustained), 1)
