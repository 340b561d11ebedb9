"""Which objects of a run have a task of their own, and which small ones share one.

A task is a process of Airflow's, and its job a start of Spark. A thousand small tables in a thousand tasks take hours
for starts alone, and Airflow maps over a limited number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.replication.model.replication import ObjectState, ReplicatedObject

__all__ = ["APART", "SMALL", "TOGETHER", "RunGroups", "WaitingObject", "group_objects"]

APART = 16
"""So many objects have a task each, of any size: each is seen in the graph, and stopped alone."""
SMALL = 10_000
"""Rows of a small object, by the statistics of the source."""
TOGETHER = 1000
"""Small objects in one task."""
FAILED_TOGETHER = 10
"""Small objects in one task whose last backfill failed: if one of them ends the job each time, few others wait."""


@dataclass(frozen=True)
class WaitingObject:
    """An object that a run has work for. `rows`: by statistics. `due`: to be backfilled; else it failed when it was
    applied last.
    """

    object: ReplicatedObject
    rows: int
    due: bool = True

    @property
    def is_small(self) -> bool:
        """Whether it may share a task."""
        return self.due and self.rows <= SMALL


@dataclass(frozen=True)
class RunGroups:
    """`groups`: the objects of each task. `waiting`: objects beyond the number of tasks, for the next run."""

    groups: tuple[tuple[ReplicatedObject, ...], ...]
    waiting: tuple[ReplicatedObject, ...] = ()


def group_objects(wanted: Sequence[WaitingObject], *, most: int) -> RunGroups:
    """At most `most` tasks. Few objects have a task each; of many, the small ones share tasks."""
    groups = tuple(_groups(wanted, min(APART, most)))
    beyond = (one for group in groups[max(most, 0) :] for one in group)
    return RunGroups(groups[: max(most, 0)], tuple(beyond))


def _groups(wanted: Sequence[WaitingObject], apart: int) -> Iterator[tuple[ReplicatedObject, ...]]:
    if len(wanted) <= apart:
        yield from ((one.object,) for one in wanted)
        return
    small = [one.object for one in wanted if one.is_small]
    failed = [one for one in small if one.state is ObjectState.FAILED]
    yield from _portions([one for one in small if one.state is not ObjectState.FAILED], TOGETHER)
    yield from ((one.object,) for one in wanted if not one.is_small)
    yield from _portions(failed, FAILED_TOGETHER)


def _portions(objects: Sequence[ReplicatedObject], size: int) -> Iterator[tuple[ReplicatedObject, ...]]:
    return (tuple(objects[start : start + size]) for start in range(0, len(objects), size))
