"""A capture batch: the changes of its table ranges become rows of the stream's log, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.change_streams.driver.batch_log import append_batch, bar_discarded, find_batch, open_log
from tidemark.change_streams.driver.history import TableHistory, open_history, read_modifications
from tidemark.change_streams.driver.load import (
    BatchLoad,
    bucket_of,
    counted,
    doubled_key,
    in_range,
    weigh,
    with_places,
)
from tidemark.change_streams.driver.log_table import LOG_COLUMNS, TOKEN_COLUMN
from tidemark.change_streams.driver.modifications import RANKS, Shape, column_types
from tidemark.change_streams.driver.numbering import (
    CellCount,
    cell_counts,
    count_cells,
    number_cells,
    numbered,
    segment_starts,
    sequence_of,
    with_blocks,
)
from tidemark.change_streams.model.change_streams import (
    EPOCH,
    MICROSECOND,
    CaptureBatch,
    CaptureResult,
    LoadSegment,
    ModType,
    Partition,
)
from tidemark.change_streams.planning.blocks import ROWS_PER_TASK, cut_blocks
from tidemark.change_streams.planning.churn import decide_churn
from tidemark.change_streams.planning.segments import load_segments
from tidemark.change_streams.planning.timestamps import Published, SourceTransaction, publish, published_until
from tidemark.errors import KeyTwiceInTransaction
from tidemark.jobs.settings import under

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["FEW_ROWS", "MODS_PER_RECORD", "SEGMENT_ROWS", "capture_batch", "settings_for"]

MODS_PER_RECORD = 1_000
SEGMENT_ROWS = 100_000
FEW_ROWS = 10_000
_FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
}
_TRANSACTION_DDL = (
    "table_no int, version bigint, at bigint, raw bigint, server_transaction_id string, table_name string, "
    "transaction_tag string, is_system_transaction boolean"
)


@dataclass(frozen=True)
class _Captured:
    """A batch whose modifications are staged and weighed: what numbering and the log need of it."""

    batch: CaptureBatch
    active: Sequence[Partition]
    transactions: DataFrame
    published: tuple[Published, ...]
    load: BatchLoad


@dataclass(frozen=True)
class _Read:
    """The modifications of a batch, each with the number of its shape in `shapes`, and how many rows are read for them.
    `mods` is None if nothing has to be read.
    """

    mods: DataFrame | None
    shapes: Sequence[Shape]
    rows: int


def capture_batch(
    spark: SparkSession,
    batch: CaptureBatch,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] | None = None,
    mods_per_record: int = MODS_PER_RECORD,
    segment_rows: int = SEGMENT_ROWS,
    rows_per_task: int = ROWS_PER_TASK,
) -> CaptureResult:
    """Put the batch into the stream's log, which is created if it does not exist, and return the result.

    A record has `mods_per_record` modifications at most, a load segment about `segment_rows` of them; a task sorts
    about `rows_per_task`. The session is the job's own: a small batch sets how its queries are planned.

    A second run, also at the same time, writes nothing and answers the same, with `found` set. Raises
    WatchedTableChanged and KeyTwiceInTransaction before anything of the batch is written; BatchBarred, SerialReused and
    DiscardedBatchCaptured as `find_batch` and `bar_discarded` say. Another batch under this number is the answer.
    """
    log = open_log(spark, batch, options)
    found = find_batch(spark, log, batch)
    if found is not None:
        return found
    attempt = workspace.new_directory().rsplit("/", 1)[-1]
    bar_discarded(spark, log, batch, attempt)
    histories = [open_history(batch.stream, taken, options) for taken in batch.ranges]
    read = _modifications(spark, batch, histories, workspace, say)
    if read.mods is None:
        nothing = _result(batch, (), {}, CellCount(0, 0), 0, ())
        return append_batch(spark, log, batch, attempt, None, nothing)
    active = sorted(batch.active, key=lambda partition: partition.lo)
    with (
        under(spark, settings_for(read.rows)),
        _kept(with_places(read.mods, active)) as staged,
        _kept(counted(staged)) as counts,
    ):
        captured = _weighed(spark, batch, histories, staged, weigh(staged, counts, active), active)
        blocks = cut_blocks(active, captured.load.tokens, rows_per_task)
        blocked = with_blocks(staged, blocks)
        times = captured.transactions.select("table_no", "version", "at")
        with _kept(number_cells(cell_counts(counts, active, blocks), times, mods_per_record)) as cells:
            count = count_cells(cells, mods_per_record)
            starts = segment_starts(cells, active, mods_per_record, segment_rows)
            load = load_segments(starts, captured.load.token_rows)
            result = _result(batch, captured.published, captured.load.tokens, count, captured.load.rows, load)
            rows = numbered(blocked, cells, count.cells, blocks[-1].task + 1, mods_per_record)
            return append_batch(spark, log, batch, attempt, _log_rows(captured, rows, read.shapes), result)


def settings_for(rows: int) -> Mapping[str, str | None]:
    """Spark's settings while it works on a batch of this many rows: more than a few are planned as the session says.

    A few rows are in one partition. For them, an adaptive plan, whose every step is a job, and generated and compiled
    code cost more than they save.
    """
    return _FOR_FEW_ROWS if rows <= FEW_ROWS else {}


def _modifications(
    spark: SparkSession,
    batch: CaptureBatch,
    histories: Sequence[TableHistory],
    workspace: Workspace,
    say: Callable[[str], None] | None,
) -> _Read:
    """The modifications of all tables without those that the stream excludes.

    Rows that one task can sort are in one partition from here on. So nothing is shuffled later, which is most of the
    cost of a small batch.
    """
    frames: list[DataFrame] = []
    shapes: list[Shape] = []
    to_read = 0
    for table_no, history in enumerate(histories):
        for rows, shape, frame in read_modifications(spark, batch.stream, history, workspace, say):
            numbers = {"table_no": F.lit(table_no), "shape_no": F.lit(len(shapes))}
            frames.append(_without_excluded(batch, history, frame).withColumns(numbers))
            shapes.append(shape)
            to_read += rows
    if not frames:
        return _Read(None, (), 0)
    mods = reduce(DataFrame.unionByName, frames)
    return _Read(mods if to_read > ROWS_PER_TASK else mods.coalesce(1), shapes, to_read)


def _without_excluded(batch: CaptureBatch, history: TableHistory, mods: DataFrame) -> DataFrame:
    options = batch.stream.options
    facts = {version: commit.facts for version, commit in history.commits.items()}
    if excluded := [version for version, said in facts.items() if said.exclude and options.allow_txn_exclusion]:
        mods = mods.where(~F.col("version").isin(excluded))
    if outlived := [version for version, said in facts.items() if said.ttl and options.exclude_ttl_deletes]:
        mods = mods.where(~(F.col("version").isin(outlived) & (F.col("kind") == RANKS[ModType.DELETE])))
    return mods


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once, and lie in memory, or on the executors' disks if that does not suffice."""
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _weighed(
    spark: SparkSession,
    batch: CaptureBatch,
    histories: Sequence[TableHistory],
    staged: DataFrame,
    load: BatchLoad,
    active: Sequence[Partition],
) -> _Captured:
    _require_keys_once(batch, histories, staged, load)
    known = {
        SourceTransaction(histories[no].range.watched.table.table_id, version, histories[no].commits[version].raw): no
        for no, version in load.transactions
    }
    published = publish(known, batch.floor, batch.latest)
    rows = []
    for one in published:
        number = known[one.transaction]
        facts = histories[number].commits[one.transaction.version].facts
        times = ((time - EPOCH) // MICROSECOND for time in (one.at, one.transaction.raw))
        name = histories[number].range.watched.table.name
        rows.append((number, one.transaction.version, *times, one.id, name, facts.tag, facts.system))
    transactions = spark.createDataFrame(rows, _TRANSACTION_DDL)
    return _Captured(batch, active, transactions, published, load)


def _require_keys_once(
    batch: CaptureBatch, histories: Sequence[TableHistory], staged: DataFrame, load: BatchLoad
) -> None:
    found = doubled_key(staged) if load.suspects else None
    if found is None:
        return
    watched = histories[found.table_no].range.watched
    raise KeyTwiceInTransaction(
        stream=batch.stream.name,
        version=found.version,
        table=watched.table.name,
        times=found.times,
        mod_type=found.mod_type.value,
        key=found.keys,
        columns=", ".join(watched.keys),
    )


def _result(
    batch: CaptureBatch,
    published: Sequence[Published],
    tokens: Mapping[str, Mapping[int, int]],
    count: CellCount,
    rows: int,
    load: tuple[LoadSegment, ...],
) -> CaptureResult:
    until = published_until(published, batch.safe_until)
    churn = decide_churn(batch, tokens, until)
    return CaptureResult(
        number=batch.number,
        published_until=until,
        transactions=len(published),
        records=count.records,
        rows=rows,
        load=load,
        closed=churn.closed,
        opened=churn.opened,
        kept=churn.kept,
        unsplittable=churn.unsplittable,
        ahead=_ahead(batch, published),
    )


def _ahead(batch: CaptureBatch, published: Sequence[Published]) -> dict[str, timedelta]:
    names = {taken.watched.table.table_id: taken.watched.table.name for taken in batch.ranges}
    ahead: dict[str, timedelta] = {}
    for one in published:
        if one.transaction.raw > batch.latest:
            name, by = names[one.transaction.table_id], one.transaction.raw - batch.opened_at
            ahead[name] = max(by, ahead.get(name, by))
    return ahead


def _log_rows(captured: _Captured, rows: DataFrame, shapes: Sequence[Shape]) -> DataFrame:
    """Numbered modifications as rows of the log."""
    batch = captured.batch
    mod_types = {rank: kind.value for kind, rank in RANKS.items()}
    tokens = F.array(*(F.lit(partition.token) for partition in captured.active))
    types = [column_types(shape, batch.stream.options) for shape in shapes]
    values = {
        TOKEN_COLUMN: tokens[F.col("token_no")],
        "record_type": F.lit("data"),
        "batch": F.lit(batch.number),
        "commit_timestamp": F.timestamp_micros("at"),
        "record_sequence": sequence_of(F.col("record")),
        "raw_commit_timestamp": F.timestamp_micros("raw"),
        "source_version": F.col("version"),
        "mod_type": F.array(*(F.lit(mod_types[rank]) for rank in sorted(mod_types)))[F.col("kind")],
        "column_types": in_range(F.col("shape_no"), range(len(types)), types),
        "value_capture_type": F.lit(batch.stream.options.value_capture_type.value),
        "bucket": bucket_of(F.col("digest")),
        "is_last_record_in_transaction_in_partition": F.col("is_last"),
        "number_of_records_in_transaction": F.col("total"),
        "number_of_partitions_in_transaction": F.col("tokens"),
    }
    joined = rows.join(F.broadcast(captured.transactions.drop("at")), ["table_no", "version"])
    return joined.select(
        *(
            values.get(name, F.col(name) if name in joined.columns else F.lit(None)).cast(kind).alias(name)
            for name, kind in LOG_COLUMNS.items()
        )
    )
