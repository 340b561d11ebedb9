"""Waiting until objects of a replication are backfilled, or for its lag to be small, or large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.operators._base import flag_of, seconds_of, whole_number_of
from tidemark.operators._constants import check_constants, is_constant
from tidemark.operators._error_log import useful_line_first
from tidemark.operators._replication import names_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.replication.model.replication import ReplicatedObject
    from tidemark.replication.worker.status import ObjectStatus, ReplicationStatus

__all__ = ["BackfillDoneSensor", "ReplicationLagSensor"]

Names = str | Sequence[str] | None


class _ReplicationSensor(BaseSensorOperator):
    """Looks at the control store alone, and never starts a JVM. Each look is a fresh one."""

    ui_color = "#d8eef0"

    def __init__(
        self, *, replication: str, objects: Names = None, conn_id: str = DEFAULT_CONN_ID, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.objects = objects
        self.conn_id = conn_id
        check_constants(self, objects=names_of)

    @useful_line_first
    def execute(self, context: Context) -> Any:
        """As every sensor."""
        return super().execute(context)

    def _status(self) -> tuple[ReplicationStatus, tuple[ObjectStatus, ...]]:
        """The status of the replication and of the requested objects, without those that are gone, unsupported or no
        longer selected. Raises ReplicationNotFound, ObjectNotFound.
        """
        from tidemark.replication.planning.lifecycle import why_no_backfill
        from tidemark.replication.worker.objects import get_object
        from tidemark.replication.worker.status import describe

        store = TidemarkHook(self.conn_id).open_store()
        status = describe(store, self.replication)
        asked = {get_object(store, self.replication, name).uid for name in names_of("objects", self.objects)}
        replicated = (one for one in status.objects if why_no_backfill(one.object) is None)
        return status, tuple(one for one in replicated if not asked or one.object.uid in asked)


class BackfillDoneSensor(_ReplicationSensor):
    """Succeeds when every object, or those that are named, is backfilled. Returns their names.

    It also waits for an object whose backfill failed or was stopped, as the next run may do it. `fail_on` names states
    that fail instead. An object that needs no backfill is done. An object that cannot be replicated, is gone, or is not
    selected any more, is not waited for. If there is nothing to wait for, it is not done. Raises ReplicationNotFound,
    ObjectNotFound, BackfillInterrupted, InvalidArgument.

    :param replication: its name. (templated)
    :param objects: `schema.table`, or a list of them; None: all. (templated)
    :param fail_on: states of a backfill that end the wait with an error: `failed`, `stopped`. (templated)
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("replication", "objects", "fail_on", "conn_id")

    def __init__(self, *, replication: str, objects: Names = None, fail_on: Names = None, **kwargs: Any) -> None:
        super().__init__(replication=replication, objects=objects, **kwargs)
        self.fail_on = fail_on
        check_constants(self, fail_on=_states_of)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether they are done now."""
        _, waited_for = self._status()
        self._require_hope(waited_for)
        left = [one for one in waited_for if not _has_target(one.object)]
        for one in left:
            progress = one.object.progress
            share = "" if progress is None else f", {progress.done} rows, {progress.percent:.0f} %"
            self.log.info("%s: %s%s", one.object.name.text, one.object.state, share)
        return PokeReturnValue(
            is_done=bool(waited_for) and not left, xcom_value=[one.object.name.text for one in waited_for]
        )

    def _require_hope(self, waited_for: Sequence[ObjectStatus]) -> None:
        from tidemark.errors import BackfillInterrupted

        ending = _states_of("fail_on", self.fail_on)
        for one in waited_for:
            if one.object.state.value in ending:
                problem = one.object.problem or f"it is {one.object.state}"
                raise BackfillInterrupted(object=one.object.name.text, problem=problem)


class ReplicationLagSensor(_ReplicationSensor):
    """Succeeds when a replication is behind: no capture for `lag_seconds`, or more than `lag_bytes` of the source's log
    since the last one. A target that shows a state of the source older than `lag_seconds` counts, too. With `below` it
    waits for the opposite: until all of it is within the limits.

    Returns {replication, state, captured, lag_seconds, lag_bytes, alerts, objects}. An object that has no target yet
    counts as behind, and so does the log before the start. An object that is unsupported, gone or no longer selected
    does not count. Raises ReplicationNotFound, ObjectNotFound, InvalidArgument.

    :param replication: its name. (templated)
    :param lag_seconds: the limit, in seconds; None: none. (templated)
    :param lag_bytes: the limit, in bytes; None: none. (templated)
    :param below: wait until it is within the limits. (templated)
    :param objects: the objects to check: `schema.table`, or a list of them; None: all. (templated)
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    template_fields: Sequence[str] = ("replication", "lag_seconds", "lag_bytes", "below", "objects", "conn_id")

    def __init__(
        self,
        *,
        replication: str,
        lag_seconds: float | str | None = None,
        lag_bytes: int | str | None = None,
        below: bool | str = False,
        objects: Names = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(replication=replication, objects=objects, **kwargs)
        self.lag_seconds = lag_seconds
        self.lag_bytes = lag_bytes
        self.below = below
        check_constants(self, lag_seconds=_seconds_or_none, lag_bytes=whole_number_of, below=flag_of)
        if is_constant([lag_seconds, lag_bytes]):
            _require_limit(lag_seconds, lag_bytes)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether it is so now."""
        from tidemark.operators._replication_status import report_status

        below = flag_of("below", self.below)
        seconds, most = _require_limit(self.lag_seconds, self.lag_bytes)
        status, looked_at = self._status()
        unknown = status.replication.captured is None
        over = (most is not None and (unknown or status.lag_bytes > most)) or (
            seconds is not None and _over(seconds, status.lag_seconds, *(one.lag_seconds for one in looked_at))
        )
        facts = report_status(status)
        self.log.info("%s", facts)
        return PokeReturnValue(is_done=over is not below, xcom_value=facts)


def _states_of(argument: str, value: Names) -> tuple[str, ...]:
    """States of a backfill. Raises InvalidArgument."""
    states = names_of(argument, value)
    if not set(states) <= {"failed", "stopped"}:
        raise InvalidArgument(argument=argument, value=value, problem="it may name failed and stopped")
    return states


def _seconds_or_none(argument: str, value: float | str | None) -> float | None:
    return None if value is None or value in ("", "None") else seconds_of(argument, value).total_seconds()


def _require_limit(lag_seconds: float | str | None, lag_bytes: int | str | None) -> tuple[float | None, int | None]:
    """The limits in seconds and bytes, one at least. Raises InvalidArgument."""
    seconds, most = _seconds_or_none("lag_seconds", lag_seconds), whole_number_of("lag_bytes", lag_bytes)
    if seconds is None and most is None:
        raise InvalidArgument(argument="lag_seconds", value=None, problem="give a limit, here or in lag_bytes")
    return seconds, most


def _has_target(one: ReplicatedObject) -> bool:
    """Whether its backfill is done, or none is needed: it began with what was captured from then on."""
    from tidemark.replication.model.replication import ObjectState

    if one.state is ObjectState.NOT_STARTED:
        return one.applied is not None and one.needs_backfill is None
    return one.state is ObjectState.COMPLETED


def _over(limit: float, *lags: float | None) -> bool:
    return any(lag is None or lag > limit for lag in lags)
