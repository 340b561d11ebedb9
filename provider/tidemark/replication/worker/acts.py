"""Acts on replications and their tables that a page offers, by the steps that commands and tasks call."""

from __future__ import annotations

from datetime import timedelta

from tidemark.control.act_fields import ActField, FieldType
from tidemark.control.object_acts import ActStep, ObjectAct
from tidemark.control.object_revisions import Facts
from tidemark.errors import ActUnfinished, ReplicationError, ReplicationRefused
from tidemark.replication.model.replication import Actor, ObjectState, ReplicationState
from tidemark.replication.worker.definitions import begin_drop, get_replication
from tidemark.replication.worker.ending import end_replication
from tidemark.replication.worker.lifecycle import let_drain, resume
from tidemark.replication.worker.objects import can_be_backfilled, request_backfill, stop_backfill
from tidemark.replication.worker.recovering import recover_from

__all__ = ["REPLICATED_TABLE_ACTS", "REPLICATION_ACTS"]

_RUNS = frozenset({ReplicationState.RUNNING.value, ReplicationState.FAILED.value})
_STANDS = frozenset({ReplicationState.DRAINING.value, ReplicationState.PAUSED.value})
_FAILED = frozenset({ReplicationState.FAILED.value, ReplicationState.FAILED_PERMANENTLY.value})
_BEGUN = _RUNS | _STANDS | _FAILED
_DUE = frozenset({ObjectState.PENDING.value, ObjectState.ACTIVE.value})
_MAY_BE_COPIED = frozenset(one.value for one in ObjectState if one is not ObjectState.UNSUPPORTED) - _DUE
_SLOT = timedelta(seconds=20)  # for a new slot: the page waits no longer for an act than 30 seconds


def _within(states: frozenset[str], wanted: frozenset[str]) -> bool:
    return bool(states & wanted)


def _runs(states: frozenset[str], _: Facts) -> bool:
    return _within(states, _RUNS)


def _stands(states: frozenset[str], _: Facts) -> bool:
    return _within(states, _STANDS)


def _by(step: ActStep) -> Actor:
    return Actor(who=step.who, why=step.why)


def _recover(step: ActStep) -> None:
    """The source is asked, and its slot made or moved, before the one write. Once that begins, the write follows."""
    replication = get_replication(step.store, step.name)
    recover_from(
        step.guarded,
        step.name,
        position=step.text("position"),
        source=step.tools.source(replication),
        event_log=step.tools.event_log,
        by=_by(step),
        keep=step.names("keep"),
        patience=_SLOT,
        before_change=step.before_change,
    )


def _backfill_tables(step: ActStep) -> None:
    tables = step.names("tables")
    if not tables:
        tables, refused = can_be_backfilled(step.store, step.name)
        if not tables:
            problem = "; ".join(f"{name}: {why}" for name, why in refused.items()) or "it has no table"
            raise ReplicationRefused(replication=step.name, problem=f"no table can be backfilled: {problem}.")
    request_backfill(step.guarded, step.name, tables, by=_by(step))


def _drop(step: ActStep) -> None:
    """The one write lets nothing begin any more. A second drop does the rest, if this one cannot. Without a connection
    to the source none begins. Raises ActUnfinished.
    """
    leave = step.flag("without_source")
    source = None if leave else step.tools.source(get_replication(step.store, step.name))
    begin_drop(step.guarded, step.name, by=_by(step))
    try:
        end_replication(
            step.store,
            step.name,
            by=_by(step),
            source=None if source is None else lambda _: source,
            storage_options=step.tools.storage_options,
        )
    except ReplicationError as error:
        raise ActUnfinished(act="drop", kind="replication", name=step.name, problem=str(error)) from error


