"""Acts on consumer groups that a page offers, by the steps that commands call."""

from __future__ import annotations

from tidemark.change_streams.worker.groups import pause_group, resume_group
from tidemark.control.object_acts import ObjectAct

__all__ = ["GROUP_ACTS"]

GROUP_ACTS = (
    ObjectAct(
        name="pause",
        words="Pause",
        loses="Nothing at once. While it is paused the group gets nothing, and the log keeps records for the "
        "retention of the change stream only.",
        command="airflow tidemark consumer-groups pause {within} {name}",
        fits=lambda states, _: "paused" not in states,
        do=lambda step: pause_group(step.guarded, step.within, step.name),
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Nothing: waves continue where they were.",
        command="airflow tidemark consumer-groups resume {within} {name}",
        fits=lambda states, _: "paused" in states,
        do=lambda step: resume_group(step.guarded, step.within, step.name),
    ),
)
