"""Files of a batch made ready: their rows in the types of the table, and a report for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.delivery.driver.checks import DEFAULT, checks_of
from tidemark.delivery.driver.fit import nullable
from tidemark.jobs.workspace import Workspace
from tidemark.lake.storage import Storage, StoredFile
from tidemark.pipes.driver.file_requests import for_each_file
from tidemark.pipes.driver.files_table import utc
from tidemark.pipes.driver.footers import Footer, read_footers
from tidemark.pipes.driver.new_columns import as_if_dropped, drop_not_null, lost_by_files
from tidemark.pipes.driver.packed import PACKED
from tidemark.pipes.driver.places import place_of
from tidemark.pipes.driver.probe import broken_by_halves, broken_texts
from tidemark.pipes.driver.projection import projected, source
from tidemark.pipes.driver.readings import Reading, reading_of
from tidemark.pipes.driver.staging import Counted, FirstError, Staged, stage
from tidemark.pipes.driver.target import Target, open_target
from tidemark.pipes.driver.unreadable import GONE, spark_name
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.files import FileReport
from tidemark.pipes.model.formats import FileType
from tidemark.pipes.planning.on_error import FileCounts, decide
from tidemark.pipes.planning.readers import text_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileToLoad", "Preparation", "Prepared", "files_to_load"]

_CHANGED = "it changed while it was read; load it again when it is complete"


@dataclass(frozen=True)
class FileToLoad:
    """A file as it was when its batch was planned; None: that is not known."""

    name: str
    size: int | None
    modified_at: datetime | None
    etag: str | None = None

    def is_still(self, found: StoredFile) -> bool:
        """Whether the file is unchanged, by the storage's mark of its content, or by size and time if it has none."""
        if self.etag and found.etag:
            return (found.size, found.etag) == (self.size, self.etag)
        return self.modified_at is None or (found.size, found.modified_at) == (self.size, self.modified_at)


def files_to_load(files: pa.Table) -> list[FileToLoad]:
    """The files (file, size, modified_at, etag) by name."""
    names, sizes, etags = (files.column(name).to_pylist() for name in ("file", "size", "etag"))
    times = files.column("modified_at").cast("int64").to_pylist()
    found = [
        FileToLoad(name, size, None if at is None else utc(at), etag)
        for name, size, at, etag in zip(names, sizes, times, etags, strict=True)
    ]
    return sorted(found, key=lambda file: file.name)


@dataclass(frozen=True)
class Prepared:
    """`reports`: of all files, by name. `rows`: those to append, with columns of the target; None: there are none.
    `staged`: all rows of files that were read; None: the append reads them.
    """

    reports: tuple[FileReport, ...]
    rows: DataFrame | None
    staged: Staged | None


