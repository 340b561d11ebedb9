"""Files as rows with the values of a table's columns, by their format and by how values find their columns."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, VariantType

from tidemark.changes.driver.data_files import WHOLE_FILES, escaped
from tidemark.errors import CopyRefused, FileFormatNotInstalled
from tidemark.jobs.failures import read_failures_by
from tidemark.model.spark import AVRO_PACKAGE
from tidemark.pipes.driver.blocks import FILE, placed
from tidemark.pipes.driver.footers import Footer
from tidemark.pipes.driver.headers import headers_of
from tidemark.pipes.driver.matching import matched, mismatch
from tidemark.pipes.driver.new_columns import NAMES_REFUSED, inferred, lacking, of_files, unfit_names
from tidemark.pipes.driver.projection import BAD, CARRIED, CHECKED, CHECKED_SCHEMA, OPEN, RAW, SKIP, Shape, source
from tidemark.pipes.driver.selected import Selection, selection_of
from tidemark.pipes.driver.spellings import field_of, first_of, member_of
from tidemark.pipes.driver.target import Target
from tidemark.pipes.driver.text_rows import VARIANT, TextRows, cleaned, column, without_texts
from tidemark.pipes.driver.unreadable import spark_name
from tidemark.pipes.model.copying import Load, MatchBy
from tidemark.pipes.planning.readers import (
    ColumnarRead,
    CsvRead,
    JsonRead,
    TextRead,
    ValueFormats,
    columnar_reader,
    text_reader,
)
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Reading", "reading_of"]

_ONE_VARIANT = (
    "files of type {kind} have no columns by position. Name the columns (SELECT $1:name …), use MATCH_BY_COLUMN_NAME,"
    " or load them into a table with one column of type VARIANT."
)
_NO_AVRO = "Failed to find data source: avro"


@dataclass(frozen=True)
class Reading:
    """How the files of a load become rows. `footers`: of files with columns, by name. `extra`: columns that the target
    is going to have. `trusted`: of TextRows.
    """

    spark: SparkSession
    load: Load
    target: Target
    options: Mapping[str, str] = field(repr=False)
    at: datetime
    footers: Mapping[str, Footer] = field(default_factory=dict)
    extra: tuple[StructField, ...] = ()
    trusted: frozenset[str] = frozenset()

    @property
    def values(self) -> ValueFormats:
        """The patterns of dates, times and binary values."""
        return ValueFormats()

    @property
    def skipped_rows(self) -> int:
        """The number of rows at the beginning of a file that are no data."""
        return 0

    @cached_property
    def fields(self) -> tuple[StructField, ...]:
        """The columns of the target that the statement may fill."""
        return (*self.target.wanted(self.load), *self.extra)

    @property
    def matches(self) -> bool:
        """Whether columns are found by their names."""
        return self.selection is None and self.load.options.match_by is not MatchBy.NONE

    @abstractmethod
    def names(self, files: Sequence[str]) -> list[str]:
        """The names of the columns that the files have."""

    @property
    def names_rows(self) -> bool:
        """Whether the rows of a file have its names, so that only a read of all of them finds those."""
        return False

    @abstractmethod
    def by_names(self, files: Sequence[str]) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
        """The names of columns, and the files that have them."""

    def unmatched(self, files: Sequence[str]) -> dict[str, str]:
        """The files without a column of the table, each with the reason."""
        how = self.load.options.match_by
        found = ((mismatch(names, self.fields, how), some) for names, some in self.by_names(files))
        return {file: problem for problem, some in found if problem is not None for file in some}

    def unfit(self, files: Sequence[str]) -> dict[str, str]:
        """The files with a new column whose name the table cannot have, each with the reason."""
        if not unfit_names((field.name for field in self.extra), self.target):
            return {}
        found = ((unfit_names(lacking(names, self.target), self.target), some) for names, some in self.by_names(files))
        return {file: NAMES_REFUSED.format(names=", ".join(odd)) for odd, some in found if odd for file in some}

    @abstractmethod
    def new_columns(self, files: Sequence[str]) -> tuple[StructField, ...]:
        """The columns of the files that the target lacks."""

    @cached_property
    def selection(self) -> Selection | None:
        """The items of its SELECT. Raises CopyRefused if there are more or fewer than columns."""
        if self.load.select is None:
            return None
        return selection_of(self.load, self.fields, self.target)

    @cached_property
    def shape(self) -> Shape:
        """The columns that are filled."""
        if self.selection is not None:
            fields = self.fields[: len(self.selection.items)] if not self.load.columns else self.fields
            return Shape(fields, tuple(map(self.selection.position, range(len(self.selection.items)))))
        return self.plain_shape()

    @abstractmethod
    def plain_shape(self) -> Shape:
        """The columns that are filled without a SELECT."""

    @abstractmethod
    def frames(self, files: Sequence[str]) -> list[DataFrame]:
        """The rows of the files, in one frame for all that have the same columns: their types may differ. Lazy.

        CARRIED, CHECKED and source(n) for each column of `shape`.
        """

    def paths(self, files: Sequence[str]) -> list[str]:
        """The files as Spark's readers take them."""
        return [escaped(f"{self.load.location}/{file}") for file in files]

    def chosen(self, rows: DataFrame, plain: Sequence[Column]) -> DataFrame:
        """The rows with the items of the SELECT, or with these columns, as sources."""
        if self.selection is not None:
            return self.selection.applied(rows, self.load, self.at)
        named = [value.alias(source(n)) for n, value in enumerate(plain)]
        return rows.select(*CARRIED, F.lit(None).cast(CHECKED_SCHEMA).alias(CHECKED), *named)