REPLICATION_ACTS = (
    ObjectAct(
        name="pause",
        words="Pause",
        loses="Nothing at once. Nothing new is captured, and what was captured is still applied. Until it is resumed, "
        "the source keeps its log for it, which may fill its disk.",
        command="airflow tidemark replications pause {name} --why <reason>",
        fits=_runs,
        do=lambda step: let_drain(step.guarded, step.name, by=_by(step), at_once=step.flag("at_once")),
        fields=(
            ActField(
                "at_once",
                "Stop applying, too",
                FieldType.FLAG,
                "--at-once",
                help="Captured events are applied after it is resumed.",
            ),
        ),
    ),
    ObjectAct(
        name="resume",
        words="Resume",
        loses="Nothing: the next run continues from the captured position.",
        command="airflow tidemark replications resume {name} --why <reason>",
        fits=_stands,
        do=lambda step: resume(step.guarded, step.name, by=_by(step)),
    ),
    ObjectAct(
        name="recover",
        words="Recover",
        loses="Changes that were committed before the position and not captured are lost. So its tables are backfilled "
        "again, and each is behind until that has ended. With `now`, its old slot is dropped in the source.",
        command="airflow tidemark replications recover {name} --from <position> --why <reason>",
        fits=lambda states, _: _within(states, _FAILED),
        do=_recover,
        beyond=True,
        fields=(
            ActField(
                "position",
                "From which position",
                FieldType.TEXT,
                "--from",
                help="now, or a position as the source writes it, such as 16/B374D848. If the replication tries again "
                "by itself, only an explicit position is taken.",
                required=True,
            ),
            ActField(
                "keep",
                "Tables that are not backfilled again",
                FieldType.NAMES,
                "--keep",
                help="schema.table, with commas or line breaks between them. Name only tables that have lost nothing.",
            ),
        ),
    ),
    ObjectAct(
        name="backfill",
        words="Backfill its tables",
        loses="Nothing. The next run that captures reads these tables of the source again, in full. Each target is "
        "behind until its backfill has ended.",
        command="airflow tidemark replications backfill {name} --all --why <reason>",
        fits=lambda states, _: _within(states, _BEGUN),
        do=_backfill_tables,
        fields=(
            ActField(
                "tables",
                "Tables of the source",
                FieldType.NAMES,
                "TABLE",
                help="schema.table, with commas or line breaks between them. Without any, all that can be backfilled.",
            ),
        ),
    ),
    ObjectAct(
        name="drop",
        words="Drop the replication",
        loses="The replication, its slot, its publication and its event log, with what was captured and not applied. "
        "Its targets stay.",
        command="airflow tidemark replications drop {name} --why <reason>",
        fits=lambda _states, _facts: True,
        do=_drop,
        beyond=True,
        fields=(
            ActField(
                "without_source",
                "The source is gone for good",
                FieldType.FLAG,
                "--without-source",
                help="Nothing is dropped in it.",
            ),
        ),
    ),
)


def _request(step: ActStep, *, restart: bool) -> None:
    request_backfill(step.guarded, step.within, [step.name], by=_by(step), restart=restart)


REPLICATED_TABLE_ACTS = (
    ObjectAct(
        name="backfill",
        words="Backfill it",
        loses="Nothing. The next run that captures reads the table of the source again, in full. The target is behind "
        "until that has ended.",
        command="airflow tidemark replications backfill {within} {name} --why <reason>",
        fits=lambda states, _: _within(states, _MAY_BE_COPIED),
        do=lambda step: _request(step, restart=False),
    ),
    ObjectAct(
        name="restart",
        words="Restart its backfill",
        loses="All rows that the running backfill has copied so far. Its worker ends its job, and the next run begins "
        "with the first row.",
        command="airflow tidemark replications backfill {within} {name} --action restart --why <reason>",
        fits=lambda states, _: ObjectState.ACTIVE.value in states,
        do=lambda step: _request(step, restart=True),
    ),
    ObjectAct(
        name="stop",
        words="Stop its backfill",
        loses="All rows that the backfill has copied so far. The target is not written to until the next backfill.",
        command="airflow tidemark replications backfill {within} {name} --action stop --why <reason>",
        fits=lambda states, _: _within(states, _DUE),
        do=lambda step: stop_backfill(step.guarded, step.within, [step.name], by=_by(step)),
    ),
)
