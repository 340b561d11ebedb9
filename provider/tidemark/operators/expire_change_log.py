"""Retention of a change stream's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import flag_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


__all__ = ["ExpireChangeLogOperator"]


class ExpireChangeLogOperator(SparkOperator):
    """Removes records that are older than the change stream's retention from its log, and their rows from the control
    store.

    If nothing is old enough, no JVM starts. First no plan hands them out any more, then the log loses them, then the
    store forgets them. A retry does the rest. A consumer group that has not read them finds PartitionExpired when it
    plans, and is reset by somebody. Raises ChangeStreamNotFound, CommitsMayBeLost, InvalidArgument.

    :param change_stream: its name. (templated)
    :param only_writer: whether nothing is captured into the log during the run. On S3 it must be True, unless a log
        store coordinates commits. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "only_writer", "conn_id")

    def __init__(self, *, change_stream: str, only_writer: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.only_writer = only_writer
        check_constants(self, only_writer=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """{change_stream, until, rows, partitions, batches}: rows that left the log, and what the store forgot."""
        from tidemark.change_streams.worker.retention import expire

        alone = flag_of("only_writer", self.only_writer)
        done = expire(self.runtime(), self.change_stream, only_writer=alone)
        self.log.info("%s rows left the log; records before %s are gone.", done.rows, done.until.isoformat())
        return {
            "change_stream": self.change_stream,
            "until": done.until.isoformat(),
            "rows": done.rows,
            "partitions": done.forgotten.partitions,
            "batches": done.forgotten.batches,
        }
