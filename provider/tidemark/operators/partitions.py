"""One wave over the partitions of a change stream: plan, read by mapped tasks, commit; and the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.failpoints import failpoint
from tidemark.operators._base import TidemarkOperator, is_left_out, key_of, unless_left_out, whole_number_of
from tidemark.operators._constants import check_constants
from tidemark.operators._partitions import check_sink, number_of, run_of, sink_of, task_limits
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.change_streams.worker.reading import BundleResult

__all__ = [
    "CommitPartitionsOperator",
    "FinishPartitionsOperator",
    "PlanPartitionsOperator",
    "ReadPartitionOperator",
]


class PlanPartitionsOperator(TidemarkOperator):
    """Says what a consumer group is to read next: the list over which `ReadPartitionOperator` is expanded.

    A partition is handed out when all of its parents are finished, in chunks whose bounds are recorded first. Open
    chunks of an earlier run come first, unchanged. Chunks of partitions that lie side by side share a task. A partition
    that failed in this run waits for the next one. A paused group hands out nothing, and neither does a new one before
    its backfill is done. A second run returns the open chunks again. The limit of Airflow on mapped tasks is kept
    before anything is written. Returns [{range, chunks}]. Raises ChangeStreamNotFound, ConsumerGroupNotFound,
    PartitionTokenInvalid, InvalidArgument.

    :param change_stream: its name. (templated)
    :param consumer_group: name of the group. (templated)
    :param max_chunks: the most chunks that a run plans; None: as many as mapped tasks can take. (templated)
    :param max_rows: end a chunk before it has more rows than this, if the log's segments allow it. (templated)
    :param chunks_per_task: the chunks that one task reads, in one start of Spark. (templated)
    :param rows_per_task: the most rows that the chunks of one task have together. (templated)
    :param token: only this partition. (templated)
    """

    template_fields: Sequence[str] = (
        "change_stream", "consumer_group", "max_chunks", "max_rows", "chunks_per_task", "rows_per_task", "token",
        "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        change_stream: str,
        consumer_group: str,
        max_chunks: int | str | None = None,
        max_rows: int | str = 1_000_000,
        chunks_per_task: int | str = 16,
        rows_per_task: int | str = 1_000_000,
        token: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group
        self.max_chunks = max_chunks
        self.max_rows = max_rows
        self.chunks_per_task = chunks_per_task
        self.rows_per_task = rows_per_task
        self.token = token
        check_constants(
            self,
            max_chunks=whole_number_of,
            max_rows=number_of,
            chunks_per_task=number_of,
            rows_per_task=number_of,
            token=_require_token,
        )

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """The bundles, as JSON has them; [] where nothing can be read now."""
        from airflow.sdk.configuration import conf

        from tidemark.change_streams.planning.bundles import in_bundles
        from tidemark.change_streams.planning.tokens import parse_token
        from tidemark.change_streams.worker.waves import plan_wave
        from tidemark.model.codec import to_plain

        limits = task_limits(
            chunks_per_task=self.chunks_per_task,
            rows_per_task=self.rows_per_task,
            max_chunks=self.max_chunks,
            max_rows=self.max_rows,
            max_map_length=conf.getint("core", "max_map_length", fallback=1024),
        )
        failpoint("plan.before")
        wave = plan_wave(
            self.hook.open_store(),
            self.change_stream,
            self.consumer_group,
            run=run_of(context),
            max_chunks=limits.max_chunks,
            max_rows=limits.max_rows,
            token=unless_left_out(self.token),
        )
        failpoint("plan.stored")
        parts = {chunk.token: parse_token(chunk.token) for chunk in wave.chunks}
        bundles = in_bundles(
            wave.chunks,
            {token: (part.lo, part.hi) for token, part in parts.items()},
            chunks_per_task=limits.chunks_per_task,
            rows_per_task=limits.rows_per_task,
            max_tasks=limits.max_tasks,
        )
        self.log.info("%s chunks in %s tasks.", len(wave.chunks), len(bundles))
        plain: list[dict[str, Any]] = to_plain(bundles)
        return plain


class ReadPartitionOperator(SparkOperator):
    """Reads the chunks of one bundle and brings them to a sink, each exactly once; expanded over what
    `PlanPartitionsOperator` returns.

    A chunk is one commit of the target, with the chunk's own transaction number and a mark that is read back. So a
    retry, a clear and a late double do not write it again. A chunk that the sink has starts no job. `append` writes
    each data change record as a row, the fields that the target has columns of. `merge` applies the changes to the
    rows: inserts, updates of the modified columns, deletes. A function `module:function(records, chunk)` gets a
    DataFrame of records and a `ChunkFacts`, **at least once**. The identity in the facts is the same at each attempt,
    so it can recognize a repetition. The map index shows the bundle's range of keys.

    A chunk that fails does not stop its siblings; the task fails after them, and only the failed ones are tried again.
    Returns {range, chunks, rows, found}. Raises TargetNotFound, TargetNotDelta, TargetDoesNotFit, MissingMergeKey,
    UpdateOfMissingRow, SerialReused, TargetForgetsTransactions, ChunkChanged, PartitionsFailed, StatementRefused,
    InvalidArgument.

    :param bundle: what to read. (templated)
    :param change_stream: its name. (templated)
    :param write_as: `append`, `merge`, or a function as `module:function`. (templated)
    :param target: the table that append and merge write. (templated)
    :param table: only the records of this table, which is or was watched. A merge needs it,
        unless exactly one table is watched. (templated)
    :param keys: the key columns of a merge; by default those of the watched table. (templated)
    """

    template_fields: Sequence[str] = ("bundle", "change_stream", "write_as", "target", "table", "keys", "conn_id")

    def __init__(
        self,
        *,
        bundle: Any,
        change_stream: str,
        write_as: str,
        target: str | None = None,
        table: str | None = None,
        keys: str | Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("map_index_template", "{{ task.bundle.range }}")
        super().__init__(**kwargs)
        self.bundle = bundle
        self.change_stream = change_stream
        self.write_as = write_as
        self.target = target
        self.table = table
        self.keys = keys
        check_sink(self.write_as, self.target, self.keys)

    def execute(self, context: Context) -> dict[str, Any]:
        """{range, chunks, rows, found}: `rows` that the sinks took, `found` chunks that they had already."""
        from tidemark.change_streams.model.sinks import Bundle
        from tidemark.change_streams.worker.reading import read_chunks
        from tidemark.model.codec import from_plain

        bundle = from_plain(Bundle, self.bundle)
        store = self.hook.open_store()
        sink = sink_of(
            partial(self.table_by_name, context, anew=False),
            store,
            self.change_stream,
            write_as=self.write_as,
            target=self.target,
            table=self.table,
            keys=self.keys,
        )
        runtime = self.runtime(functions=True)
        result = read_chunks(runtime, bundle.chunks, sink, run=run_of(context), key=key_of(context))
        self._require_all(result, bundle.chunks[0].group)
        return {"range": bundle.range, "chunks": result.chunks, "rows": result.rows, "found": result.found}

    def _require_all(self, result: BundleResult, group: str) -> None:
        from tidemark.errors import PartitionsFailed

        for token, problem in result.failed:
            self.log.error("Partition %s: %s", token, problem)
        if result.failed:
            raise PartitionsFailed(
                failed=len(result.failed),
                stream=self.change_stream,
                group=group,
                tokens=", ".join(token for token, _ in result.failed),
                error=result.failed[0][1],
            )


class CommitPartitionsOperator(TidemarkOperator):
    """Moves the group on over what was written: watermarks, finished partitions, their children, in one transaction.

    It runs when all reading tasks have ended, however they did: what was written counts. A second run moves nothing.
    Returns {advanced, finished, children, low_watermark}. Raises ChangeStreamNotFound, ConsumerGroupNotFound.

    :param change_stream: its name. (templated)
    :param consumer_group: name of the group. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "consumer_group", "conn_id")

    def __init__(self, *, change_stream: str, consumer_group: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group

    def execute(self, context: Context) -> Mapping[str, Any]:
        """How many partitions advanced, the tokens that finished and their children, and the group's low watermark."""
        from tidemark.change_streams.worker.waves import commit_wave
        from tidemark.model.codec import to_plain

        failpoint("commit_wave.before")
        result = commit_wave(self.hook.open_store(), self.change_stream, self.consumer_group, run=run_of(context))
        failpoint("commit_wave.stored")
        plain: Mapping[str, Any] = to_plain(result)
        self.log.info("%s", plain)
        return plain


class FinishPartitionsOperator(TidemarkOperator):
    """The end of a run: fails it where a partition failed, and says what is left for the next one.

    Returns {left, paused, low_watermark, lag_seconds}; `left`: partitions with work for another run; `paused`: by hand,
    or until the backfill is done. A second run reports it again. Raises PartitionsFailed, ChangeStreamNotFound,
    ConsumerGroupNotFound.

    :param change_stream: its name. (templated)
    :param consumer_group: name of the group. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "consumer_group", "conn_id")

    def __init__(self, *, change_stream: str, consumer_group: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group

    def execute(self, context: Context) -> Mapping[str, Any]:
        """The chunks that are left."""
        from tidemark.change_streams.worker.groups import group_status
        from tidemark.change_streams.worker.waves import finish

        store = self.hook.open_store()
        left = finish(store, self.change_stream, self.consumer_group, run=run_of(context))
        status = group_status(store, self.change_stream, self.consumer_group)
        left_over = {
            "left": left,
            "paused": status.group.paused or status.backfilling,
            "low_watermark": status.low_watermark.isoformat(),
            "lag_seconds": status.lag_seconds,
        }
        self.log.info("%s", left_over)
        return left_over


def _require_token(_: str, value: str | None) -> None:
    """Raises PartitionTokenInvalid for a text that is no partition's token."""
    from tidemark.change_streams.planning.tokens import parse_token

    if value is not None and not is_left_out(value):
        parse_token(value)
