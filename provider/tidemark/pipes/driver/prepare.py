"""Files of a batch made ready: their rows in the types of the table, and a report for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

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
from tidemark.pipes.driver.new_columns import as_if_dropped, lost_by_files
from tidemark.pipes.driver.packed import PACKED
from tidemark.pipes.driver.places import place_of
from tidemark.pipes.driver.probe import broken_by_halves, broken_texts
from tidemark.pipes.driver.projection import projected, source
from tidemark.pipes.driver.readings import Reading, reading_of
from tidemark.pipes.driver.staging import Counted, FirstError, Staged, stage
from tidemark.pipes.driver.target import Target
from tidemark.pipes.driver.text_rows import NOT_TEXT
from tidemark.pipes.driver.unreadable import GONE, spark_name
from tidemark.pipes.driver.whole_texts import files_in_utf8, header_records, unclosed_files
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.files import FileReport
from tidemark.pipes.model.formats import FileType
from tidemark.pipes.planning.on_error import FileCounts, decide
from tidemark.pipes.planning.readers import CsvRead, TextRead, text_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileToLoad", "Preparation", "Prepared", "files_to_load"]

_UNCLOSED = "it ends within quotes: a quote is not closed, and its field has the rest of the file"
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
    `staged`: all rows of files that were read; None: the append reads them. `lost`: columns that must lose NOT NULL
    before the append, since no file has them.
    """

    reports: tuple[FileReport, ...]
    rows: DataFrame | None
    staged: Staged | None
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preparation:
    """Makes files of a load ready. Nothing of the target is written. `stop_if_due`: raises if the job must stop."""

    spark: SparkSession
    load: Load
    target: Target
    options: Mapping[str, str] = field(repr=False)
    workspace: Workspace
    at: datetime
    stop_if_due: Callable[[], None]

    def prepared(self, files: Sequence[FileToLoad], unread: Mapping[str, str]) -> Prepared:
        """The files read and judged by ON_ERROR. `unread`: those that cannot be read, with the
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
            found = replace(self, target=as_if_dropped(self.target, lost)).prepared(files, unread)
            return replace(found, lost=(*lost, *found.lost))
        if reading.matches and not reading.names_rows:
            broken.update(reading.unmatched(names))
            names = [name for name in names if name not in broken]
        can_be_direct = self.load.format.type in (FileType.PARQUET, FileType.ORC) and reading.selection is None
        if names and can_be_direct and self._fits(frames := reading.frames(names), reading):
            return self._direct(files, reading, frames, broken)
        return self._staged(files, reading, names, broken)

    def broken(self, files: Sequence[FileToLoad]) -> dict[str, str]:
        """Those of the files that cannot be read, with the reason, after a read of all of them has failed.

        Raises what Spark raises for failures that are not of a file, and what `stop_if_due` raises: it is called before
        each read.
        """
        names = [file.name for file in files]
        if self.load.format.type.is_text and (
            texts := broken_texts(self.load.location, self.options, names, self.stop_if_due)
        ):
            return texts
        footers = self._footers(names)
        damaged = _damaged(footers)

        def reading(some: Sequence[str]) -> Reading:
            self.stop_if_due()
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
        headers = self._headers(names)
        staged, found = self._stage(reading, names, headers)
        if trusted := self._in_utf8(staged, names, found):
            reading = replace(reading, trusted=trusted)
            staged, found = self._stage(reading, names, headers)
        problems = {**self._unclosed(names, found), **broken, **staged.unread}
        problems.update(self.changed([f for f in files if f.name not in broken]))
        if reading.names_rows:
            problems = {**self._unmatched_rows(reading, names, found), **problems}
        counts = []
        for file in files:
            one = found.get(spark_name(self.load.location, file.name), Counted())
            place = (None, None) if one.first is None else place_of(one.first, reading, file.name)
            counts.append(_counts(file, one.rows, one.errors, one.first, place, problems.get(file.name)))
        reports = decide(counts, self.load.options.on_error)
        good = [report.file for report in reports if report.status.has_rows and report.rows_loaded]
        if not good:
            return Prepared(reports, None, staged)
        wanted = None if len(good) == len(found) else [spark_name(self.load.location, name) for name in good]
        return Prepared(reports, self._with_defaults(staged.good_rows(wanted), reading), staged)

    def _stage(
        self, reading: Reading, names: Sequence[str], headers: Mapping[str, int]
    ) -> tuple[Staged, dict[str, Counted]]:
        truncate = self.load.options.truncate_columns

        def frame(some: Sequence[str]) -> DataFrame:
            shape, values = reading.shape, reading.values
            return _together(
                [
                    projected(rows, shape, self.target, values, self.at, truncate=truncate)
                    for rows in reading.frames(some)
                ]
            )

        staged = stage(reading, frame, names, self.workspace, headers, self.stop_if_due)
        return staged, staged.counted(with_values=reading.names_rows)

    def _headers(self, names: Sequence[str]) -> Mapping[str, int]:
        """Spark's path of a file, decoded → the number of rows that are its header, where it is another one."""
        read = self._text_read
        if not isinstance(read, CsvRead) or not read.multi_line or not read.skip_header or read.parse_header:
            return {}
        found = header_records(self.load.location, self.options, names, read)
        return {spark_name(self.load.location, file): number for file, number in found.items()}

    @cached_property
    def _text_read(self) -> TextRead | None:
        return text_reader(self.load.format) if self.load.format.type.is_text else None

    def _in_utf8(self, staged: Staged, names: Sequence[str], found: Mapping[str, Counted]) -> frozenset[str]:
        """The files, as Spark names them, that have a row in error for the character U+FFFD, and are UTF-8."""
        read = self._text_read
        if not isinstance(read, CsvRead) or not read.hides_bytes or not any(one.errors for one in found.values()):
            return frozenset()
        known = {spark_name(self.load.location, name): name for name in names}
        doubted = {file: known[unquote(file)] for file in staged.files_with(NOT_TEXT)}
        whole = set(files_in_utf8(self.load.location, self.options, list(doubted.values()), self.stop_if_due))
        return frozenset(file for file, name in doubted.items() if name in whole)

    def _unclosed(self, names: Sequence[str], found: Mapping[str, Counted]) -> dict[str, str]:
        """The files that end within quotes, so that a field has the rest of the file."""
        read, location = self._text_read, self.load.location
        doubted = [name for name in names if found.get(spark_name(location, name), Counted()).is_open]
        if not isinstance(read, CsvRead) or not doubted:
            return {}
        return dict.fromkeys(unclosed_files(location, self.options, doubted, read, self.stop_if_due), _UNCLOSED)

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
        suffix = None if self._text_read is None else self._text_read.suffix
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
