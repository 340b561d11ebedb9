"""Acts on pipes that a page offers, by the steps that commands and tasks call."""

from __future__ import annotations

from tidemark.control.object_acts import ObjectAct
from tidemark.pipes.model.pipes import PipeState
from tidemark.pipes.worker.definitions import drop_pipe, pause_pipe, resume_pipe

__all__ = ["PIPE_ACTS"]

_PAUSED = PipeState.PAUSED.value

PIPE_ACTS = (
    ObjectAct(
        name="pause",
        words="Pause",
        loses="Nothing at once. A run that has begun ends first. After a pause that is longer than the pipe's history, "
        "older files that came since are left out.",
        command="airflow tidemark pipes pause {name}",
        fits=lambda states, _: _PAUSED not in states,
        do=lambda step: pause_pipe(step.guarded, step.name, by=step.who),
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Nothing. It is refused after a pause that is longer than the pipe's history.",
        command="airflow tidemark pipes resume {name}",
        fits=lambda states, _: _PAUSED in states,
        do=lambda step: resume_pipe(step.guarded, step.name, by=step.who),
    ),
    ObjectAct(
        name="drop",
        words="Drop the pipe",
        loses="The pipe. Rows that it loaded stay, and so does its table of files.",
        command="airflow tidemark pipes drop {name}",
        fits=lambda _states, _facts: True,
        do=lambda step: drop_pipe(step.guarded, step.name, by=step.who),
    ),
)
