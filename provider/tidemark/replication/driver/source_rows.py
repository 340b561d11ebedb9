"""The rows of a pinned table as a target has them, read by Spark in several sessions at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.jobs.remote import is_remote
from tidemark.model.source_address import SourceAddress
from tidemark.replication.driver.columns import METADATA_COLUMN
from tidemark.replication.driver.hidden_values import reading_properties
from tidemark.replication.driver.uuids import uuid_of_place
from tidemark.replication.driver.values import spark_type, written_value
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import Column as SourceColumn
from tidemark.replication.model.replication import WriteMode
from tidemark.replication.planning.events import EVENT_NAMESPACE, Change
from tidemark.replication.sources.postgresql.pinned import PinnedTable, is_native, jdbc_url
from tidemark.replication.sources.postgresql.row_sizes import MOST_ROWS, Fetch, fetches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["rows_read", "source_rows"]


def source_rows(
    session: SparkSession, request: BackfillObject, address: SourceAddress, table: PinnedTable, *, careful: bool = False
) -> DataFrame:
    """The target's columns. Nothing is read before the frame is; then it fails with what `named_invalid_value` names,
    or in the words of the driver. `careful`: as in `fetches`. Raises InvalidArgument if columns are hashed and the
    secret for that is missing, or another.
    """
    readings = fetches(table.sizes, careful=careful, most=request.fetch_rows or MOST_ROWS)
    parts = [_read(session, request, address, table, fetch) for fetch in readings]
    read = reduce(DataFrame.unionByName, parts)
    columns = table.schema.columns
    values = [_value(request, table, number, column).alias(column.name) for number, column in enumerate(columns)]
    said = F.struct(
        _uuid(request, table).alias("uuid"),
        F.lit(int(table.taken_at.timestamp() * 1000)).cast("bigint").alias("source_timestamp"),
    )
    more = _of_events(table) if request.object.mode is WriteMode.APPEND_ONLY else []
    return read.select(*values, said.alias(METADATA_COLUMN), *more)


def _read(
    session: SparkSession, request: BackfillObject, address: SourceAddress, table: PinnedTable, fetch: Fetch
) -> DataFrame:
    reader = session.read.option("driver", "org.postgresql.Driver")
    ranges = table.ranges(request.partitions)
    whole = fetch.condition == "true"
    held = table.held(fetch.rows)
    return reader.option("sessionInitStatement", "; ".join(table.statements)).jdbc(
        jdbc_url(address),
        f"({table.query(measured=not whole)}) AS source",
        predicates=[f"{held} AND {one}" if whole else f"{held} AND {one} AND {fetch.condition}" for one in ranges],
        properties=reading_properties(address, table, fetch, request.rules.hash_mark),
    )


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


def _value(request: BackfillObject, table: PinnedTable, number: int, column: SourceColumn) -> Column:
    text = F.col(f"c{number}")
    if is_native(column):
        return text.cast(spark_type(column.type))
    at = F.lit(f"{table.snapshot.position.commit}/0")
    return written_value(
        text, column, invalid_values=request.invalid_values, object_name=request.object.name.text, position=at
    )


def _uuid(request: BackfillObject, table: PinnedTable) -> Column:
    """From the snapshot and the row's place in it: a second reading of the same snapshot gives it again."""
    about = F.lit(f"{request.system_id}|{table.snapshot.position.commit}|{request.object.source_id}|")
    part = F.col("part") if table.parts > 1 else F.lit("")
    return uuid_of_place(EVENT_NAMESPACE, F.concat(about, part), F.col("place"))


def _of_events(table: PinnedTable) -> list[Column]:
    """A row of a backfill sorts before every event that comes after the snapshot."""
    milliseconds = str(int(table.taken_at.timestamp() * 1000))
    return [
        F.lit(Change.INSERT.value).alias("change_type"),
        F.lit(f"{table.snapshot.position.commit}-{0:016X}").alias("change_sequence_number"),
        F.array(F.lit(milliseconds), F.lit(""), F.lit("0")).alias("sort_keys"),
        F.lit(False).alias("is_deleted"),
    ]
