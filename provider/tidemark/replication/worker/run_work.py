"""The objects that a run works at: some have tasks of their own, and one job applies the events of all others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.control.store import ControlStore
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.replication import ObjectState, ReplicatedObject
from tidemark.replication.planning.lifecycle import backfills
from tidemark.replication.planning.run_groups import WaitingObject, group_objects
from tidemark.replication.worker.concurrent_runs import find_concurrent_runs
from tidemark.replication.worker.definitions import get_replication
from tidemark.replication.worker.objects import is_due, objects_of, to_apply, to_work_at, work_of
from tidemark.replication.worker.objects import objects_named as look_up

__all__ = [
    "Share",
    "backfilled_by",
    "objects_alone",
    "objects_named",
    "objects_together",
    "waits_for_backfill",
]


@dataclass(frozen=True)
class Share:
    """The objects of a run or a task, by name. `left`: why others are left to another run, by their names. `groups`:
    those that share a task.
    """

    objects: tuple[ReplicatedObject, ...]
    left: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[tuple[ReplicatedObject, ...], ...] = ()

    @property
    def names(self) -> list[str]:
        """Each as `schema.table`."""
        return [one.name.text for one in self.objects]

    @property
    def tasks(self) -> list[str | list[str]]:
        """The name of each task's object, or the names of its objects."""
        named = ([one.name.text for one in group] for group in self.groups)
        return [names[0] if len(names) == 1 else names for names in named]


def objects_alone(store: ControlStore, name: str, *, key: TransactionKey, active_runs: int, most: int) -> Share:
    """The objects to which the run gives tasks of their own: to be backfilled, or failed when they were applied last.
    Of many objects the small ones share tasks (`groups`).

    An object that another run backfills is left to that run. `active_runs`: the number of runs that the DAG may have at
    a time. If all others do backfills, this run begins none, so that it can capture. Objects of more tasks than `most`
    wait for the next run. Raises ReplicationNotFound.
    """
    elsewhere = find_concurrent_runs(store, name, key=key)
    begins = backfills(get_replication(store, name).state)
    busy = active_runs > 1 and elsewhere.runs >= active_runs - 1
    mine, left = list[WaitingObject](), dict[str, str]()
    for stored in work_of(store, name):
        one = stored.object
        due = begins and is_due(one)
        if not due and one.problem is None:
            continue
        if one.uid in elsewhere.backfilled:
            left[one.name.text] = f"run {elsewhere.backfilled[one.uid]} backfills it"
        elif due and busy:
            left[one.name.text] = f"{elsewhere.runs} runs backfill others; a later run does it"
        else:
            mine.append(WaitingObject(one, stored.expected_rows, due))
    found = group_objects(mine, most=most)
    beyond = f"Airflow maps over {most} tasks at most; the next run does it"
    left |= {one.name.text: beyond for one in found.waiting}
    taken = {one.uid for group in found.groups for one in group}
    return Share(tuple(one.object for one in mine if one.object.uid in taken), left, found.groups)


def objects_together(store: ControlStore, name: str, *, key: TransactionKey, leave: Collection[str] = ()) -> Share:
    """The objects whose events can be applied now, without those of the names `leave`. An object that another run
    backfills or applies is left to that run. Raises ReplicationNotFound.
    """
    mine = tuple(one for one in to_apply(store, name) if one.name.text not in leave)
    return _without_those_of_others(store, name, mine, key=key)


def objects_named(store: ControlStore, name: str, names: Sequence[str], *, key: TransactionKey) -> Share:
    """These objects, also those that cannot be applied; else as `objects_together`. Raises ReplicationNotFound,
    ObjectNotFound.
    """
    mine = look_up(store, name, names)
    return _without_those_of_others(store, name, mine, key=key)


def _without_those_of_others(
    store: ControlStore, name: str, objects: Sequence[ReplicatedObject], *, key: TransactionKey
) -> Share:
    elsewhere = find_concurrent_runs(store, name, key=key)
    mine, left = list[ReplicatedObject](), dict[str, str]()
    for one in objects:
        if one.uid in elsewhere.backfilled:
            left[one.name.text] = f"run {elsewhere.backfilled[one.uid]} backfills it"
        elif one.uid in elsewhere.applied:
            left[one.name.text] = f"run {elsewhere.applied[one.uid]} applies it now, up to what was captured"
        else:
            mine.append(one)
    return Share(tuple(mine), left)


def backfilled_by(store: ControlStore, name: str, *, key: TransactionKey) -> tuple[str, ...]:
    """Names of objects that this run backfills now: a task of it was heard of. Raises ReplicationNotFound."""
    mine = find_concurrent_runs(store, name, key=key).mine
    return tuple(one.name.text for one in objects_of(store, name) if one.uid in mine)


def waits_for_backfill(store: ControlStore, name: str, *, key: TransactionKey) -> tuple[str, ...]:
    """Names of objects whose backfill is requested, and begun by no run. Raises ReplicationNotFound."""
    if not backfills(get_replication(store, name).state):
        return ()
    begun = find_concurrent_runs(store, name, key=key).backfilled
    pending = (one for one in to_work_at(store, name) if is_due(one) and one.state is ObjectState.PENDING)
    return tuple(one.name.text for one in pending if one.uid not in begun)
