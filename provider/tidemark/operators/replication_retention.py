"""Retention of the event log of a replication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import days_of, flag_of, key_of
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
    ReplicationRefused, EventLogChanged, CommitsMayBeLost, InvalidArgument.

    :param replication: its name. (templated)
    :param keep_days: the minimum number of days to keep events after their capture; may be a fraction. (templated)
    :param only_writer: whether nothing is captured into the event log during the run. On S3 it must be True, unless a
        log store coordinates commits. (templated)
    """

    template_fields: Sequence[str] = ("replication", "keep_days", "only_writer", "conn_id")

    def __init__(
        self, *, replication: str, keep_days: float | str = 7, only_writer: bool | str = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.keep_days = keep_days
        self.only_writer = only_writer
        check_constants(self, keep_days=days_of, only_writer=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The events that expired, and those that are held back."""
        from tidemark.replication.worker.retention import expire_events

        keep, alone = days_of("keep_days", self.keep_days), flag_of("only_writer", self.only_writer)
        done = expire_events(self.runtime(), self.replication, keep=keep, only_writer=alone, key=key_of(context))
        self.log.info("%s events that were captured before %s have gone.", done.events, done.before.isoformat())
        for name, count in sorted(done.held.items()):
            self.log.warning("%s holds back %s events that are as old: a target or event files lack them.", name, count)
        return {
            "replication": self.replication,
            "before": done.before.isoformat(),
            "events": done.events,
            "held": dict(done.held),
        }
