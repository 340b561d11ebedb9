"""The Delta table of a pipe's or a target's files: its events are appended, and states follow from them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from tidemark.delivery.driver.exactly_once import until_committed
from tidemark.errors import TableNotFound
from tidemark.jobs.own_tables import make_table
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA, under
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.live_files import live_files
from tidemark.lake.log_age import forgotten_before
from tidemark.model.codec import from_json, to_json
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.events import DAY, ENDS, FILES_SCHEMA, PLANS, Batch, Event, app_id
from tidemark.pipes.model.files import FileReport, FileSource, FileStatus
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["EVENTS_SCHEMA", "PARTIAL", "FilesTable", "KnownBatch", "latest_results", "micros", "utc"]

_PROPERTIES = {"delta.autoOptimize.autoCompact": "true", "delta.autoOptimize.optimizeWrite": "false"}
_SLACK = timedelta(days=1)  # after the time that a file is remembered
_KINDS = {"STRING": pa.string(), "BIGINT": pa.int64(), "TIMESTAMP": pa.timestamp("us", "UTC"), "DATE": pa.date32()}
EVENTS_SCHEMA = pa.schema([(name, _KINDS[kind]) for name, kind in (c.split() for c in FILES_SCHEMA.split(", "))])
PARTIAL = "partial"  # the status of a batch that left files in the queue
ABORTED = "aborted"  # the status of a batch's end
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REPORT = (
    *("file", "status", "size", "rows_parsed", "rows_loaded", "errors_seen", "error_limit", "first_error"),
    *("first_error_line", "first_error_character", "first_error_column", "system_error"),
)


def _new_token() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class KnownBatch:
    """A batch, and its end: the attempt, the version of its rows, and whether an error of the files ended it.
    `table_id`: of the target that has them; None if that is not known.
    """

    batch: Batch
    is_done: bool
    attempt: str | None = None
    version: int | None = None
    aborted: bool = False
    table_id: str | None = None


class FilesTable:
    """The table at `path`. `kept`: how long a file is remembered."""

    def __init__(
        self,
        spark: SparkSession,
        log: DeltaLog,
        options: Mapping[str, str] | None,
        kept: timedelta,
        new_token: Callable[[], str] = _new_token,
    ) -> None:
        self.spark = spark
        self._new_token = new_token
        self.options = dict(options or {})
        self._log = log
        self._kept = kept
        self.id = log.state().table_id

    @classmethod
    def open(cls, spark: SparkSession, path: str, options: Mapping[str, str] | None, *, kept: timedelta) -> FilesTable:
        """The table, created if it does not exist. A second run changes nothing."""
        try:
            log = DeltaLog.open(path, options)
        except TableNotFound:
            log = make_table(spark, path, FILES_SCHEMA, properties=_PROPERTIES, partitioned_by=(DAY,), options=options)
        return cls(spark, log, options, kept)

    @property
    def app_id(self) -> str:
        """The application of Delta under which batches number their commits in the target."""
        return app_id(self.id)

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written to it, so that no Spark need look."""
        return self._log.head() == 0

    def events(self, since: datetime) -> DataFrame:
        """The events from the day of `since` on, with all columns of FILES_SCHEMA."""
        return self._all().where(F.col(DAY) >= F.lit(since.date()))

    def _all(self) -> DataFrame:
        return self.spark.read.format("delta").load(self._log.uri)

    def forgotten_before(self, now: datetime) -> datetime | None:
        """The time before which a file may have been loaded and forgotten. None: the table is younger than that."""
        return forgotten_before(self._log, now, self._kept)

    def remembered(self, now: datetime) -> DataFrame:
        """The events within the time that a file is remembered."""
        return self.events(now - self._kept)

    def append(self, rows: Iterable[Mapping[str, Any]], at: datetime) -> None:
        """Add events."""
        self._write(self._frame(rows, at))

    def queue(self, files: pa.Table, source: FileSource, after: int, at: datetime) -> None:
        """Add files (FOUND_SCHEMA) to the queue. `after`: the batch that was planned last when they were looked for."""
        self._write(self.spark.createDataFrame(_queued(files, source, after, at)))

    def note(self, files: pa.Table, event: Event, location: str, at: datetime) -> None:
        """Add an event of files (FOUND_SCHEMA) below the location that a run leaves out."""
        self._write(self.spark.createDataFrame(_events(files, {"event": event.value, "source": location}, at)))

    def plan(self, batch: Batch, files: pa.Table, queued: pa.Table | None, at: datetime, *, partial: bool) -> bool:
        """Add the batch, its files, and files that wait (FOUND_SCHEMA), in one commit. `partial`: more files wait.

        Only one of two plans with the same number is stored. Returns whether it is this one.
        """
        head = {
            "event": Event.BATCH.value,
            "at": at,
            "batch": batch.number,
            "status": PARTIAL if partial else None,
            "statement": to_json(batch.load),
            "version": batch.base_version,
            "run": batch.run,
            DAY: at.date(),
        }
        planned = {"event": Event.PLANNED.value, "batch": batch.number}
        tables = [pa.Table.from_pylist([head], EVENTS_SCHEMA), _events(files, planned, at)]
        if queued is not None:
            tables.append(_queued(queued, FileSource.LISTING, batch.number, at))
        return self._write_numbered(self.spark.createDataFrame(pa.concat_tables(tables)), PLANS, batch.number)

    def end(
        self,
        batch: int,
        attempt: str | None,
        version: int | None,
        at: datetime,
        *,
        table_id: str | None,
        aborted: bool = False,
    ) -> None:
        """The batch is done, in the table of that id; None: there is none. A second end of the same batch is left
        out.
        """
        status = ABORTED if aborted else None
        facts = {"batch": batch, "attempt": attempt, "version": version, "status": status, "source": table_id}
        self._write_numbered(self._frame([{"event": Event.DONE.value, **facts}], at), ENDS, batch)

    def turn(self) -> tuple[Batch | None, int]:
        """The batch that was planned last, if it is not done, however old it is; and the number of the next one.

        Both are of one version: a batch that another run plans behind it bars this number.
        """
        number, ended = self.numbers()
        return (None if number == ended else self._batch(number).batch), number + 1

    def numbers(self) -> tuple[int, int]:
        """The batches that were planned and ended last; 0 if there is none. Only the last one may be open."""
        known = self._log.state().transactions
        return known.get(app_id(self.id, PLANS), 0), known.get(app_id(self.id, ENDS), 0)

    def batch_of_run(self, run: str, now: datetime) -> KnownBatch | None:
        """The last batch that the run has planned; None if it has none."""
        if self.numbers()[0] == 0:
            return None
        mine = (F.col("event") == Event.BATCH.value) & (F.col("run") == run)
        (found,) = self.remembered(now).where(mine).agg(F.max("batch").alias("batch")).collect()
        return None if found.batch is None else self._batch(found.batch)

    def _batch(self, number: int) -> KnownBatch:
        """The batch of that number, which has been planned."""
        mine = F.col("event").isin(Event.BATCH.value, Event.DONE.value) & (F.col("batch") == number)
        names = ("event", "batch", "statement", "version", "run", "attempt", "status", "source")
        rows = {row.event: row for row in self._all().where(mine).select(*names).collect()}
        head, done = rows[Event.BATCH.value], rows.get(Event.DONE.value)
        batch = Batch(number, from_json(Load, head.statement), head.version, head.run)
        if done is None:
            return KnownBatch(batch, is_done=False)
        return KnownBatch(batch, True, done.attempt, done.version, aborted=done.status == ABORTED, table_id=done.source)

    def files_of(self, batch: int) -> pa.Table:
        """(file, size, modified_at, etag) of a batch, however old it is."""
        mine = (F.col("event") == Event.PLANNED.value) & (F.col("batch") == batch)
        rows = self._all().where(mine).select("file", "size", "modified_at", "etag").dropDuplicates(["file"])
        found: pa.Table = rows.toArrow()
        return found

    def reports_of(self, batch: int, attempt: str | None) -> tuple[FileReport, ...]:
        """The reports of an attempt, by name; of any attempt if it is None."""
        mine = (F.col("event") == Event.RESULT.value) & (F.col("batch") == batch)
        if attempt is not None:
            mine = mine & (F.col("attempt") == attempt)
        rows = self._all().where(mine).dropDuplicates(["file"]).select(*_REPORT, micros("at")).collect()
        return tuple(sorted(map(_report, rows), key=lambda report: report.file))

    def last_attempt(self, batch: int) -> str | None:
        """The attempt that stored the newest results of the batch."""
        mine = (F.col("event") == Event.RESULT.value) & (F.col("batch") == batch)
        found = self._all().where(mine).agg(F.max_by("attempt", "at").alias("attempt")).collect()
        attempt: str | None = found[0].attempt
        return attempt

    def trim(self, now: datetime) -> None:
        """Remove the days that are not remembered any more. They are partitions, so nothing is rewritten.

        A day after that time is kept, and everything while a batch is not done. The log names the days, so that Spark
        is asked only if one has to go. A second run changes nothing.
        """
        before = (now - self._kept - _SLACK).date()
        days = {file.partition_values.get(DAY) for file in live_files(self._log, self._log.head())}
        planned, ended = self.numbers()
        if planned == ended and any(day is not None and day < str(before) for day in days):
            self.spark.sql(f"DELETE FROM {path_name(self._log.uri)} WHERE {DAY} < DATE '{before}'").collect()

    def _write(self, rows: DataFrame) -> None:
        rows.coalesce(1).write.format("delta").mode("append").save(self._log.uri)

    def _write_numbered(self, rows: DataFrame, kind: str, number: int) -> bool:
        """Whether these rows were written, and not those of another run with the same number."""
        before, token = self._log.head(), self._new_token()
        settings = {APP_ID: app_id(self.id, kind), TXN_VERSION: str(number), USER_METADATA: token}
        with under(self.spark, settings):
            until_committed()(self._write, rows)
        return any(commit.user_metadata == token for commit in self._log.commits(before, self._log.head()))

    def _frame(self, rows: Iterable[Mapping[str, Any]], at: datetime) -> DataFrame:
        given = [{"at": at, DAY: at.date(), **row} for row in rows]
        return self.spark.createDataFrame(pa.Table.from_pylist(given, EVENTS_SCHEMA))


