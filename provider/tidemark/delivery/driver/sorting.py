"""The rows of a window, each with the names of the target's constraints that it breaks.

An append takes each row by itself. A merge takes a key's change as a whole. If its INSERT image is bad, all rows of the
key are bad, and the target's row stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.delivery.driver.checks import DEFAULT, GENERATED, IDENTITY, Check, checks_of
from tidemark.delivery.driver.fit import FittedColumn, fit_columns
from tidemark.delivery.driver.merge import is_lasting, key_columns
from tidemark.delivery.driver.past_rows import rows_as_of
from tidemark.delivery.model.quarantine import Split
from tidemark.delivery.planning.constraints import text_at
from tidemark.jobs.remote import is_remote
from tidemark.jobs.settings import under
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Statement, WriteAs
from tidemark.model.streams import ACTION, COMMIT_VERSION
from tidemark.model.table_log import Metadata
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.window import WindowSpec

__all__ = ["BAD", "BROKEN", "Sorting", "sort_rows"]

BROKEN = "__tidemark_broken"
BAD = "__tidemark_bad"
ROW = "__tidemark_row"
WRITTEN = "__tidemark_written"
UNFIT = "__tidemark_unfit"
UNFIT_KEY = "__tidemark_unfit_key"
MATCHED = "__tidemark_matched"
COPY = "__tidemark_copy"
ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class Sorting:
    """The target by which a statement's rows are sorted: its `metadata` and `schema` at `split`, and its `log`."""

    statement: Statement
    log: DeltaLog
    metadata: Metadata
    schema: StructType
    split: Split

    @property
    def is_merge(self) -> bool:
        """Whether the changes of a key are taken as a whole."""
        return self.statement.write.write_as is WriteAs.MERGE

    def fitted(self, rows: StructType) -> tuple[FittedColumn, ...]:
        """The columns that are written. Raises TargetDoesNotFit."""
        request = self.statement
        evolution = request.write.schema_evolution
        return fit_columns(rows, self.schema, target_name=request.target.name, evolution=evolution, sorted_out=True)


def sort_rows(rows: DataFrame, by: Sorting) -> DataFrame:
    """`rows` with the columns BROKEN (names of constraints that the row itself breaks) and BAD (whether it goes to the
    quarantine). Idempotent: the same rows are always sorted in the same way. Raises TargetDoesNotFit, MissingMergeKey,
    SplitUnreadable.
    """
    columns = rows.columns
    sorting = _Sorter(rows, by)
    return sorting.sorted().select(*(F.col(f"{ROW}.{quoted(name)}").alias(name) for name in columns), BROKEN, BAD)


