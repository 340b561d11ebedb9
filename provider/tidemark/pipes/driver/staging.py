"""Rows of text files, read once: they are staged as Parquet, counted by file, and appended from there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.delivery.driver.fit import nullable
from tidemark.jobs.settings import under
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.jobs.workspace import Workspace
from tidemark.pipes.driver.blocks import BLOCK, FILE, ID, ROW_NUMBER, blocks_of, numbered
from tidemark.pipes.driver.probe import broken_by_halves, broken_texts
from tidemark.pipes.driver.projection import ERROR, ERROR_SCHEMA, OPEN, SKIP, Shape, staged_name
from tidemark.pipes.driver.readings import Reading
from tidemark.pipes.driver.unreadable import broken_file

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["READ_SETTINGS", "Counted", "FirstError", "Staged", "stage"]

READ_SETTINGS = {"spark.sql.files.openCostInBytes": "262144"}  # thousands of small files in few tasks
_ROUNDS_BEFORE_PROBE = 2


@dataclass(frozen=True)
class FirstError:
    """The first bad row of a file. `position`: of its field; `raw`: its text."""

    message: str
    row_number: int
    column: str | None
    position: int | None
    raw: str | None


class Counted(NamedTuple):
    """Rows of a file. `with_values`: good ones in which not all columns are NULL, if they were asked for. `is_open`:
    whether the quote of its last field may be open.
    """

    rows: int = 0
    errors: int = 0
    first: FirstError | None = None
    with_values: int = 0
    is_open: bool = False


@dataclass(frozen=True)
class Staged:
    """Rows of files that are staged. `unread`: files that cannot be read, with the reason. `headers`: files whose
    header has another number of rows than `skipped_rows`.
    """

    frame: DataFrame
    blocks: DataFrame
    shape: Shape
    skipped_rows: int
    unread: Mapping[str, str]
    headers: Mapping[str, int]

    def counted(self, *, with_values: bool = False) -> dict[str, Counted]:
        """Spark's path of a file, decoded → its counts. Files without rows are left out. `with_values`: good rows that
        have a value are counted, too.
        """
        number_of_bad = F.when(F.col(ERROR).isNotNull(), F.col(ROW_NUMBER))
        found = (
            self._data()
            .groupBy(FILE)
            .agg(
                F.count(F.lit(1)).alias("rows"),
                F.count(ERROR).alias("errors"),
                F.min_by(F.struct(ROW_NUMBER, ERROR), number_of_bad).alias("first_error"),
                F.count(F.when(self._has_value(), 1) if with_values else F.lit(None)).alias("with_values"),
                F.max_by(OPEN, ROW_NUMBER).alias("is_open"),
            )
        )
        return {
            unquote(row[FILE]): Counted(row.rows, row.errors, _first(row.first_error), row.with_values, row.is_open)
            for row in found.collect()
        }

    def _has_value(self) -> Column:
        values = (F.col(staged_name(n)).isNotNull() for n in range(len(self.shape.fields)))
        return F.col(ERROR).isNull() & reduce(or_, values, F.lit(False))

    def good_rows(self, files: Sequence[str] | None) -> DataFrame:
        """The good rows, of these files (Spark's paths, decoded) or of all, with the columns of the target."""
        rows = self._data() if self.skipped_rows else self.frame.where(~F.col(SKIP))
        rows = rows.where(F.col(ERROR).isNull())
        if files is not None:
            wanted = self.frame.sparkSession.createDataFrame([(file,) for file in files], "file STRING")
            rows = rows.join(F.broadcast(wanted), _name() == F.col("file"), "left_semi")
        names = [f.name for f in self.shape.fields]
        return rows.select(*(F.col(staged_name(n)).alias(name) for n, name in enumerate(names)))

    def bad_rows(self) -> DataFrame:
        """FILE, ROW_NUMBER and ERROR of all bad rows."""
        return self._data().where(F.col(ERROR).isNotNull()).select(FILE, ROW_NUMBER, ERROR)

    def files_with(self, message: str) -> list[str]:
        """Spark's paths of the files that have a row with that error."""
        found = self._data().where(F.col(ERROR).message == message).select(FILE).distinct()
        return [row[FILE] for row in found.collect()]

    def _data(self) -> DataFrame:
        """The rows that are data, with their numbers."""
        rows = numbered(self.frame, self.blocks).where(~F.col(SKIP))
        return rows.where(F.col(ROW_NUMBER) > self._header()) if self.skipped_rows else rows

    def _header(self) -> Column:
        """The number of rows at the beginning of a row's file that are no data."""
        files: dict[int, list[str]] = defaultdict(list)
        for file, number in self.headers.items():
            files[number].append(file)
        others = [F.when(_name().isin(*some), F.lit(number)) for number, some in files.items()]
        return F.coalesce(*others, F.lit(self.skipped_rows))


def stage(
    reading: Reading,
    projected: Callable[[Sequence[str]], DataFrame],
    files: Sequence[str],
    workspace: Workspace,
    headers: Mapping[str, int],
    stop_if_due: Callable[[], None],
) -> Staged:
    """The rows of the files, staged below the workspace. A file that cannot be read is left out, with its reason.
    `headers`: Spark's path of a file, decoded → the number of rows that are its header, where it is another one.

    Raises what Spark raises for other failures, and what `stop_if_due` raises.
    """
    unread: dict[str, str] = {}
    spark, rounds = reading.spark, 0
    while True:
        left = [file for file in files if file not in unread]
        place = workspace.new_directory()
        try:
            with under(spark, READ_SETTINGS):
                frame = projected(left) if left else _no_rows(reading)
                frame.write.parquet(place)
            break
        except SPARK_FAILURES as error:
            broken = broken_file(error, reading.load.location, left)
            if broken is None:
                raise
            unread.update([broken])
            rounds += 1
            if rounds == _ROUNDS_BEFORE_PROBE:
                unread.update(_all_broken(reading, [file for file in left if file not in unread], stop_if_due))
    staged = spark.read.parquet(place)
    return Staged(staged, blocks_of(staged), reading.shape, reading.skipped_rows, unread, headers)


def _name() -> Column:
    """Spark's path of a row's file, decoded."""
    return F.url_decode(F.replace(F.col(FILE), F.lit("+"), F.lit("%2B")))


def _all_broken(reading: Reading, files: Sequence[str], stop_if_due: Callable[[], None]) -> dict[str, str]:
    location = reading.load.location
    if reading.load.format.type.is_text:
        return broken_texts(location, reading.options, files, stop_if_due)
    return broken_by_halves(location, files, lambda _: reading)


def _no_rows(reading: Reading) -> DataFrame:
    """No rows, with the columns of staged ones."""
    columns = [StructField(staged_name(n), nullable(f.dataType)) for n, f in enumerate(reading.shape.fields)]
    own = reading.spark.createDataFrame(
        [], f"{FILE} STRING, {BLOCK} BIGINT, {ID} BIGINT, {SKIP} BOOLEAN, {OPEN} BOOLEAN, {ERROR} {ERROR_SCHEMA}"
    )
    return reading.spark.createDataFrame([], StructType([*own.schema.fields, *columns]))


def _first(found: Any) -> FirstError | None:
    if found is None:
        return None
    error = found[ERROR]
    return FirstError(error.message, found[ROW_NUMBER], error.column, error.position, error.raw)
