"""Taking what is new in the watched tables into a change stream's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.operators._base import flag_of, key_of, seconds_of
from tidemark.operators._constants import check_bounds, check_constants
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._partitions import number_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.change_streams.model.change_streams import CaptureResult, ChangeStream, WatchedTable

__all__ = ["CaptureChangesOperator"]


class CaptureChangesOperator(DeferrableOperator):
    """Captures what was committed to the watched tables since the last capture, as one batch of the log.

    The batch is recorded before it is written. A retry, a clear, or a second capture at the same time does the same
    batch, and the log has it once. If nothing is new, no JVM starts; heartbeats continue. Returns {change_stream,
    batch, published_until, transactions, records, rows, opened, closed, unsplittable, found, left_out}; `left_out`:
    tables of FOR ALL that cannot be watched. Raises ChangeStreamNotFound, WatchedTableChanged, KeyTwiceInTransaction,
    InvalidArgument.

    :param change_stream: its name. (templated)
    :param max_commits: take at most this many versions of each table, and no version that is later than one that waits.
        (templated)
    :param max_rows: end the batch before the commit that would exceed this many changes. (templated)
    :param max_bytes: end the batch before the commit whose files would exceed this many bytes. (templated)
    :param split_rows: a partition with more rows than this in two batches in a row is split. (templated)
    :param merge_rows: two neighbours that together have fewer rows than this in five batches are merged. (templated)
    :param allowed_skew_seconds: how far the clocks of writers may be behind. (templated)
    :param skip_when_empty: end as skipped when nothing is new. (templated)
    """

    template_fields: Sequence[str] = (
        "change_stream", "max_commits", "max_rows", "max_bytes", "split_rows", "merge_rows", "allowed_skew_seconds",
        "skip_when_empty", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        change_stream: str,
        max_commits: int | str | None = None,
        max_rows: int | str | None = None,
        max_bytes: int | str | None = None,
        split_rows: int | str = 1_000_000,
        merge_rows: int | str = 125_000,
        allowed_skew_seconds: float | str = 10.0,
        skip_when_empty: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.max_commits = max_commits
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.split_rows = split_rows
        self.merge_rows = merge_rows
        self.allowed_skew_seconds = allowed_skew_seconds
        self.skip_when_empty = skip_when_empty
        check_bounds(self)
        check_constants(
            self,
            split_rows=number_of,
            merge_rows=number_of,
            allowed_skew_seconds=seconds_of,
            skip_when_empty=flag_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the batch; if nothing is new only {change_stream, batch: None, left_out}."""
        from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
        from tidemark.change_streams.worker.capture import capture
        from tidemark.change_streams.worker.definitions import get_change_stream
        from tidemark.change_streams.worker.watching import find_new_tables
        from tidemark.hooks.lake_tables import lake_tables_of
        from tidemark.operators._bounds import bound_of, bounds_given

        bound = bound_of(**bounds_given(self))
        split, merge = number_of("split_rows", self.split_rows), number_of("merge_rows", self.merge_rows)
        skew = seconds_of("allowed_skew_seconds", self.allowed_skew_seconds)
        runtime = self.runtime(leaves=(CAPTURE_CHANGES,))
        store = runtime.store
        name = get_change_stream(store, self.change_stream).name
        left_out: set[str] = set()

        def new_tables(stream: ChangeStream, lost: Sequence[WatchedTable]) -> Sequence[WatchedTable]:
            return find_new_tables(store, stream, lake_tables_of(self.hook), left_out.add, lost)

        result = capture(
            runtime,
            name,
            key=key_of(context),
            new_tables=new_tables,
            bounds=bound,
            allowed_skew=skew,
            split_rows=split,
            merge_rows=merge,
        )
        if result is None:
            if flag_of("skip_when_empty", self.skip_when_empty):
                raise AirflowSkipException("Nothing new to capture.")
            return {"change_stream": name, "batch": None, "left_out": sorted(left_out)}
        for token in result.unsplittable:
            self.log.warning("Partition %s is due for a split, but one key's bucket has all of its load.", token)
        return {**_answer(name, result), "left_out": sorted(left_out)}


def _answer(stream: str, result: CaptureResult) -> dict[str, Any]:
    return {
        "change_stream": stream,
        "batch": result.number,
        "published_until": result.published_until.isoformat(),
        "transactions": result.transactions,
        "records": result.records,
        "rows": result.rows,
        "opened": [partition.token for partition in result.opened],
        "closed": [partition.token for partition in result.closed],
        "unsplittable": list(result.unsplittable),
        "found": result.found,
    }
