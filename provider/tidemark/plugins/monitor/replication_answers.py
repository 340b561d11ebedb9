"""The answers of the page's routes about replications, made of what the store says. Times are UTC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tidemark.plugins.monitor.actors import Actor, actor, actor_of_act
from tidemark.plugins.monitor.owned import OF_OTHERS, actor_for_reader, is_of_others
from tidemark.replication.model.recorded_errors import RecordedError
from tidemark.replication.model.replication import BackfillProgress, ReplicationTransition
from tidemark.replication.planning.positions import position_text
from tidemark.replication.worker.status import Alert, ObjectStatus, ReplicationStatus

__all__ = [
    "ErrorAnswer",
    "ObjectAnswer",
    "ProgressAnswer",
    "ReplicationAnswer",
    "ReplicationDetails",
    "ReplicationTransitionAnswer",
    "ReplicationsAnswer",
    "error_answer",
    "moved_keys",
    "object_answer",
    "replication_answer",
    "replication_transition_answer",
]

ALERTS = 20
FOR_OTHERS = "only readers of a run's DAG see its errors"


@dataclass(frozen=True)
class ProgressAnswer:
    """The last backfill: `done` rows. `expected`, `percent` go by the source's statistics, None if they say nothing."""

    done: int
    expected: int | None
    percent: float | None
    at: datetime


@dataclass(frozen=True)
class ObjectAnswer:
    """One object. `state`: of its backfill. `needs_backfill`: why it needs another one. `problem`: what the last run
    met, if that is not the same. Those who may not read the DAGs of the runs learn that there is something, and not
    what. `behind`: events were captured that are not applied.
    """

    uid: str
    name: str
    target: str
    state: str
    progress: ProgressAnswer | None
    lag_seconds: float | None
    behind: bool
    needs_backfill: str | None
    problem: str | None
    selected: bool
    gone: bool


@dataclass(frozen=True)
class ReplicationAnswer:
    """One replication. `objects`: those that are selected, `behind` of them are. `backfills`: how many objects are in
    each state. `alerts`: the worst of `alert_count`.
    """

    uid: str
    name: str
    state: str
    kind: str
    source: str
    objects: int
    behind: int
    backfills: Mapping[str, int]
    lag_seconds: float | None
    lag_bytes: int
    captured_at: datetime | None
    alerts: tuple[str, ...]
    alert_count: int