def _events(files: pa.Table, same: Mapping[str, Any], at: datetime) -> pa.Table:
    """The files as events with these values."""
    given = {**same, "at": at, DAY: at.date()}
    columns = [
        files.column(f.name).cast(f.type)
        if f.name in files.schema.names
        else pa.repeat(pa.scalar(given.get(f.name), f.type), files.num_rows)
        for f in EVENTS_SCHEMA
    ]
    return pa.table(columns, schema=EVENTS_SCHEMA)


def _queued(files: pa.Table, source: FileSource, after: int, at: datetime) -> pa.Table:
    return _events(files, {"event": Event.QUEUED.value, "source": source.value, "batch": after}, at)


def micros(column: str) -> Column:
    """A timestamp as microseconds since 1970: Python gets the same from every session."""
    return F.unix_micros(column).alias(column)


def utc(microseconds: int) -> datetime:
    """The time of these microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


def latest_results(events: DataFrame) -> DataFrame:
    """The results of attempts that are done, with all columns, and `loaded_at` (timestamp)."""
    done = events.where(F.col("event") == Event.DONE.value)
    ended = done.groupBy("batch").agg(
        F.max_by("attempt", F.coalesce("version", F.lit(-1))).alias("attempt"),
        F.max("version").alias("version"),
        F.max("at").alias("loaded_at"),
    )
    results = events.where(F.col("event") == Event.RESULT.value).drop("version")
    return results.join(F.broadcast(ended), ["batch", "attempt"])


def _report(row: Any) -> FileReport:
    facts = row.asDict()
    status = FileStatus(facts.pop("status"))
    return FileReport(status=status, received_at=None, loaded_at=utc(facts.pop("at")), **facts)
