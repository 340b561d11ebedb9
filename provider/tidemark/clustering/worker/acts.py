"""Acts on clustered tables that a page offers, by the moves that commands and statements make."""

from __future__ import annotations

from tidemark.clustering.planning.states import TableHealth
from tidemark.clustering.worker.tables import resume_named, suspend_named
from tidemark.control.object_acts import ObjectAct

__all__ = ["CLUSTERED_TABLE_ACTS"]

_SUSPENDED = TableHealth.SUSPENDED.value

CLUSTERED_TABLE_ACTS = (
    ObjectAct(
        name="suspend",
        words="Suspend",
        loses="Nothing at once. A reclustering that runs ends first, and then the table gets deeper with each write.",
        command="airflow tidemark clustering suspend {name}",
        fits=lambda states, _: _SUSPENDED not in states,
        do=lambda step: suspend_named(step.guarded, step.name, why=step.why, by=step.who),
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Nothing: the next run that keeps tables clustered looks at it.",
        command="airflow tidemark clustering resume {name}",
        fits=lambda states, _: _SUSPENDED in states,
        do=lambda step: resume_named(step.guarded, step.name, by=step.who),
    ),
)
