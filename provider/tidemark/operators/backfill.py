"""The rows that a watched table has, before the records of its changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.change_streams.worker.backfill import Backfilled

__all__ = ["BackfillTableOperator"]


class BackfillTableOperator(SparkOperator):
    """Puts a watched table's rows of one version into a target. It also creates the consumer group whose records are
    those of the later versions: no gap and no overlap.

    The target has exactly these rows then. Rows that were written are not written again, also after deliveries of the
    group. A second run starts no Spark and says `found`. Until then a new group is handed out nothing. Put it in front
    of `change_stream_partitions` with a merge. Returns {table, version, rows, found, start}. Raises
    ChangeStreamNotFound, TargetNotFound, TargetNotDelta, TargetDoesNotFit, SplitUnreadable, InvalidArgument.

    :param change_stream: its name. (templated)
    :param consumer_group: the group whose records begin after the copied version; it is created if it does not exist.
        (templated)
    :param table: the watched table. (templated)
    :param target: the table that is filled. (templated)
    :param overwrite: whether the copy may replace rows that the target has. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "consumer_group", "table", "target", "overwrite", "conn_id")

    def __init__(
        self,
        *,
        change_stream: str,
        consumer_group: str,
        table: str,
        target: str,
        overwrite: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group
        self.table = table
        self.target = target
        self.overwrite = overwrite
        check_constants(self, overwrite=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The version, its rows, and whether an earlier run had done it."""
        from tidemark.change_streams.worker.backfill import Backfilled, backfill_from, begin_backfill
        from tidemark.change_streams.worker.sinks import target_of

        overwrite = flag_of("overwrite", self.overwrite)
        target = target_of(partial(self.table_by_name, context), self.target)
        runtime = self.runtime()
        point = begin_backfill(runtime.store, self.change_stream, self.consumer_group, self.table, target)
        if point.rows is not None:
            return _answer(Backfilled(point, point.rows, found=True))
        return _answer(backfill_from(runtime, point, target, overwrite=overwrite, key=key_of(context)))


def _answer(done: Backfilled) -> dict[str, Any]:
    return {
        "table": done.point.watched.table.name,
        "version": done.point.version,
        "rows": done.rows,
        "found": done.found,
        "start": done.point.group.start.isoformat(),
    }
