"""Chunks of partitions into a sink, each exactly once.

A chunk that goes to a Delta table is one commit of it. The commit's transaction is the token's application and the
chunk's number. Its mark has the chunk's bounds, and is read back. A function gets its records at least once. If a task
ends between the function and its answer, the function is called again, with the same identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.change_streams.driver.apply import prepare_apply
from tidemark.change_streams.driver.read import read_mods, read_records
from tidemark.change_streams.model.change_streams import Chunk
from tidemark.change_streams.model.sinks import (
    ChunkAnswer,
    ChunkFacts,
    ChunkWrite,
    Sink,
    SinkKind,
    app_id_of,
    bounds_of,
)
from tidemark.delivery.driver.exactly_once import (
    Delivering,
    open_target,
    partition_columns,
    target_schema,
    write_statement,
)
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.delivery.model.marks import MarkKind
from tidemark.delivery.planning.delivery import Delivery, Finding, judge
from tidemark.errors import InvalidArgument, TargetDoesNotFit
from tidemark.failpoints import failpoint
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, Statement, WriteAs
from tidemark.sql.identifiers import quoted
from tidemark.streams.driver.function import load_function

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["ChunkSink", "SinkFunction", "statement_of"]

CHUNK_ATTEMPTS = 40  # the mapped tasks of a wave merge into one table, and each commit sends the others back

SinkFunction = Callable[["DataFrame", ChunkFacts], Any]


@dataclass(frozen=True)
class ChunkSink:
    """Writes chunks of one change stream's log to one sink. `stop_if_due` is asked before each write."""

    session: SparkSession
    store_id: str
    log_path: str
    sink: Sink
    stop_if_due: Callable[[], None]
    options: Mapping[str, str] | None = field(default=None, repr=False)

    def write(self, write: ChunkWrite) -> ChunkAnswer:
        """Write the chunk unless the sink has it; a second run writes nothing and says `found`.

        Raises SerialReused for a number that was used with other bounds, and the sink's error for rows that do not fit.
        Then nothing of the chunk was written.
        """
        if self.sink.kind is SinkKind.FUNCTION:
            return self._call(write.chunk)
        delivering = Delivering(self.store_id, None, (), self.options, self.stop_if_due, CHUNK_ATTEMPTS)
        statement = statement_of(self.store_id, self.sink, write)
        found = _delivered(delivering, statement, write.searched_from)
        if found is not None:
            return _answer(write.chunk, found.rows or {}, found.version, found=True)
        prepared = self._prepare(write.chunk, statement)
        try:
            evidence = write_statement(self.session, delivering, statement, prepared.run)
        finally:
            prepared.close()
        return _answer(write.chunk, evidence.rows, evidence.commit_version, found=evidence.found)

    def _prepare(self, chunk: Chunk, statement: Statement) -> PreparedWrite:
        target = statement.target
        log = open_target(statement, self.options)
        schema = target_schema(log)
        if self.sink.kind is SinkKind.APPEND:
            records = fitted_records(self._records(chunk), target.name, schema)
            return PreparedWrite(run=lambda: records.write.format("delta").mode("append").save(target.path))
        mods = self._mods(chunk)
        if mods.isEmpty():
            return PreparedWrite(run=_nothing)
        if self.sink.alone:
            self._require_alone(mods)
        return prepare_apply(
            mods,
            path=target.path,
            target=target.name,
            schema=schema,
            keys=self.sink.keys,
            partitioned=partition_columns(log),
        )

    def _require_alone(self, mods: DataFrame) -> None:
        """Raises InvalidArgument if others than the one watched table have records: a merge would pass over them."""
        is_of_it = self._is_of_table()
        if is_of_it is None:
            return
        others = sorted(row[0] for row in mods.where(~is_of_it).select("table_name").distinct().collect())
        if others:
            problem = (
                f"the chunk has records of {', '.join(others)}, too; a merge takes those of one: name it. It leaves out"
                " all others, even those of an earlier table of that name. If the table was replaced, reset the"
                " consumer group to 'now', and begin with the backfill"
            )
            raise InvalidArgument(argument="table", value=None, problem=problem)

    def _call(self, chunk: Chunk) -> ChunkAnswer:
        function: SinkFunction = load_function(self.sink.function or "")
        self.stop_if_due()
        failpoint("function.before")
        answered = function(self._records(chunk), _facts(self.store_id, chunk))
        failpoint("function.after")
        return ChunkAnswer(chunk.token, chunk.number, answered if type(answered) is int else None)

    def _records(self, chunk: Chunk) -> DataFrame:
        return self._of_table(
            read_records(self.session, self.log_path, chunk.token, chunk.start, chunk.end, self.options)
        )

    def _mods(self, chunk: Chunk) -> DataFrame:
        where = (self.log_path, chunk.token, chunk.start, chunk.end)
        mods = read_mods(self.session, *where, self.options)
        return mods if self.sink.alone else self._of_table(mods)

    def _of_table(self, rows: DataFrame) -> DataFrame:
        is_of_it = self._is_of_table()
        return rows if is_of_it is None else rows.where(is_of_it)

    def _is_of_table(self) -> Column | None:
        table_id = self.sink.table_id
        return None if table_id is None else F.col("server_transaction_id").startswith(f"{table_id}:")


