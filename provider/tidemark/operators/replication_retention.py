"""Retention of the event log of a replication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import days_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._replication import ReplicationOperator
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


__all__ = ["ExpireEventLogOperator"]


class ExpireEventLogOperator(SparkOperator, ReplicationOperator):
    """Takes out of a replication's event log what was captured long ago and every target has.

    No event expires that an object's target or event files lack, or that a running backfill may need. An object that
    lags, needs a backfill or cannot be written holds back its own events, and no others. VACUUM takes the files. Of a
    replication that has captured nothing no JVM starts. A retry does what is left. Returns {replication, before,
    events, held}: `events` went, `held` are as old and still needed, by object. Raises ReplicationNotFound,
    ReplicationRefused, EventLogChanged, InvalidArgument.

    :param replication: its name. (templated)
    :param keep_days: how long events are kept at least after they were captured; a fraction is fine. (templated)
    """

    template_fields: Sequence[str] = ("replication", "keep_days", "conn_id")

    def __init__(self, *, replication: str, keep_days: float | str = 7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.keep_days = keep_days
        check_constants(self, keep_days=days_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The events that expired, and those that are held back."""
        from tidemark.replication.worker.retention import expire_events

        keep = days_of("keep_days", self.keep_days)
        done = expire_events(self.runtime(), self.replication, keep=keep, key=key_of(context))
        self.log.info("%s events that were captured before %s have gone.", done.events, done.before.isoformat())
        for name, count in sorted(done.held.items()):
            self.log.warning("%s holds back %s events that are as old: a target or event files lack them.", name, count)
        return {
            "replication": self.replication,
            "before": done.before.isoformat(),
            "events": done.events,
            "held": dict(done.held),
        }