@dataclass(frozen=True)
class ReplicationsAnswer:
    """One page of replications, by name. `store`: `absent` if no task has made the control store yet. `cursor`: for the
    page that follows; None on the last one.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    total: int
    limit: int
    offset: int
    cursor: str | None
    replications: tuple[ReplicationAnswer, ...]


@dataclass(frozen=True)
class ReplicationTransitionAnswer:
    """A move of the replication, or of one of its objects. `position`: where it led to, as the source writes it.
    Persons and reasons are for those who may read the DAGs that own the replication and the object.
    """

    moved_at: datetime
    object: str | None
    act: str
    before: str
    after: str
    position: str | None
    why: str
    who: Actor


@dataclass(frozen=True)
class ErrorAnswer:
    """An error that was met `count` times. `reason`: the name of its class. Those who may not read the run's DAG learn
    that there is one, and not what it says.
    """

    object: str | None
    reason: str
    message: str
    count: int
    first_seen: datetime
    last_seen: datetime
    who: Actor | None


@dataclass(frozen=True)
class ReplicationDetails:
    """A replication with one page of its objects, the worst first, out of `total` that fit the search. It also has its
    newest moves and errors, newest first. `older_moves`, `older_errors`: there are more, which its history has.
    `cursor`: for the page that follows; None on the last one.
    """

    connection: str
    now: datetime
    replication: ReplicationAnswer
    target: str
    mode: str
    event_log: str
    slot: str
    publication: str
    created_at: datetime
    total: int
    limit: int
    offset: int
    cursor: str | None
    objects: tuple[ObjectAnswer, ...]
    moves: tuple[ReplicationTransitionAnswer, ...]
    older_moves: bool
    errors: tuple[ErrorAnswer, ...]
    older_errors: bool


def replication_answer(status: ReplicationStatus, readable: Collection[str]) -> ReplicationAnswer:
    """The state of the replication as a whole. Errors are shown as those of streams are: to those who may read the
    runs' DAGs.
    """
    replication = status.replication
    return ReplicationAnswer(
        uid=replication.uid,
        name=replication.name,
        state=replication.state.value,
        kind=replication.kind.value,
        source=replication.source_conn_id,
        objects=len(status.selected),
        behind=status.behind,
        backfills=status.backfills,
        lag_seconds=status.lag_seconds,
        lag_bytes=status.lag_bytes,
        captured_at=replication.captured_at,
        alerts=tuple(_alert_text(alert, status, readable) for alert in status.raised[:ALERTS]),
        alert_count=len(status.raised),
    )


def object_answer(status: ObjectStatus, of: ReplicationStatus, readable: Collection[str]) -> ObjectAnswer:
    """One object, as the store knows it."""
    one = status.object
    shown = _may_read_errors(of, one.uid, readable)
    problem = None if one.problem == one.needs_backfill else one.problem
    return ObjectAnswer(
        uid=one.uid,
        name=one.name.text,
        target=one.target.name,
        state=one.state.value,
        progress=None if one.progress is None else _progress(one.progress),
        lag_seconds=status.lag_seconds,
        behind=status.behind,
        needs_backfill=one.needs_backfill if shown or one.needs_backfill is None else FOR_OTHERS,
        problem=problem if shown or problem is None else FOR_OTHERS,
        selected=one.selected,
        gone=one.gone,
    )


def replication_transition_answer(
    move: ReplicationTransition,
    names: Mapping[str, str],
    readable: Collection[str],
    owners: Mapping[tuple[str, str], str | None],
) -> ReplicationTransitionAnswer:
    """A kept move. `names`: of objects by their uids. `owners`: see `moved_keys`."""
    hidden = is_of_others([owners.get(key) for key in moved_keys(move)], readable)
    return ReplicationTransitionAnswer(
        moved_at=move.at,
        object=None if move.object_uid is None else names.get(move.object_uid, move.object_uid),
        act=move.act,
        before=move.before,
        after=move.after,
        position=None if move.position is None else position_text(move.position),
        why=OF_OTHERS if hidden else move.by.why,
        who=actor_for_reader(actor_of_act(move.by.who, move.by.run, readable), hidden=hidden),
    )


def moved_keys(move: ReplicationTransition) -> tuple[tuple[str, str], ...]:
    """Kind and uid of the objects that a move is of. Their owners decide who may know its person and its reason."""
    replication = ("replication", move.replication_uid)
    return (replication,) if move.object_uid is None else (replication, ("replicated_table", move.object_uid))


def error_answer(error: RecordedError, of: ReplicationStatus, readable: Collection[str]) -> ErrorAnswer:
    """An entry of the list of errors."""
    who = None if error.run is None else actor(error.run, readable)
    shown = _may_read_errors(of, error.object_uid, readable) if who is None else who.kind != "hidden"
    message = error.message if shown else FOR_OTHERS
    return ErrorAnswer(error.object, error.reason, message, error.count, error.first_seen, error.last_seen, who)


def _alert_text(alert: Alert, status: ReplicationStatus, readable: Collection[str]) -> str:
    if alert.error is None or _may_read_errors(status, alert.object_uid, readable):
        return alert.text
    return f"{alert.words}: {FOR_OTHERS}"


def _may_read_errors(status: ReplicationStatus, object_uid: str | None, readable: Collection[str]) -> bool:
    """Whether the DAGs of the object's runs may all be read. These runs moved the object or the replication last, or
    write the object. If none of them is known, all runs that did anything to the replication count. Without any, nobody
    is known who may.
    """
    own = (status.last_runs.get(None), status.last_runs.get(object_uid), status.open_runs.get(object_uid or ""))
    runs = {run for run in own if run is not None} or {*status.last_runs.values(), *status.open_runs.values()}
    return bool(runs) and all(actor(str(run), readable).kind != "hidden" for run in runs)


def _progress(progress: BackfillProgress) -> ProgressAnswer:
    known = progress.expected > 0
    return ProgressAnswer(
        done=progress.done,
        expected=progress.expected if known else None,
        percent=round(progress.percent, 1) if known else None,
        at=progress.at,
    )