def statement_of(store_id: str, sink: Sink, write: ChunkWrite) -> Statement:
    """The chunk as a statement: its digest covers the bounds and what was asked, so other bounds are another write."""
    if sink.target is None:
        raise AssertionError("only a function has no target")
    chunk = write.chunk
    return Statement(
        number=1,
        write=PlannedWrite(
            write_as=WriteAs.APPEND if sink.kind is SinkKind.APPEND else WriteAs.MERGE,
            target=sink.target.path,
            source=f"{chunk.stream_uid} {chunk.token} {bounds_of(chunk)}",
            sql=sink.digest,
        ),
        target=sink.target,
        base_version=write.base_version,
        app_id=app_id_of(store_id, chunk),
        txn_version=chunk.number + 1,
    )


def fitted_records(records: DataFrame, target: str, schema: StructType) -> DataFrame:
    """The fields of the records that the target has columns of. Raises TargetDoesNotFit."""
    fields = {one.name.lower(): one for one in records.schema.fields}
    chosen = [(fields[column.name.lower()], column) for column in schema.fields if column.name.lower() in fields]
    problems = [
        f"column {column.name} is {column.dataType.simpleString()}, the record's {given.dataType.simpleString()}"
        for given, column in chosen
        if given.dataType.simpleString().lower() != column.dataType.simpleString().lower()
    ]
    known = {column.name for _, column in chosen}
    problems += [
        f"its NOT NULL column {column.name} would get no value"
        for column in schema.fields
        if not column.nullable and column.name not in known
    ]
    if not chosen:
        problems.append(f"it has no column of a record; these are {', '.join(f.name for f in records.schema.fields)}")
    if problems:
        raise TargetDoesNotFit(target=target, problem="; ".join(problems))
    return records.select(*(F.col(quoted(given.name)).alias(column.name) for given, column in chosen))


def _delivered(delivering: Delivering, statement: Statement, searched_from: int | None = None) -> Delivery | None:
    """The delivery of a chunk that the target already has, also below later chunks of its token."""
    log: DeltaLog = open_target(statement, delivering.options)
    head = log.head()
    found_id = log.state(head).table_id
    since = statement.base_version if searched_from is None else min(searched_from, statement.base_version)
    if found_id != statement.target.table_id or head < statement.base_version:
        return None
    commits = [
        commit
        for commit in log.commits(since, head)
        if commit.transactions.get(statement.app_id, 0) <= statement.txn_version
    ]
    mark = delivering.mark(statement, MarkKind.WRITE)
    delivery = judge(mark, expected_id=found_id, found_id=found_id, commits=commits, version_at=log.version_at)
    return delivery if delivery.finding is Finding.DELIVERED else None


def _facts(store_id: str, chunk: Chunk) -> ChunkFacts:
    return ChunkFacts(
        stream=chunk.stream,
        group=chunk.group,
        token=chunk.token,
        number=chunk.number,
        bounds=bounds_of(chunk),
        app_id=app_id_of(store_id, chunk),
        txn_version=chunk.number + 1,
        last=chunk.last,
    )


def _answer(chunk: Chunk, rows: Mapping[str, int], version: int | None, *, found: bool) -> ChunkAnswer:
    facts = {name: str(count) for name, count in rows.items()}
    return ChunkAnswer(
        chunk.token, chunk.number, sum(rows.values()), found, {**facts, "version": str(version), "found": str(found)}
    )


def _nothing() -> None:
    return None
