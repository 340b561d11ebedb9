"""A replication whose log could not be read further continues from a position that a person names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from tidemark.control.store import ControlStore
from tidemark.errors import ReplicationRefused
from tidemark.replication.model.replication import Actor, LogPosition, Replication, ReplicationState
from tidemark.replication.planning.lifecycle import ObjectAct, begins_new_log
from tidemark.replication.planning.positions import NOW, position_text
from tidemark.replication.sources.open import Source
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import get_replication
from tidemark.replication.worker.discovery import Discovery, rediscover
from tidemark.replication.worker.preparing import PATIENCE

__all__ = ["Recovery", "plan_recovery", "recover_from"]


@dataclass(frozen=True)
class Recovery:
    """The plan of a recovery. `asked`: its position, None for `now`; `start`: the same, or the end of the source's log.
    `slot`: the position of the slot, None without one. `anew`: it begins a new event log. `acts`: what becomes of each
    object, by name.
    """

    replication: Replication
    asked: LogPosition | None
    start: LogPosition
    slot: LogPosition | None
    system_id: str
    anew: bool
    acts: Mapping[str, ObjectAct | None]
    discovery: Discovery

    @property
    def to_backfill(self) -> tuple[str, ...]:
        """The names of the objects that need a backfill then."""
        return tuple(name for name, act in self.acts.items() if act is not None)


def recover_from(
    store: ControlStore,
    name: str,
    *,
    position: str,
    source: Source,
    event_log: Callable[[str], str],
    by: Actor,
    keep: Collection[str] = (),
    patience: timedelta = PATIENCE,
    before_change: Callable[[], object] = lambda: None,
) -> Replication:
    """Continue from `position`: a place that the slot still has, or `now`, with a new slot, if the replication failed
    for good.

    The publication is recreated if it is gone. Positions of another cluster, and those behind the captured one, do not
    fit the event log. Then a new log is begun beside it, at the path that `event_log` answers. A second run from an
    explicit position changes nothing while nothing was captured since. `before_change`: called before the source is
    changed; it may raise. Raises ReplicationRefused and ObjectNotFound before the slot is touched. The cause is the
    state, an object in `keep` that cannot continue, or a position that the slot does not have. It may also be another
    recovery that came first. Raises InvalidArgument, SlotLost, SlotForeign, SlotBusy, SlotBlocked, ObjectNotReplicable,
    SourceUnreachable, SourceRefused.
    """
    if (done := _recovered(store, name, position, source)) is not None:
        return done
    found = plan_recovery(store, name, position=position, source=source, keep=keep)
    replication, asked, discovery, system_id = found.replication, found.asked, found.discovery, found.system_id
    before_change()
    source.publish(replication, discovery.selected)
    _require_untouched(store, found, source)
    start = _from_now(source, replication, patience) if asked is None else _from(source, replication, asked)
    anew = begins_new_log(replication, position=start, system_id=system_id)
    return lifecycle.recover(
        store,
        name,
        position=start,
        system_id=system_id,
        by=by,
        keep=keep,
        event_log=event_log(f"{replication.uid}-{start.commit.split('~')[0].lower()}") if anew else None,
        there=discovery.there,
    )


def plan_recovery(
    store: ControlStore, name: str, *, position: str, source: Source, keep: Collection[str] = ()
) -> Recovery:
    """The plan of `recover_from`; nothing is touched. Raises what that raises before it touches anything."""
    lifecycle.require_recoverable(store, name, keep=keep)
    replication = get_replication(store, name)
    asked = _asked(position, source, replication)
    _require_failed(replication, asked)
    system_id, end = source.system_id(), source.current_position(replication)
    start = asked or end
    anew = begins_new_log(replication, position=start, system_id=system_id)
    lifecycle.require_recoverable(store, name, keep=keep, anew=anew)
    slot = source.slot_position(replication)
    if asked is not None:
        _require_in_slot(replication, asked, slot, end, system_id)
    another = replication.system_id not in (None, system_id)
    discovery = rediscover(store, source, replication, by_name=another)
    acts = lifecycle.recovery_acts(store, name, keep=keep, anew=anew)
    return Recovery(replication, asked, start, slot, system_id, anew, acts, discovery)


def _asked(position: str, source: Source, replication: Replication) -> LogPosition | None:
    """None: now. Raises InvalidArgument."""
    return None if position.strip().lower() == NOW else source.parse_position(position, replication)


def _recovered(store: ControlStore, name: str, position: str, source: Source) -> Replication | None:
    """The replication, if it continues from that position already."""
    found = get_replication(store, name)
    asked = _asked(position, source, found)
    there = found.state is ReplicationState.RUNNING and asked is not None and found.captured == asked
    return found if there and found.system_id == source.system_id() else None


def _require_failed(replication: Replication, asked: LogPosition | None) -> None:
    """`now` throws a slot away, which is sound only where nothing can be read from it any more."""
    problem = None
    if replication.state not in (ReplicationState.FAILED, ReplicationState.FAILED_PERMANENTLY):
        problem = f"it is {replication.state}; only one that failed is recovered."
    elif asked is None and replication.state is ReplicationState.FAILED:
        problem = (
            "its last run failed, and the next one tries again. Nothing is lost while its slot exists, but "
            f"{NOW!r} would discard the slot. Run it, or recover it from an explicit position."
        )
    if problem is not None:
        raise ReplicationRefused(replication=replication.name, problem=problem)


def _from_now(source: Source, replication: Replication, patience: timedelta) -> LogPosition:
    """The old slot is of no use: the log that it still has is from before the new position."""
    source.drop_slot(replication)
    return source.make_slot(replication, patience=patience)


def _from(source: Source, replication: Replication, asked: LogPosition) -> LogPosition:
    """The slot gives what commits at or after `asked`, and lets go of what is before it."""
    source.advance(replication, asked)
    return asked


def _require_untouched(store: ControlStore, plan: Recovery, source: Source) -> None:
    """Raises ReplicationRefused if another recovery came between. Its slot must stay: what it has is read from there.
    Files of a binary log come and go by themselves.
    """
    now = get_replication(store, plan.replication.name)
    same = (now.state, now.captured) == (plan.replication.state, plan.replication.captured)
    if not same or not (now.kind.logs_by_file or source.slot_position(now) == plan.slot):
        problem = "another recovery came first, and its slot stays. Look at the state of the replication first."
        raise ReplicationRefused(replication=now.name, problem=problem)


def _require_in_slot(
    replication: Replication, asked: LogPosition, begins: LogPosition | None, end: LogPosition, system_id: str
) -> None:
    """Raises ReplicationRefused. Another cluster has no slot of ours; binary log files need none."""
    another = system_id != (replication.system_id or system_id) and not replication.kind.logs_by_file
    if begins is None or begins > asked or another:
        first = "the time of its recreation" if begins is None else position_text(begins)
        for_good = replication.state is ReplicationState.FAILED_PERMANENTLY
        remedy = f"Recover it from {NOW!r}." if for_good else "Its next run continues from there."
        wanted = position_text(asked)
        problem = (
            f"its slot {replication.slot} gives nothing before {first}, so {wanted} can no longer be read. {remedy}"
        )
        raise ReplicationRefused(replication=replication.name, problem=problem)
    if asked > end:
        problem = f"the source's log ends at {position_text(end)}, before {position_text(asked)}."
        raise ReplicationRefused(replication=replication.name, problem=problem)
