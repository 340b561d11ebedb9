"""Acts on replications that a page offers, by the steps that commands and tasks call."""

from __future__ import annotations

from tidemark.control.object_acts import ActStep, ObjectAct
from tidemark.control.object_revisions import Facts
from tidemark.replication.model.replication import Actor, ReplicationState
from tidemark.replication.worker.lifecycle import let_drain, resume

__all__ = ["REPLICATION_ACTS"]

_RUNS = frozenset({ReplicationState.RUNNING.value, ReplicationState.FAILED.value})
_STANDS = frozenset({ReplicationState.DRAINING.value, ReplicationState.PAUSED.value})


def _runs(states: frozenset[str], _: Facts) -> bool:
    return bool(states & _RUNS)


def _stands(states: frozenset[str], _: Facts) -> bool:
    return bool(states & _STANDS)


def _by(step: ActStep) -> Actor:
    return Actor(who=step.who, why=step.why)


REPLICATION_ACTS = (
    ObjectAct(
        name="pause",
        words="Pause",
        loses="Nothing at once. Nothing new is captured, and what was captured is still applied. The source keeps its "
        "log for it meanwhile, which may fill its disk.",
        command="airflow tidemark replications pause {name} --why TEXT",
        fits=_runs,
        do=lambda step: let_drain(step.guarded, step.name, by=_by(step)),
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Nothing: the next run captures on from where it was captured.",
        command="airflow tidemark replications resume {name} --why TEXT",
        fits=_stands,
        do=lambda step: resume(step.guarded, step.name, by=_by(step)),
    ),
)
