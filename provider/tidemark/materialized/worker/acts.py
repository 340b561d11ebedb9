"""Acts on materialized views and dynamic tables that a page offers, by the steps that commands and tasks call."""

from __future__ import annotations

from tidemark.control.object_acts import ObjectAct
from tidemark.control.object_revisions import Facts
from tidemark.materialized.planning.states import ViewState
from tidemark.materialized.worker.views import ask_for_refresh, drop_view, resume_view, suspend_view

__all__ = ["VIEW_ACTS"]

_STANDS = frozenset({ViewState.SUSPENDED.value, ViewState.BROKEN.value})


def _stands(states: frozenset[str], _: Facts) -> bool:
    return bool(states & _STANDS)


VIEW_ACTS = (
    ObjectAct(
        name="refresh",
        words="Ask for a refresh",
        loses="Nothing. It is not refreshed at once, since that takes Spark. The next run that refreshes due views "
        "includes it, at any lag. A run that names other views does not.",
        command="airflow tidemark views refresh {name} --by-next-run",
        fits=lambda states, facts: not _stands(states, facts),
        do=lambda step: ask_for_refresh(step.guarded, step.name, by=step.who),
    ),
    ObjectAct(
        name="suspend",
        words="Suspend",
        loses="Nothing at once. It is no longer refreshed, and dynamic tables that read it wait, too. If its tables "
        "forget their changes before it is resumed, it is then refreshed in full.",
        command="airflow tidemark views suspend {name} --why <reason>",
        fits=lambda states, facts: not _stands(states, facts),
        do=lambda step: suspend_view(step.guarded, step.name, why=step.why, by=step.who),
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Nothing: the next run that refreshes views includes it.",
        command="airflow tidemark views resume {name}",
        fits=_stands,
        do=lambda step: resume_view(step.guarded, step.name, by=step.who),
    ),
    ObjectAct(
        name="drop",
        words="Drop the view",
        loses="The view, and its position in its tables. Its kept table stays, as an ordinary table.",
        command="airflow tidemark views drop {name}",
        fits=lambda _states, _facts: True,
        do=lambda step: drop_view(step.guarded, step.name, by=step.who),
    ),
)