@dataclass(frozen=True)
class _CsvReading(Reading):
    @cached_property
    def read(self) -> CsvRead:
        found = text_reader(self.load.format)
        assert isinstance(found, CsvRead)
        return found

    @property
    def values(self) -> ValueFormats:
        return self.read.values

    @property
    def skipped_rows(self) -> int:
        return 1 if self.read.parse_header else self.read.skip_header

    def plain_shape(self) -> Shape:
        if self.load.options.match_by is MatchBy.NONE:
            return Shape(self.fields, tuple(range(1, len(self.fields) + 1)))
        if not self.read.parse_header:
            problem = "MATCH_BY_COLUMN_NAME needs the names in the files: set PARSE_HEADER = TRUE in the file format."
            raise CopyRefused(table=self.target.name, problem=problem)
        return Shape(self.fields, (None,) * len(self.fields))

    def frames(self, files: Sequence[str]) -> list[DataFrame]:
        if self.matches:
            return self._by_headers(files)
        width = len(self.fields) if self.selection is None else max(1, self.selection.width)
        rows = self._text(width, exact=self.selection is None).rows(self.paths(files))
        return [self.chosen(rows, [F.col(column(n)) for n in range(1, width + 1)])]

    def names(self, files: Sequence[str]) -> list[str]:
        return [name for header in self._headers(files) for name in header]

    def by_names(self, files: Sequence[str]) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
        return self._headers(files).items()

    def new_columns(self, files: Sequence[str]) -> tuple[StructField, ...]:
        return tuple(StructField(name, StringType()) for name in lacking(self.names(files), self.target))

    def _headers(self, files: Sequence[str]) -> Mapping[tuple[str, ...], list[str]]:
        """The files by the names in their first line."""
        new = [file for file in files if file not in self._known_headers]
        found = headers_of(self.load.location, self.options, new, self.read) if new else ()
        self._known_headers.update(zip(new, found, strict=True))
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for file in files:
            groups[self._known_headers[file]].append(file)
        return groups

    @cached_property
    def _known_headers(self) -> dict[str, tuple[str, ...]]:
        """The names in first lines that were read, so that each file is opened for them once."""
        return {}

    def _text(self, width: int, *, exact: bool) -> TextRows:
        return TextRows(self.spark, self.read, width, exact, self.trusted)

    def _by_headers(self, files: Sequence[str]) -> list[DataFrame]:
        frames = []
        for header, members in self._headers(files).items():
            there = matched(header, self.fields, self.load.options.match_by)
            rows = self._text(max(1, len(header)), exact=True).rows(self.paths(members))
            frames.append(self.chosen(rows, [field_of(there.get(f.name, ()), header) for f in self.fields]))
        return frames