@dataclass(frozen=True)
class Preparation:
    """Makes files of a load ready. `alters`: a load that evolves the table takes NOT NULL from columns without values.
    Otherwise they are read as if it had gone.
    """

    spark: SparkSession
    load: Load
    target: Target
    options: Mapping[str, str] = field(repr=False)
    workspace: Workspace
    at: datetime
    alters: bool = True

    def prepared(self, files: Sequence[FileToLoad], unread: Mapping[str, str]) -> Prepared:
        """The files read and judged by ON_ERROR; no row is written. `unread`: those that cannot be read, with the
        reason. Raises CopyRefused.
        """
        broken = {**self._packed_otherwise(files), **unread, **self._changed_before(files)}
        footers = self._footers([file.name for file in files if file.name not in broken])
        broken.update(_damaged(footers))
        names = [file.name for file in files if file.name not in broken]
        reading = reading_of(self.spark, self.load, self.target, self.options, self.at, footers, names)
        evolves = self.load.options.enable_schema_evolution and reading.matches and bool(names)
        if evolves and (unfit := reading.unfit(names)):
            return self.prepared(files, {**unread, **unfit})
        if evolves and (lost := lost_by_files(self.target, lambda: reading.names(names))):
            return replace(self, target=self._without_not_null(lost)).prepared(files, unread)
        if reading.matches and not reading.names_rows:
            broken.update(reading.unmatched(names))
            names = [name for name in names if name not in broken]
        can_be_direct = self.load.format.type in (FileType.PARQUET, FileType.ORC) and reading.selection is None
        if names and can_be_direct and self._fits(frames := reading.frames(names), reading):
            return self._direct(files, reading, frames, broken)
        return self._staged(files, reading, names, broken)

    def broken(self, files: Sequence[FileToLoad], go_on: Callable[[], None]) -> dict[str, str]:
        """Those of the files that cannot be read, with the reason, after a read of all of them has failed.

        Nothing of the target is written. `go_on`: called before each read. Raises what Spark raises for failures that
        are not of a file.
        """
        names = [file.name for file in files]
        if self.load.format.type.is_text and (texts := broken_texts(self.load.location, self.options, names)):
            return texts
        footers = self._footers(names)
        damaged = _damaged(footers)

        def reading(some: Sequence[str]) -> Reading:
            go_on()
            return reading_of(self.spark, self.load, self.target, self.options, self.at, footers, some)

        left = [name for name in names if name not in damaged]
        return {**damaged, **broken_by_halves(self.load.location, left, reading)}

    def changed(self, files: Sequence[FileToLoad]) -> dict[str, str]:
        """Files that are not as they were when they were listed, with the reason; GONE for those that do not exist."""
        storage, names = Storage(self.load.location, self.options), [file.name for file in files]
        pairs = zip(files, for_each_file(storage, storage.stored_file, names), strict=True)
        return {
            file.name: GONE if found is None else _CHANGED
            for file, found in pairs
            if found is None or not file.is_still(found)
        }

    def _changed_before(self, files: Sequence[FileToLoad]) -> dict[str, str]:
        """The same before anything is read, of a disk: a store of objects is asked once, after the read."""
        return self.changed(files) if Storage(self.load.location, self.options).is_local else {}

    def _footers(self, names: Sequence[str]) -> dict[str, Footer]:
        """The footers by file; none of text files."""
        if self.load.format.type.is_text:
            return {}
        found = read_footers(self.load.location, self.options, self.load.format.type, names)
        return {footer.file: footer for footer in found}

    def _without_not_null(self, columns: Sequence[str]) -> Target:
        if not self.alters:
            return as_if_dropped(self.target, columns)
        drop_not_null(self.spark, self.target, columns)
        return open_target(self.load, self.options)

    def _fits(self, frames: Sequence[DataFrame], reading: Reading) -> bool:
        """Whether no row can be in error, so that nothing has to be staged."""
        fields = reading.shape.fields
        same = all(
            frame.schema[source(n)].dataType.simpleString() == nullable(f.dataType).simpleString()
            for frame in frames
            for n, f in enumerate(fields)
        )
        return same and not checks_of(self.target.metadata, StructType(list(fields)), reading.shape.given, self.at)

    def _direct(
        self, files: Sequence[FileToLoad], reading: Reading, frames: Sequence[DataFrame], broken: Mapping[str, str]
    ) -> Prepared:
        """`frames`: of all files that are not broken. No row of them is in error, so all are loaded, or none.

        They are read by the append.
        """
        counts = []
        for file in files:
            number = 0 if file.name in broken else reading.footers[file.name].rows or 0
            counts.append(_counts(file, number, 0, problem=broken.get(file.name)))
        reports = decide(counts, self.load.options.on_error)
        if not any(report.rows_loaded for report in reports):
            return Prepared(reports, None, None)
        columns = [F.col(source(n)).alias(field.name) for n, field in enumerate(reading.shape.fields)]
        rows = _together([frame.select(*columns) for frame in frames])
        return Prepared(reports, self._with_defaults(rows, reading), None)

    def _staged(
        self, files: Sequence[FileToLoad], reading: Reading, names: Sequence[str], broken: Mapping[str, str]
    ) -> Prepared:
        truncate = self.load.options.truncate_columns

        def frame(some: Sequence[str]) -> DataFrame:
            shape, values = reading.shape, reading.values
            return _together(
                [
                    projected(rows, shape, self.target, values, self.at, truncate=truncate)
                    for rows in reading.frames(some)
                ]
            )

        staged = stage(reading, frame, names, self.workspace)
        problems = {**broken, **staged.unread, **self.changed([f for f in files if f.name not in broken])}
        found = staged.counted(with_values=reading.names_rows)
        if reading.names_rows:
            problems = {**self._unmatched_rows(reading, names, found), **problems}
        counts = []
        for file in files:
            rows, errors, first, _ = found.get(spark_name(self.load.location, file.name), Counted())
            place = (None, None) if first is None else place_of(first, reading, file.name)
            counts.append(_counts(file, rows, errors, first, place, problems.get(file.name)))
        reports = decide(counts, self.load.options.on_error)
        good = [report.file for report in reports if report.status.has_rows and report.rows_loaded]
        if not good:
            return Prepared(reports, None, staged)
        wanted = None if len(good) == len(found) else [spark_name(self.load.location, name) for name in good]
        return Prepared(reports, self._with_defaults(staged.good_rows(wanted), reading), staged)

    def _unmatched_rows(self, reading: Reading, names: Sequence[str], found: Mapping[str, Counted]) -> dict[str, str]:
        """Files whose documents have no name of the table: those without a value are read once more."""
        counts = {name: found.get(spark_name(self.load.location, name), Counted()) for name in names}
        empty = [name for name, one in counts.items() if one.rows > one.errors and not one.with_values]
        return reading.unmatched(empty)

    def _with_defaults(self, rows: DataFrame, reading: Reading) -> DataFrame:
        """The rows with the defaults of columns that the files do not give."""
        defaults = {
            field.name: F.expr(str(field.metadata[DEFAULT])).cast(nullable(field.dataType))
            for field in self.target.schema.fields
            if DEFAULT in field.metadata and field.name.lower() not in reading.shape.given
        }
        return rows.select("*", *(value.alias(name) for name, value in defaults.items()))

    def _packed_otherwise(self, files: Sequence[FileToLoad]) -> dict[str, str]:
        """Text files that Spark would unpack, or not, against COMPRESSION: it decides by the end of a name."""
        suffix = text_reader(self.load.format).suffix if self.load.format.type.is_text else None
        if suffix is None:
            return {}
        if suffix:
            said = f"its name does not end with {suffix}, so Spark would not unpack it as COMPRESSION says"
            return {file.name: said for file in files if not file.name.endswith(suffix)}
        said = "its name says that it is packed, and COMPRESSION = NONE says that it is not"
        return {file.name: said for file in files if file.name.endswith(PACKED)}


def _damaged(footers: Mapping[str, Footer]) -> dict[str, str]:
    return {name: footer.problem for name, footer in footers.items() if footer.problem is not None}


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def _counts(
    file: FileToLoad,
    rows: int,
    errors: int,
    first: FirstError | None = None,
    place: tuple[int | None, int | None] = (None, None),
    problem: str | None = None,
) -> FileCounts:
    """The counts of a file; none of one that cannot be read."""
    if problem is not None:
        return FileCounts(
            file=file.name, size=file.size or 0, rows_parsed=0, rows_good=0, errors=0, system_error=problem
        )
    return FileCounts(
        file=file.name,
        size=file.size or 0,
        rows_parsed=rows,
        rows_good=rows - errors,
        errors=errors,
        first_error=None if first is None else first.message,
        first_error_line=place[0],
        first_error_character=place[1],
        first_error_column=None if first is None else first.column,
    )
