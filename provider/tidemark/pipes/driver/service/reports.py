"""Reports of the loads of a pipe, from its table of files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from tidemark.errors import TableNotFound
from tidemark.jobs.run import utc_now
from tidemark.lake.delta_log import DeltaLog
from tidemark.pipes.driver.files_table import FilesTable, micros, utc
from tidemark.pipes.driver.histories import file_loads
from tidemark.pipes.model.events import KEPT
from tidemark.pipes.model.files import FileStatus
from tidemark.pipes.model.served import ServedPipe
from tidemark.pipes.planning.marks import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MOST_REPORTED", "RECENT", "FileLoad", "PipeReports", "Recent", "Span"]

RECENT = timedelta(minutes=10)  # as there
MOST_REPORTED = 10_000  # as there
_IN_PROGRESS = FileStatus.LOAD_IN_PROGRESS.value
_TIMES = ("received_at", "loaded_at")


@dataclass(frozen=True)
class FileLoad:
    """A file of a batch that is done. `facts`: the columns of `file_loads`, times in UTC. `mark`: behind this file."""

    facts: Mapping[str, Any]
    mark: Mark

    @property
    def loaded_at(self) -> datetime:
        """The end of its batch."""
        found: datetime = self.facts["loaded_at"]
        return found


@dataclass(frozen=True)
class Recent:
    """The last loads of a pipe, oldest first. `is_whole`: whether no load is missing between the mark and the first of
    them. `active`: files that wait or are being loaded.
    """

    loads: tuple[FileLoad, ...]
    is_whole: bool
    active: int
    mark: Mark


@dataclass(frozen=True)
class Span:
    """Loads between two times, oldest first. `goes_on_at`: the time of the first one that was left out."""

    loads: tuple[FileLoad, ...]
    goes_on_at: datetime | None


@dataclass(frozen=True)
class _Seen:
    """The last loads at one version of the table. `before`: the last load that is not among them."""

    table: str
    version: int
    loads: tuple[FileLoad, ...]
    before: Mark
    active: int


class PipeReports:
    """Reads reports. The last answer of each pipe is kept, and read again only if its table has a new version."""

    def __init__(
        self, session: SparkSession, options: Mapping[str, str], clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._session, self._options, self._clock = session, options, clock
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}

    def recent(self, pipe: ServedPipe, begin: Mark | None) -> Recent:
        """The loads behind a mark, of the last 10 minutes, at most the last 10,000. A mark of another table is none."""
        log = self._log(pipe)
        if log is None:
            return Recent((), begin is None, 0, Mark())
        now, seen = self._clock(), self._look(pipe, log)
        loads = tuple(load for load in seen.loads if load.loaded_at >= now - RECENT)
        left_out = seen.loads[: len(seen.loads) - len(loads)]
        before = left_out[-1].mark if left_out else seen.before
        is_foreign = begin is not None and begin.table != seen.before.table
        start = Mark(table=seen.before.table) if begin is None or is_foreign else begin
        is_whole = begin is None or (not is_foreign and start >= before)
        shown = tuple(load for load in loads if load.mark > start)
        return Recent(shown, is_whole, seen.active, max([start, before, *(load.mark for load in loads)]))

    def span(self, pipe: ServedPipe, start: datetime, end: datetime) -> Span:
        """The loads that ended from `start` on and before `end`. Batches are shown whole: after the first 10,000 files
        no further batch is.
        """
        log = self._log(pipe)
        if log is None:
            return Span((), None)
        table = self._table(log)
        loads = file_loads(table, self._clock()).where(
            (F.col("loaded_at") >= F.lit(start)) & (F.col("loaded_at") < F.lit(end))
        )
        order = ("loaded_at", "batch", "file")
        found = self._read(_numbered(loads).orderBy(*order).limit(MOST_REPORTED + 1), table)
        if len(found) <= MOST_REPORTED:
            return Span(found, None)
        cut = found[-1].loaded_at
        whole = tuple(load for load in found if load.loaded_at < cut)
        if whole:
            return Span(whole, cut)
        first = self._read(_numbered(loads.where(F.col("loaded_at") == F.lit(cut))).orderBy(*order), table)
        (later,) = (
            loads.where(F.col("loaded_at") > F.lit(cut))
            .agg(F.min("loaded_at").alias("at"))
            .select(micros("at"))
            .collect()
        )
        return Span(first, None if later["at"] is None else utc(later["at"]))

    def _log(self, pipe: ServedPipe) -> DeltaLog | None:
        try:
            return DeltaLog.open(pipe.queue, self._options)
        except TableNotFound:
            return None

    def _table(self, log: DeltaLog) -> FilesTable:
        return FilesTable(self._session, log, self._options, KEPT)

    def _look(self, pipe: ServedPipe, log: DeltaLog) -> _Seen:
        state = log.state()
        with self._lock:
            seen = self._seen.get(pipe.queue)
        if seen is not None and (seen.table, seen.version) == (state.table_id, state.version):
            return seen
        now, table = self._clock(), self._table(log)
        loads = file_loads(table, now)
        done = loads.where(F.col("status") != _IN_PROGRESS)
        newest = _numbered(done.where(F.col("loaded_at") >= F.lit(now - RECENT)))
        rows = self._read(newest.orderBy(F.desc("batch"), F.desc("position")).limit(MOST_REPORTED + 1), table)
        active = loads.where(F.col("status") == _IN_PROGRESS).count()
        kept = tuple(reversed(rows[:MOST_REPORTED]))
        before = rows[-1].mark if len(rows) > MOST_REPORTED else self._before(done, now, table)
        seen = _Seen(state.table_id, state.version, kept, before, active)
        with self._lock:
            self._seen[pipe.queue] = seen
        return seen

    def _before(self, done: DataFrame, now: datetime, table: FilesTable) -> Mark:
        """The last load that ended before the time of the report."""
        older = done.where(F.col("loaded_at") < F.lit(now - RECENT)).groupBy("batch").count()
        last = older.orderBy(F.desc("batch")).limit(1).collect()
        return Mark(last[0]["batch"], last[0]["count"], table.id) if last else Mark(table=table.id)

    def _read(self, loads: DataFrame, table: FilesTable) -> tuple[FileLoad, ...]:
        plain = [name for name in loads.columns if name not in _TIMES]
        rows = loads.select(*plain, *map(micros, _TIMES)).collect()
        return tuple(_load(row.asDict(), table.id) for row in rows)


def _numbered(loads: DataFrame) -> DataFrame:
    """The loads with their `position` in their batch, from 1."""
    return loads.withColumn("position", F.row_number().over(Window.partitionBy("batch").orderBy("file")))


def _load(facts: dict[str, Any], table: str) -> FileLoad:
    times = {name: None if facts[name] is None else utc(facts[name]) for name in _TIMES}
    return FileLoad({**facts, **times}, Mark(facts["batch"], facts["position"], table))
