"""Which acts lead from which state to which, for a replication and for the backfill of an object.

An act that a state has no entry for is refused; one that leads to the same state is repeated without harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tidemark.errors import ReplicationRefused
from tidemark.replication.model.replication import (
    LogPosition,
    ObjectState,
    ReplicatedObject,
    Replication,
    ReplicationState,
)

__all__ = [
    "Act",
    "ObjectAct",
    "after",
    "applies",
    "backfills",
    "begins_new_log",
    "captures",
    "has_all",
    "holds_up_draining",
    "leads_to",
    "object_leads_to",
    "why_no_backfill",
    "why_not",
    "why_not_applied",
]

_S = ReplicationState
_O = ObjectState


class Act(StrEnum):
    """An act on a replication."""

    START = "start"
    VALIDATED = "validated"
    INVALID = "invalid"
    PAUSE = "pause"
    PAUSE_AT_ONCE = "pause at once"
    DRAINED = "drained"
    RESUME = "resume"
    FAILED = "failed"
    WENT_WELL = "went well"
    FAILED_PERMANENTLY = "failed permanently"
    RECOVER = "recover"


class ObjectAct(StrEnum):
    """An act on the backfill of an object."""

    REQUEST = "request"
    RESTART = "restart"
    BEGIN = "begin"
    COMPLETE = "complete"
    FAIL = "fail"
    STOP = "stop"
    LEAVE = "leave"  # the selection no longer names it
    REFUSE = "refuse"  # it cannot be replicated as it is now
    ALLOW = "allow"  # it can again; a backfill is requested, or not


def _same(*states: ReplicationState) -> dict[ReplicationState, ReplicationState]:
    return {state: state for state in states}


_LEADS: Mapping[Act, Mapping[ReplicationState, ReplicationState]] = {
    Act.START: {_S.NOT_STARTED: _S.STARTING, **_same(_S.STARTING, _S.RUNNING, _S.FAILED, _S.DRAINING)},
    Act.VALIDATED: {_S.STARTING: _S.RUNNING, **_same(_S.RUNNING, _S.FAILED, _S.DRAINING, _S.PAUSED)},
    Act.INVALID: {
        _S.STARTING: _S.NOT_STARTED,
        _S.RUNNING: _S.FAILED,
        **_same(_S.NOT_STARTED, _S.FAILED, _S.DRAINING, _S.PAUSED, _S.FAILED_PERMANENTLY),
    },
    Act.PAUSE: {_S.RUNNING: _S.DRAINING, _S.FAILED: _S.DRAINING, **_same(_S.DRAINING, _S.PAUSED)},
    Act.PAUSE_AT_ONCE: {_S.RUNNING: _S.PAUSED, _S.FAILED: _S.PAUSED, _S.DRAINING: _S.PAUSED, **_same(_S.PAUSED)},
    Act.DRAINED: {_S.DRAINING: _S.PAUSED, **_same(*(one for one in _S if one is not _S.DRAINING))},
    Act.RESUME: {_S.DRAINING: _S.RUNNING, _S.PAUSED: _S.RUNNING, **_same(_S.RUNNING, _S.FAILED)},
    Act.FAILED: {_S.RUNNING: _S.FAILED, **_same(*(one for one in _S if one is not _S.RUNNING))},
    Act.WENT_WELL: {_S.FAILED: _S.RUNNING, **_same(*(one for one in _S if one is not _S.FAILED))},
    Act.FAILED_PERMANENTLY: {
        _S.STARTING: _S.NOT_STARTED,
        **{one: _S.FAILED_PERMANENTLY for one in (_S.RUNNING, _S.FAILED, _S.DRAINING, _S.PAUSED)},
        **_same(_S.NOT_STARTED, _S.FAILED_PERMANENTLY),
    },
    Act.RECOVER: {_S.FAILED_PERMANENTLY: _S.RUNNING, _S.FAILED: _S.RUNNING},
}

_EVERY_OBJECT = tuple(_O)
_KNOWN = tuple(one for one in _O if one is not _O.UNSUPPORTED)

_OBJECT_LEADS: Mapping[ObjectAct, Mapping[ObjectState, ObjectState]] = {
    ObjectAct.REQUEST: {**{one: _O.PENDING for one in _KNOWN}, _O.ACTIVE: _O.ACTIVE},
    ObjectAct.RESTART: {one: _O.PENDING for one in _KNOWN},
    ObjectAct.BEGIN: {one: _O.ACTIVE for one in (_O.PENDING, _O.FAILED, _O.ACTIVE)},
    ObjectAct.COMPLETE: {
        _O.ACTIVE: _O.COMPLETED,
        _O.STOPPED: _O.COMPLETED,
        _O.FAILED: _O.COMPLETED,
        _O.PENDING: _O.PENDING,
    },
    ObjectAct.FAIL: {_O.ACTIVE: _O.FAILED, **{one: one for one in (_O.FAILED, _O.STOPPED, _O.PENDING)}},
    ObjectAct.STOP: {**{one: one for one in _O}, _O.PENDING: _O.STOPPED, _O.ACTIVE: _O.STOPPED},
    ObjectAct.LEAVE: {**{one: _O.STOPPED for one in _KNOWN}, _O.UNSUPPORTED: _O.UNSUPPORTED},
    ObjectAct.REFUSE: {one: _O.UNSUPPORTED for one in _EVERY_OBJECT},
    ObjectAct.ALLOW: {**{one: one for one in _O}, _O.UNSUPPORTED: _O.NOT_STARTED, _O.STOPPED: _O.NOT_STARTED},
}

_REFUSED = {
    _S.NOT_STARTED: "it has not been started",
    _S.STARTING: "it is being started",
    _S.RUNNING: "it is running",
    _S.DRAINING: "it is being paused: what was captured is applied first",
    _S.PAUSED: "it is paused; resume it",
    _S.FAILED: "its last run failed; the next one tries again",
    _S.FAILED_PERMANENTLY: "its log can no longer be read; recover it from an explicit position",
}


def leads_to(state: ReplicationState, act: Act) -> ReplicationState | None:
    """The state after the act; None where it is refused."""
    return _LEADS[act].get(state)


def object_leads_to(state: ObjectState, act: ObjectAct) -> ObjectState | None:
    """The state of the object after the act; None where it is refused."""
    return _OBJECT_LEADS[act].get(state)


def after(replication: Replication, act: Act) -> ReplicationState:
    """The state after the act. Raises ReplicationRefused."""
    to = leads_to(replication.state, act)
    if to is None:
        problem = f"{act.value} is refused: {why_not(replication)}."
        raise ReplicationRefused(replication=replication.name, problem=problem)
    return to


def why_not(replication: Replication) -> str:
    """The state in words, with its error."""
    said = _REFUSED[replication.state]
    return said if replication.error is None else f"{said} ({replication.error})"


def captures(state: ReplicationState) -> bool:
    """Whether a run puts new events into the event log."""
    return state in (_S.RUNNING, _S.FAILED)


def backfills(state: ReplicationState) -> bool:
    """Whether a run begins backfills."""
    return captures(state)


def applies(state: ReplicationState) -> bool:
    """Whether a run applies what was captured; also of a replication whose log cannot be read on."""
    return state in (_S.RUNNING, _S.FAILED, _S.DRAINING, _S.FAILED_PERMANENTLY)


def why_no_backfill(replicated: ReplicatedObject) -> str | None:
    """Why the object cannot be backfilled at all; None where it can."""
    if replicated.state is _O.UNSUPPORTED:
        return replicated.problem or "it cannot be replicated"
    if replicated.gone:
        return "the source no longer has it"
    if not replicated.selected:
        return "the selection no longer names it"
    return None


def why_not_applied(replicated: ReplicatedObject) -> str | None:
    """Why nothing can be applied to the object's target now; None where it can. An object that is gone in the source
    gets the rest of its events.
    """
    if replicated.state is _O.UNSUPPORTED:
        return replicated.problem or "it cannot be replicated"
    if not replicated.selected:
        return "the selection no longer names it"
    if replicated.state is _O.ACTIVE:
        return "its backfill is under way"
    if replicated.applied is None:
        return "it has not been backfilled"
    return replicated.needs_backfill


def has_all(replicated: ReplicatedObject, captured: LogPosition | None) -> bool:
    """Whether the target has every event before `captured`."""
    return captured is None or (replicated.applied is not None and replicated.applied >= captured)


def holds_up_draining(
    replicated: ReplicatedObject, captured: LogPosition | None, *, copying: bool, there: bool
) -> bool:
    """Whether a draining replication waits for this object: for its backfill that runs, or for events that can be
    applied to it. Others continue after the pause. `copying`: a backfill of it is open; `there`: its worker is heard
    of.
    """
    if copying or replicated.state is _O.ACTIVE:
        return there
    return why_not_applied(replicated) is None and not has_all(replicated, captured)


def begins_new_log(replication: Replication, *, position: LogPosition, system_id: str) -> bool:
    """Whether events captured from `position` on cannot continue in the event log. Its positions are of another
    cluster, or would come before the stored ones, as after a source was restored.
    """
    other = replication.system_id is not None and replication.system_id != system_id
    return other or (replication.captured is not None and position < replication.captured)
