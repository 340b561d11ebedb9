"""Acts on change streams and consumer groups that a page offers, by the steps that commands call."""

from __future__ import annotations

from functools import partial

from tidemark.change_streams.planning.starts import start_of
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.definitions import OpenLog, suspend
from tidemark.change_streams.worker.groups import drop_group, pause_group, reset_group, resume_group
from tidemark.control.act_fields import ActField, FieldType
from tidemark.control.object_acts import ActStep, ObjectAct
from tidemark.lake.delta_log import DeltaLog

__all__ = ["CHANGE_STREAM_ACTS", "GROUP_ACTS"]


def _open_log(step: ActStep) -> OpenLog:
    return partial(DeltaLog.open, options=step.tools.storage_options)


def _resume(step: ActStep) -> None:
    """Tables are looked for before the one write."""
    named = step.names("tables")
    defining.resume(
        step.guarded,
        step.name,
        watch=named[0] if len(named) == 1 else named,
        keys=step.names("keys") or None,
        tables=step.tools.lake,
        open_log=_open_log(step),
    )


CHANGE_STREAM_ACTS = (
    ObjectAct(
        name="suspend",
        words="Suspend",
        loses="The list of its tables, and all changes that are committed after its last capture, until it is resumed. "
        "Captured changes remain readable.",
        command="airflow tidemark change-streams suspend {name}",
        fits=lambda states, _: "suspended" not in states,
        do=lambda step: suspend(step.guarded, step.name, open_log=_open_log(step)),
        beyond=True,
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Changes that were committed while it was suspended. It watches each table from its newest version on.",
        command="airflow tidemark change-streams resume {name} --on <table>",
        fits=lambda states, _: "suspended" in states,
        do=_resume,
        beyond=True,
        fields=(
            ActField(
                "tables",
                "Tables to watch",
                FieldType.NAMES,
                "--on",
                help="Names, with commas or line breaks between them, or ALL.",
                required=True,
            ),
            ActField(
                "keys",
                "The primary key of the only table",
                FieldType.NAMES,
                "--key",
                help="Columns, with commas or line breaks between them, if the table does not say its own.",
            ),
        ),
    ),
    ObjectAct(
        name="drop",
        words="Drop the change stream",
        loses="The change stream, its records and its consumer groups. Records that groups delivered stay in their "
        "targets.",
        command="airflow tidemark change-streams drop {name}",
        fits=lambda _states, _facts: True,
        do=lambda step: defining.drop(step.guarded, step.name, step.tools.storage_options),
        beyond=True,
    ),
)

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
    ObjectAct(
        name="reset",
        words="Deliver again",
        loses="Nothing. Targets get the records again, as from another reader, and so does a function.",
        command="airflow tidemark consumer-groups reset {within} {name} --from <point>",
        fits=lambda _states, _facts: True,
        do=lambda step: reset_group(step.guarded, step.within, step.name, start_of("start", step.text("start"))),
        fields=(
            ActField(
                "start",
                "From which point",
                FieldType.TEXT,
                "--from",
                help="earliest, now, or a time with a zone that is within the retention of the change stream.",
                required=True,
            ),
        ),
    ),
    ObjectAct(
        name="drop",
        words="Drop the group",
        loses="The group and its position. Records that it delivered stay in their targets.",
        command="airflow tidemark consumer-groups drop {within} {name}",
        fits=lambda _states, _facts: True,
        do=lambda step: drop_group(step.guarded, step.within, step.name),
    ),
)
