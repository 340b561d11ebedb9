"""Pausing, resuming and recovering replications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.hooks.replication import event_log_path, source_of
from tidemark.operators._base import flag_of
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import (
    Names,
    ReplicationOperator,
    by_of,
    names_of,
    place_text,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.replication.model.replication import Replication

__all__ = ["PauseReplicationOperator", "RecoverReplicationOperator", "ResumeReplicationOperator"]


class PauseReplicationOperator(ReplicationOperator):
    """Lets a replication drain: nothing new is captured, what was captured is still applied, then it is paused.
    The next run applies; where there is nothing left it is paused at once. No Spark.

    The slot stays, so nothing is lost, and the source keeps its log for as long as the pause lasts. A second run
    changes nothing. Returns {replication, state, captured}. Raises ReplicationNotFound, ReplicationRefused.

    :param replication: its name. (templated)
    :param at_once: stop applying, too; captured events are applied after it is resumed. (templated)
    :param why: a reason, which the history keeps. (templated)
    """

    template_fields: Sequence[str] = ("replication", "at_once", "why", "conn_id")

    def __init__(self, *, replication: str, at_once: bool | str = False, why: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.at_once = at_once
        self.why = why
        check_constants(self, at_once=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """Its state after it: draining, or paused."""
        from tidemark.replication.worker.lifecycle import let_drain

        at_once = flag_of("at_once", self.at_once)
        after = let_drain(self.hook.open_store(), self.replication, by=by_of(context, self.why), at_once=at_once)
        self.log.info("Replication %s is %s.", after.name, after.state)
        return _report(after)


class ResumeReplicationOperator(ReplicationOperator):
    """Lets a paused or draining replication run on from where it was captured. No Spark; the next run captures.

    A second run changes nothing. Returns {replication, state, captured}. Raises ReplicationNotFound,
    ReplicationRefused.

    :param replication: its name. (templated)
    :param why: a reason, which the history keeps. (templated)
    """

    template_fields: Sequence[str] = ("replication", "why", "conn_id")

    def __init__(self, *, replication: str, why: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.why = why

    def execute(self, context: Context) -> dict[str, Any]:
        """Its state after it."""
        from tidemark.replication.worker.lifecycle import resume

        after = resume(self.hook.open_store(), self.replication, by=by_of(context, self.why))
        self.log.info("Replication %s is %s.", after.name, after.state)
        return _report(after)


class RecoverReplicationOperator(ReplicationOperator):
    """Lets a failed replication continue from an explicit position. After a permanent failure there is no other way. No
    Spark.

    Commits before the position that were not captured are lost, so every object needs a backfill. The next run does
    those that happen without a request. The objects that `keep` names continue as they are. `now` drops its slot and
    creates a new one. It is refused if only the last run failed: nothing is lost then, and the next run tries again. A
    position can only be one that the slot still has. A second run changes nothing for a position; `now` is another time
    then. Returns {replication, state, captured}. Raises ReplicationNotFound, ReplicationRefused, ObjectNotFound,
    ObjectNotReplicable, SlotLost, SlotBlocked, SlotBusy, SlotForeign, SourceUnreachable, SourceRefused,
    InvalidArgument.

    :param replication: its name. (templated)
    :param position: `now`, or a position as the source and tasks write it: `16/B374D848`. The stored form works, too.
        (templated)
    :param keep: `schema.table` of objects that are not backfilled again. (templated)
    :param why: a reason, which the history keeps. (templated)
    """

    template_fields: Sequence[str] = ("replication", "position", "keep", "why", "conn_id")

    def __init__(self, *, replication: str, position: str, keep: Names = None, why: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.position = position
        self.keep = keep
        self.why = why
        check_constants(self, position=_require_position, keep=names_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The position from which it continues."""
        from tidemark.replication.worker.definitions import get_replication
        from tidemark.replication.worker.recovering import recover_from

        store = self.hook.open_store()
        replication = get_replication(store, self.replication)
        after = recover_from(
            store,
            replication.name,
            position=self.position,
            source=source_of(replication),
            keep=names_of("keep", self.keep),
            event_log=event_log_path(self.hook),
            by=by_of(context, self.why),
        )
        self.log.warning("Replication %s continues from %s.", after.name, place_text(after.captured))
        return _report(after)


def _require_position(_: str, value: str) -> None:
    """As the source reads it. Raises InvalidArgument."""
    from tidemark.replication.planning.debezium_marks import BEGINNING
    from tidemark.replication.planning.positions import NOW, require_position

    if str(value).strip().lower() not in (NOW, BEGINNING):
        require_position(str(value))


def _report(replication: Replication) -> dict[str, Any]:
    return {
        "replication": replication.name,
        "state": replication.state.value,
        "captured": place_text(replication.captured),
    }
