"""The KEEP_SEARCH_PATH job: a search table covers the files of its base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.changes.planning.sets.forms import physical_rows
from tidemark.errors import TableNotFound
from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.jobs.own_tables import make_table
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA, under
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_json
from tidemark.search.driver.entries import SCHEMA, entries, laid_out
from tidemark.search.driver.frames import all_rows_of
from tidemark.search.driver.index import SearchIndex, path_id_of
from tidemark.search.driver.snapshots import Snapshot, snapshot_at
from tidemark.search.model.jobs import MARK, KeepReport, KeepRequest, UpkeepMark
from tidemark.search.model.paths import COVERAGE, SearchPath
from tidemark.search.planning.columns import column_now
from tidemark.search.planning.upkeep import Batch, planned_upkeep
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.jobs.workspace import Workspace

__all__ = ["keep_search_path"]

_PROPERTIES = {"delta.dataSkippingNumIndexedCols": "2", "delta.checkpointInterval": "20"}
_LAYOUT = {
    "parquet.block.size": str(1 << 20),  # groups of some 64,000 rows, so that a hash is found in one of them
    "parquet.writer.version": "PARQUET_2_0",  # sorted hashes are stored as their differences
    "parquet.enable.dictionary#h": "false",
    "spark.sql.parquet.compression.codec": "zstd",
}
_ROWS_PER_PART = 2_000_000
_ROWS_OF_A_GUESS = 1_000_000  # of a file without statistics
_GRAMS_PER_ROW = 20  # of a text, for the number of parts
_MOST_FILES = 24  # of a path, from which on its rows are sorted into few files


def keep_search_path(job: JobContext, request: KeepRequest) -> KeepReport:
    """Cover the files that are not covered yet, one batch in each commit. A second run, also after a kill at any point,
    covers what is left. Raises what the logs raise.
    """
    base = snapshot_at(DeltaLog.open(request.path, job.options), request.version)
    paths = _present(base, request.paths)
    log = _search_table(job.session, request.location, job.options)
    with job.new_workspace(f"search-{request.app_id}") as workspace:
        keeper = _Keeper(job, request, base, paths, log, workspace)
        while keeper.covers_more():
            job.stop_if_due()
        keeper.sort_many_files()
    gone = [path.said for path in request.paths if path.id not in {one.id for one in paths}]
    problem = f"{', '.join(gone)}: the column is gone or has another type; drop the path" if gone else None
    return _report(log, request.app_id, base, problem)


@dataclass
class _Keeper:
    job: JobContext
    request: KeepRequest
    base: Snapshot
    paths: tuple[SearchPath, ...]
    log: DeltaLog
    workspace: Workspace

    def __post_init__(self) -> None:
        self.started_at = self.job.started_at

    def covers_more(self) -> bool:
        """Commits the next batch. False if all is covered."""
        index = SearchIndex.of(snapshot_at(self.log, self.log.head()), self.request.app_id)
        mine = self.request.app_id in index.snapshot.state.transactions
        wanted = planned_upkeep(
            self.base.files, index.covered, index.stored_ids, self.paths, most_bytes=self.request.most_bytes
        )
        empties = wanted.rebuild or not mine
        if wanted.ended and not empties:
            ids = ", ".join(map(str, wanted.ended))
            self.job.session.sql(f"DELETE FROM {path_name(self.log.uri)} WHERE path IN ({ids})").collect()
        if not wanted.batches:
            if empties and index.snapshot.files:
                self._empty(index)
            return False
        self._commit(index, wanted.batches[0], empties=empties)
        return len(wanted.batches) > 1

    def sort_many_files(self) -> None:
        """The rows of a path in many files, one for each upkeep, become few files. No row is lost or added."""
        snapshot = snapshot_at(self.log, self.log.head())
        sizes: dict[int, list[int]] = {}
        for file in snapshot.files.values():
            sizes.setdefault(path_id_of(file), []).append(_rows_in(snapshot, file.path))
        for path, rows in sizes.items():
            parts = max(1, sum(rows) // _ROWS_PER_PART)
            if len(rows) > _MOST_FILES + 2 * parts:
                self._sort(path, parts)

    def _commit(self, index: SearchIndex, batch: Batch, *, empties: bool) -> None:
        failpoint("upkeep.begun")
        session, first = self.job.session, index.next_number
        numbered = [(first + place, file) for place, file in enumerate(batch.files)]
        rows, number = all_rows_of(session, self.base, numbered, self.workspace)
        covered = [(COVERAGE, path.id, n, file.path) for path in batch.paths for n, file in numbered]
        coverage = session.createDataFrame(covered, SCHEMA)
        frame = laid_out(entries(rows, number, batch.paths), coverage, files=len(batch.files), parts=self._parts(batch))
        mark = UpkeepMark(
            self.request.app_id, self.base.version, len(batch.files), batch.size, empties, self.started_at
        )
        before = self.log.head()
        self._write(frame, index, mark, mode="overwrite" if empties else "append")
        failpoint("upkeep.committed")
        for commit in self.log.commits(before, self.log.head()):
            self.started_at = commit.timestamp
        self.job.progress.say(f"{len(batch.files)} files are covered")

    def _empty(self, index: SearchIndex) -> None:
        mark = UpkeepMark(self.request.app_id, self.base.version, 0, 0, True, self.started_at)
        self._write(self.job.session.createDataFrame([], SCHEMA), index, mark, mode="overwrite")

    def _write(self, frame: DataFrame, index: SearchIndex, mark: UpkeepMark, *, mode: str) -> None:
        number = index.snapshot.state.transactions.get(self.request.app_id, 0) + 1
        settings = {
            APP_ID: self.request.app_id,
            TXN_VERSION: str(number),
            USER_METADATA: f'{{"{MARK}": {to_json(mark)}}}',
        }
        with under(self.job.session, {**_LAYOUT, **settings}):
            frame.write.format("delta").mode(mode).partitionBy("path").save(self.log.uri)

    def _sort(self, path: int, parts: int) -> None:
        session = self.job.session
        rows = session.read.format("delta").load(self.log.uri).where(F.col("path") == path)
        few = rows.repartitionByRange(parts, "h").sortWithinPartitions("path", "h", "file")
        writer = few.write.format("delta").mode("overwrite").option("replaceWhere", f"path = {path}")
        with under(session, _LAYOUT):
            writer.option("dataChange", "false").partitionBy("path").save(self.log.uri)

    def _parts(self, batch: Batch) -> int:
        rows = sum(_rows_in(self.base, file.path) for file in batch.files)
        each = sum(_GRAMS_PER_ROW if path.method.value == "SUBSTRING" else 1 for path in batch.paths)
        return max(1, min(200, rows * each // _ROWS_PER_PART))


def _present(base: Snapshot, paths: Sequence[SearchPath]) -> tuple[SearchPath, ...]:
    """The paths whose columns exist, under their present names."""
    found = ((path, column_now(base.state.metadata, path.column)) for path in paths)
    return tuple(replace(path, column=column) for path, column in found if column is not None)


def _search_table(session: SparkSession, location: str, options: Mapping[str, str]) -> DeltaLog:
    try:
        return DeltaLog.open(location, options)
    except TableNotFound:
        return make_table(session, location, SCHEMA, properties=_PROPERTIES, partitioned_by=["path"], options=options)


def _rows_in(snapshot: Snapshot, path: str) -> int:
    found = physical_rows(snapshot.files[path].stats)
    return _ROWS_OF_A_GUESS if found is None else found


def _report(log: DeltaLog, app_id: str, base: Snapshot, problem: str | None) -> KeepReport:
    snapshot = snapshot_at(log, log.head())
    covered = SearchIndex.of(snapshot, app_id).covered.values()
    known = reduce(frozenset.union, covered, frozenset[str]())
    rows = sum(_rows_in(snapshot, path) for path in snapshot.files)
    size = sum(file.size for file in snapshot.files.values())
    return KeepReport(snapshot.version, sum(path in known for path in base.files), rows, size, problem)
