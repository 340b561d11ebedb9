"""The KEEP_SEARCH_PATH job: a search table covers the files of its base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, DataFrameWriter
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
from tidemark.search.model.paths import COVERAGE, EVERYWHERE, SearchPath
from tidemark.search.planning.columns import column_now
from tidemark.search.planning.upkeep import Batch, planned_upkeep

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
    return _report(log, request.app_id, paths, base, problem)


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
        """Makes the next commit. False if all is covered."""
        index = SearchIndex.of(snapshot_at(self.log, self.log.head()), self.request.app_id, self.paths)
        mine = self.request.app_id in index.snapshot.state.transactions
        wanted = planned_upkeep(
            self.base.files, index.covered, index.stored_ids, self.paths, most_bytes=self.request.most_bytes
        )
        empties = wanted.rebuild or not mine
        if wanted.ended and not empties:
            self._remove(index, wanted.ended)
        elif wanted.batches:
            self._commit(index, wanted.batches[0], empties=empties)
        elif empties and index.snapshot.files:
            self._empty(index)
        else:
            return False
        return True  # Delta passes over a commit whose number another run has used meanwhile

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
        meanings = [(COVERAGE, path.id, EVERYWHERE, path.meaning) for path in batch.paths]
        coverage = session.createDataFrame([*covered, *meanings], SCHEMA)
        frame = laid_out(entries(rows, number, batch.paths), coverage, files=len(batch.files), parts=self._parts(batch))
        mark = self._mark(len(batch.files), batch.size, rebuilt=empties)
        self._write(frame, index, mark, mode="overwrite" if empties else "append")
        failpoint("upkeep.committed")
        self.job.progress.say(f"{len(batch.files)} files are covered")

    def _empty(self, index: SearchIndex) -> None:
        self._write(self.job.session.createDataFrame([], SCHEMA), index, self._mark(rebuilt=True), mode="overwrite")

    def _remove(self, index: SearchIndex, ids: Sequence[int]) -> None:
        """Removes the rows of these ids, and those that say which files they cover. So a path that has such an id later
        covers no file.
        """
        rows = self.job.session.read.format("delta").load(self.log.uri).where(F.col("path") == COVERAGE)
        kept = rows.where(~F.col("h").isin(*ids)).coalesce(1)
        replaced = f"path IN ({', '.join(map(str, (COVERAGE, *ids)))})"
        self._write(kept, index, self._mark(), mode="overwrite", replaced=replaced)

    def _mark(self, files: int = 0, read: int = 0, *, rebuilt: bool = False) -> UpkeepMark:
        return UpkeepMark(self.request.app_id, self.base.version, files, read, rebuilt, self.started_at)

    def _write(
        self, frame: DataFrame, index: SearchIndex, mark: UpkeepMark, *, mode: str, replaced: str | None = None
    ) -> None:
        """Commits rows, in place of those that are `replaced`. The next commit begins at its time."""
        number = index.snapshot.state.transactions.get(self.request.app_id, 0) + 1
        writer = frame.write.mode(mode)
        self._save(
            writer if replaced is None else writer.option("replaceWhere", replaced),
            mark,
            {APP_ID: self.request.app_id, TXN_VERSION: str(number)},
        )

    def _save(self, writer: DataFrameWriter, mark: UpkeepMark, more: Mapping[str, str | None]) -> None:
        before = self.log.head()
        with under(self.job.session, {**_LAYOUT, **more, USER_METADATA: f'{{"{MARK}": {to_json(mark)}}}'}):
            writer.format("delta").partitionBy("path").save(self.log.uri)
        for commit in self.log.commits(before, self.log.head()):
            self.started_at = commit.timestamp

    def _sort(self, path: int, parts: int) -> None:
        rows = self.job.session.read.format("delta").load(self.log.uri).where(F.col("path") == path)
        few = rows.repartitionByRange(parts, "h").sortWithinPartitions("path", "h", "file")
        writer = few.write.mode("overwrite").option("replaceWhere", f"path = {path}").option("dataChange", "false")
        self._save(writer, self._mark(), {})

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


def _report(
    log: DeltaLog, app_id: str, paths: tuple[SearchPath, ...], base: Snapshot, problem: str | None
) -> KeepReport:
    snapshot = snapshot_at(log, log.head())
    covered = SearchIndex.of(snapshot, app_id, paths).covered.values()
    known = reduce(frozenset.union, covered, frozenset[str]())
    rows = sum(_rows_in(snapshot, path) for path in snapshot.files)
    size = sum(file.size for file in snapshot.files.values())
    return KeepReport(snapshot.version, sum(path in known for path in base.files), rows, size, problem)