@dataclass(frozen=True)
class _DocumentReading(Reading):
    """JSON and XML: a row is a value of type VARIANT."""

    @cached_property
    def read(self) -> TextRead:
        return text_reader(self.load.format)

    @property
    def values(self) -> ValueFormats:
        return self.read.values

    def plain_shape(self) -> Shape:
        if self.load.options.match_by is MatchBy.NONE:
            return Shape(_one_variant(self), (None,))
        return Shape(self.fields, (None,) * len(self.fields))

    def names(self, files: Sequence[str]) -> list[str]:
        return self._keys(self._rows(files), known=False)

    def new_columns(self, files: Sequence[str]) -> tuple[StructField, ...]:
        rows, names = self._rows(files), lacking(self.names(files), self.target)
        return inferred(rows, {name: self._member((name,)) for name in names})

    def _rows(self, files: Sequence[str]) -> DataFrame:
        return TextRows(self.spark, self.read, 0, exact=False).rows(self.paths(files))

    def frames(self, files: Sequence[str]) -> list[DataFrame]:
        rows = self._rows(files)
        if self.selection is not None or self.load.options.match_by is MatchBy.NONE:
            return [self.chosen(rows, [F.col(VARIANT)])]
        there = matched(self._keys(rows), self.fields, self.load.options.match_by)
        return [self.chosen(rows, [self._member(there.get(f.name, ())) for f in self.fields])]

    def _member(self, spellings: Sequence[str]) -> Column:
        return cleaned(member_of(spellings), self.read)

    def _keys(self, rows: DataFrame, *, known: bool = True) -> list[str]:
        """The names in the documents. `known`: names that must be equal to the table's are not looked for."""
        if known and self.load.options.match_by is MatchBy.CASE_SENSITIVE:
            return [f.name for f in self.fields]
        return [row.key for row in self._with_keys(rows).select("key").distinct().collect()]

    def _with_keys(self, rows: DataFrame) -> DataFrame:
        """FILE and a `key` of a document, for each key of each document."""
        text = F.col(RAW) if isinstance(self.read, JsonRead) and not self.read.multi_line else F.to_json(VARIANT)
        return rows.select(FILE, F.explode(F.json_object_keys(text)).alias("key"))

    @property
    def names_rows(self) -> bool:
        return self.matches

    def by_names(self, files: Sequence[str]) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
        if not files:
            return ()
        found = self._with_keys(self._rows(files)).groupBy(FILE).agg(F.sort_array(F.collect_set("key")).alias("keys"))
        names = {unquote(row[FILE]): tuple(row["keys"]) for row in found.collect()}
        return ((names.get(spark_name(self.load.location, file), ()), [file]) for file in files)


