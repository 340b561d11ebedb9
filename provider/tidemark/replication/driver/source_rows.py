"""The rows of a copy as a target has them, and how many of them Spark has read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.jobs.remote import is_remote
from tidemark.replication.driver.columns import METADATA_COLUMN
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import Column as SourceColumn
from tidemark.replication.model.replication import LogPosition, TableSchema, WriteMode
from tidemark.replication.planning.events import Change
from tidemark.replication.sources.fetches import MOST_ROWS, Fetch, RowSizes, fetches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Reading", "copied_rows", "rows_read"]


@dataclass(frozen=True)
class Reading:
    """The way to read a table's rows. `read`: those of one fetch. `value`: the target's value of a column, by its
    place. `uuid`: of a row.
    """

    schema: TableSchema
    sizes: RowSizes
    position: LogPosition
    taken_at: datetime
    read: Callable[[Fetch], DataFrame]
    value: Callable[[int, SourceColumn], Column]
    uuid: Column


def copied_rows(request: BackfillObject, reading: Reading, *, careful: bool) -> DataFrame:
    """The target's columns. Nothing is read before the frame is; then it fails with what `named_invalid_value` names,
    or in the words of the driver. `careful`: as in `fetches`.
    """
    wanted = fetches(reading.sizes, careful=careful, most=request.fetch_rows or MOST_ROWS)
    rows = reduce(DataFrame.unionByName, [reading.read(fetch) for fetch in wanted])
    columns = reading.schema.columns
    values = [reading.value(number, column).alias(column.name) for number, column in enumerate(columns)]
    milliseconds = int(reading.taken_at.timestamp() * 1000)
    said = F.struct(reading.uuid.alias("uuid"), F.lit(milliseconds).cast("bigint").alias("source_timestamp"))
    more = _of_events(reading.position, milliseconds) if request.object.mode is WriteMode.APPEND_ONLY else []
    return rows.select(*values, said.alias(METADATA_COLUMN), *more)


@contextmanager
def rows_read(session: SparkSession, expected: int) -> Iterator[Callable[[], int]]:
    """A function that says how many rows the running queries of the session's Spark have read. Spark Connect shows only
    how many tasks are done: then it is their share of `expected`.
    """
    if is_remote(session):
        with _share_of_tasks(session) as share:
            yield lambda: int(expected * share())
        return
    store = session.sparkContext._jsc.sc().statusStore()

    def read() -> int:
        stages = store.activeStages()
        return sum(stages.apply(number).inputRecords() for number in range(stages.size()))

    yield read


@contextmanager
def _share_of_tasks(session: Any) -> Iterator[Callable[[], float]]:
    """Of the query that runs, or ran last."""
    share = [0.0]

    def note(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        seen = list(stages or ())
        if tasks := sum(stage.num_tasks for stage in seen):
            share[0] = sum(stage.num_completed_tasks for stage in seen) / tasks

    session.registerProgressHandler(note)
    try:
        yield lambda: share[0]
    finally:
        session.removeProgressHandler(note)


def _of_events(position: LogPosition, milliseconds: int) -> list[Column]:
    """A row of a backfill sorts before every event that comes after the copy."""
    return [
        F.lit(Change.INSERT.value).alias("change_type"),
        F.lit(f"{position.commit}-{0:016X}").alias("change_sequence_number"),
        F.array(F.lit(str(milliseconds)), F.lit(""), F.lit("0")).alias("sort_keys"),
        F.lit(False).alias("is_deleted"),
    ]