class _Sorter:
    def __init__(self, rows: DataFrame, by: Sorting) -> None:
        self.rows = rows if ACTION in rows.columns else rows.withColumn(ACTION, F.lit("INSERT"))
        self.by = by
        self.fitted = by.fitted(self.rows.schema)
        given = frozenset(column.target.lower() for column in self.fitted)
        self.checks = checks_of(by.metadata, by.schema, given, by.split.at)
        self.absent = [field for field in by.schema.fields if field.name.lower() not in given]
        self.texts = {field.name.lower(): _text_of(field, by.split.at) for field in self.absent}

    @cached_property
    def keys(self) -> tuple[FittedColumn, ...]:
        write, name = self.by.statement.write, self.by.statement.target.name
        return key_columns(write.keys, self.fitted, self.by.schema, name) if self.by.is_merge else ()

    def sorted(self) -> DataFrame:
        shaped = self._shaped().transform(self._with_absent_columns)
        with _failing_as_null(self.rows.sparkSession):
            judged = shaped.withColumn(BROKEN, self._broken())
        bad = F.size(BROKEN) > 0
        if not self.by.is_merge:
            return judged.withColumn(BAD, bad)
        key = Window.partitionBy(UNFIT_KEY, *(key.shown(F.col(quoted(key.target))) for key in self.keys))
        judged = judged.withColumn(BAD, F.max(bad).over(key))
        return judged.transform(_once_each, key) if COPY in judged.columns else judged

    def _shaped(self) -> DataFrame:
        """The original row, and those columns of the target that it has."""
        unfit = [F.when(~c.fits, F.lit(_type_name(c))) for c in self.fitted if c.may_fail]
        unfit_key = [~key.fits for key in self.keys if key.may_fail]
        return self.rows.select(
            F.struct(*(F.col(quoted(name)) for name in self.rows.columns)).alias(ROW),
            *(column.expression for column in self.fitted),
            self._is_written().alias(WRITTEN),
            _without_nulls(unfit).alias(UNFIT),
            reduce(Column.__or__, unfit_key, F.lit(False)).alias(UNFIT_KEY),
        )

    def _is_written(self) -> Column:
        """Whether the row itself would be in the target, unlike the old image of a merge."""
        if not self.by.is_merge:
            return F.lit(True)
        inserted = ~F.col(quoted(ACTION)).eqNullSafe("DELETE")
        return inserted & is_lasting(self.rows, self.keys) if COMMIT_VERSION in self.rows.columns else inserted

    def _broken(self) -> Column:
        """The broken constraints. A value that does not fit its type breaks its column's constraints, too, so only its
        type is named.
        """
        unfit = {column.target.lower() for column in self.fitted if column.may_fail}
        asked = [
            F.when(
                ~F.coalesce(check.holds, F.lit(False)) & self._readable(check, unfit) & self._known(check),
                F.lit(check.name),
            )
            for check in self.checks
        ]
        every = F.concat(F.col(UNFIT), _without_nulls(asked))
        nothing = F.array().cast("array<string>")
        return F.when(F.col(WRITTEN), every).when(F.col(UNFIT_KEY), F.col(UNFIT)).otherwise(nothing)

    def _readable(self, check: Check, unfit: set[str]) -> Column:
        concerned = bool(unfit) if check.names is None else bool(unfit & check.names)
        return F.size(UNFIT) == 0 if concerned else F.lit(True)

    def _known(self, check: Check) -> Column:
        """Whether all values of the check are known. Values that only Delta fills are known only if the target has
        them.
        """
        if _asks_for(check.names, self._always_unknown):
            return F.lit(False)
        if _asks_for(check.names, self._unknown_if_new):
            return F.col(COPY).isNotNull() if self.by.is_merge else F.lit(False)
        return F.lit(True)

    @cached_property
    def _always_unknown(self) -> set[str]:
        return {name for name, text in self.texts.items() if text is None and name in self._generated_names}

    @cached_property
    def _unknown_if_new(self) -> set[str]:
        """Identity columns, unpredictable defaults, and columns that are computed from them."""
        made = {field.name.lower() for field in self.absent if IDENTITY in field.metadata}
        made |= {name for name, text in self.texts.items() if text is None and name not in self._generated_names}
        texts = {name: self.texts[name] for name in self._generated_names}
        return made | {name for name, text in texts.items() if text and _asks_for(text[1], made)}

    @cached_property
    def _generated_names(self) -> set[str]:
        return {field.name.lower() for field in self.absent if GENERATED in field.metadata}

    def _with_absent_columns(self, shaped: DataFrame) -> DataFrame:
        """The rows with columns that the stream lacks: a merge's old values, defaults, and computed values."""
        plain = [field for field in self.absent if GENERATED not in field.metadata]
        looked_up = [field for field in plain if self._is_asked_for(field)] if self.by.is_merge else []
        shaped = self._with_old_values(shaped, looked_up) if looked_up else shaped
        others = [field for field in plain if field not in looked_up]
        shaped = shaped.select("*", *(self._made(field).cast(field.dataType).alias(field.name) for field in others))
        made = [field for field in self.absent if GENERATED in field.metadata]
        return shaped.select("*", *(self._made(field).try_cast(field.dataType).alias(field.name) for field in made))

    def _is_asked_for(self, field: StructField) -> bool:
        """Whether a constraint or a generated column reads the field."""
        name = field.name.lower()
        made = [self.texts[other] for other in self._generated_names]
        asked = [check.names for check in self.checks] + [text[1] for text in made if text is not None]
        return any(_asks_for(names, {name}) for names in asked)

    def _with_old_values(self, shaped: DataFrame, fields: Sequence[StructField]) -> DataFrame:
        """The rows with old values of columns that the stream lacks, as an update keeps them, at the split's version.

        If the target has a key more than once, the row is repeated for each; COPY counts them from 1.
        """
        request = self.by.statement
        old = rows_as_of(self.rows.sparkSession, self.by.log, self.by.split.version, table=request.target.name)
        held = [key.shown(F.col(quoted(key.target))) for key in self.keys]
        old = old.select(
            *(key.alias(f"{MATCHED}_{index}") for index, key in enumerate(held)),
            F.row_number().over(Window.partitionBy(*held).orderBy(*held)).alias(COPY),
            *(F.col(quoted(field.name)).alias(f"{MATCHED}_{field.name}") for field in fields),
        )
        same = [key.eqNullSafe(F.col(f"{MATCHED}_{index}")) for index, key in enumerate(held)]
        joined = shaped.join(old, reduce(Column.__and__, same), "left")
        kept = [
            F.when(F.col(COPY).isNotNull(), F.col(quoted(f"{MATCHED}_{field.name}")))
            .otherwise(self._made(field).cast(field.dataType))
            .alias(field.name)
            for field in fields
        ]
        return joined.select(*(F.col(quoted(name)) for name in shaped.columns), COPY, *kept)

    def _made(self, field: StructField) -> Column:
        """A generated column's value or a default; NULL if it cannot be known."""
        text = self.texts[field.name.lower()]
        return F.lit(None) if text is None else F.expr(text[0])


def _text_of(field: StructField, at: datetime) -> tuple[str, frozenset[str] | None] | None:
    """The expression that fills a column which the row lacks, as of `at`; None if it cannot be known."""
    return text_at(str(field.metadata.get(GENERATED, field.metadata.get(DEFAULT, "NULL"))), at)


def _asks_for(names: frozenset[str] | None, wanted: set[str]) -> bool:
    return bool(wanted) and (names is None or bool(wanted & names))


def _once_each(judged: DataFrame, key: WindowSpec) -> DataFrame:
    """One copy of each row, with the constraints that any copy breaks."""
    several = (F.max(COPY).over(key) > 1) & F.col(WRITTEN) & ~F.col(UNFIT_KEY)
    each = F.collect_set(F.when(F.col(COPY).isNotNull() & F.col(WRITTEN) & ~F.col(UNFIT_KEY), F.col(BROKEN))).over(key)
    broken = F.when(several, F.array_sort(F.array_distinct(F.flatten(each)))).otherwise(F.col(BROKEN))
    return judged.withColumn(BROKEN, broken).where(F.coalesce(COPY, F.lit(1)) == 1)


def _type_name(column: FittedColumn) -> str:
    return f"{column.data_type.simpleString().upper()} {column.target}"


def _without_nulls(names: Sequence[Column]) -> Column:
    return F.array_compact(F.array(*names)).cast("array<string>") if names else F.array().cast("array<string>")


@contextmanager
def _failing_as_null(spark: SparkSession) -> Iterator[None]:
    """Inside, new conditions give NULL where ANSI mode ends the query, as for a division by zero.

    A session behind Spark Connect decides this when the query runs, so it has no effect there.
    """
    if is_remote(spark):
        yield
        return
    with under(spark, {ANSI: "false"}):
        yield