@dataclass(frozen=True)
class _ColumnReading(Reading):
    """Parquet, ORC and Avro: files with the same columns are read together."""

    @cached_property
    def read(self) -> ColumnarRead:
        return columnar_reader(self.load.format)

    def plain_shape(self) -> Shape:
        if self.load.options.match_by is MatchBy.NONE:
            return Shape(_one_variant(self), (None,))
        return Shape(self.fields, (None,) * len(self.fields))

    def frames(self, files: Sequence[str]) -> list[DataFrame]:
        return [self._group(members) for members in self._groups(files)]

    def _groups(self, files: Sequence[str]) -> list[list[str]]:
        """The files by their columns."""
        groups: dict[str, list[str]] = defaultdict(list)
        for file in files:
            footer = self.footers.get(file)
            groups["" if footer is None else footer.columns].append(file)
        return list(groups.values())

    def names(self, files: Sequence[str]) -> list[str]:
        return [name for members in self._groups(files) for name in self._read(members).columns]

    def by_names(self, files: Sequence[str]) -> Iterable[tuple[Sequence[str], Sequence[str]]]:
        return ((self._read(members).columns, members) for members in self._groups(files))

    def new_columns(self, files: Sequence[str]) -> tuple[StructField, ...]:
        schemas = [self._read(members).schema for members in self._groups(files)]
        return of_files([{f.name: f.dataType for f in schema.fields} for schema in schemas], self.target)

    def _read(self, files: Sequence[str]) -> DataFrame:
        known = self._known_reads.get(tuple(files))
        if known is None:
            kind = self.load.format.type.value.lower()
            known = self.spark.read.format(kind).options(**WHOLE_FILES).load(self.paths(files))
            self._known_reads[tuple(files)] = known
        return known

    @cached_property
    def _known_reads(self) -> dict[tuple[str, ...], DataFrame]:
        """Files with the same columns, so that Spark looks for those once."""
        return {}

    def _group(self, files: Sequence[str]) -> DataFrame:
        found = self._read(files)
        rows = found.select(
            *placed(found),
            *(F.lit(None).cast("string").alias(name) for name in (RAW, BAD)),
            *(F.lit(False).alias(name) for name in (SKIP, OPEN)),
            *(self._cleaned(field) for field in found.schema.fields),
        )
        names = found.columns
        if self.matches:
            there = matched(names, self.fields, self.load.options.match_by)
            kinds = {field.name: field.dataType for field in found.schema.fields}
            plain = [first_of([self._for(f, name, kinds[name]) for name in there.get(f.name, ())]) for f in self.fields]
        else:
            plain = [F.to_variant_object(F.struct(*(F.col(quoted(name)) for name in names)))]
        return self.chosen(rows, plain)

    def _for(self, wanted: StructField, name: str, kind: DataType) -> Column:
        """The file's column for one of the table. Bytes that are no text become hexadecimal digits in a text column."""
        value, is_text = F.col(quoted(name)), isinstance(wanted.dataType, StringType)
        return F.hex(value) if is_text and isinstance(kind, BinaryType) and not self.read.binary_as_text else value

    def _cleaned(self, field: StructField) -> Column:
        value = F.col(quoted(field.name))
        if isinstance(field.dataType, StringType):
            value = F.trim(value) if self.read.trim else value
            value = without_texts(value, self.read.null_if)
        return value.alias(field.name)


def reading_of(
    spark: SparkSession,
    load: Load,
    target: Target,
    options: Mapping[str, str],
    at: datetime,
    footers: Mapping[str, Footer],
    files: Sequence[str],
) -> Reading:
    """The reading of these files by the load's format. Raises CopyRefused if statement, format and table do not fit."""
    kind = load.format.type
    if not kind.is_text:
        found: Reading = _ColumnReading(spark, load, target, options, at, footers)
    elif kind == "CSV":
        found = _CsvReading(spark, load, target, options, at)
    else:
        found = _DocumentReading(spark, load, target, options, at)
    if load.options.enable_schema_evolution and found.matches and files:
        return replace(found, extra=found.new_columns(files))
    target.require_values(found.shape.given)
    return found


@read_failures_by
def _reader_missing(text: str) -> FileFormatNotInstalled | None:
    """The failure of a Spark that has no reader of Avro files."""
    if _NO_AVRO not in text:
        return None
    return FileFormatNotInstalled(file_format="Avro", package=AVRO_PACKAGE)


def _one_variant(reading: Reading) -> tuple[StructField, ...]:
    fields = reading.fields
    if len(fields) != 1 or not isinstance(fields[0].dataType, (VariantType, StringType)):
        problem = _ONE_VARIANT.format(kind=reading.load.format.type.value)
        raise CopyRefused(table=reading.target.name, problem=problem)
    return fields
