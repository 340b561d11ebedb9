"""Merge: the target becomes a mirror of the source, key by key.

For each key the INSERT image counts if it has one, else the DELETE. So an update pair is an update. A row whose key
changed is deleted under the old key and inserted under the new one. A DELETE with a later INSERT of the key is an
update.

In streams of every change, an INSERT counts only if the row exists at the window's end: no later commit touched it. All
other images mean that their key may be deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from tidemark.changes.driver.content import same_content
from tidemark.delivery.driver.char_columns import CHAR_AS_STORED
from tidemark.delivery.driver.fit import FittedColumn, as_stored, fit_columns
from tidemark.delivery.driver.key_ranges import Key, key_range, rows_in_range
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.errors import AmbiguousMergeKey, MissingMergeKey
from tidemark.jobs.failures import has_said
from tidemark.jobs.settings import under
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.model.statements import SchemaEvolution, Statement
from tidemark.model.streams import ACTION, COMMIT_VERSION, ROW_ID
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ["is_lasting", "key_columns", "prepare_merge"]

logger = logging.getLogger(__name__)

IMAGE = "__tidemark_image"
DELETES = "__tidemark_delete"
INSERTS = "__tidemark_inserts"
ROWS = "__tidemark_rows"
READ = "__tidemark_read"
_OUTSIDE = "Tidemark: an old image has no row in the part of the target that is merged into"


def prepare_merge(
    changes: DataFrame,
    statement: Statement,
    target: StructType,
    keys: Sequence[str],
    *,
    partitioned: Sequence[str] = (),
    within: Column | None = None,
) -> PreparedWrite:
    """A write that merges `changes` after checks of keys, columns and uniqueness: INSERTs without METADATA$ACTION.

    Key columns are compared NULL-safe, a CHAR without its trailing spaces. An empty text in a `partitioned` column is
    compared as the NULL that Delta stores. Matched rows with equal columns are not touched. Files of the target whose
    statistics rule out all keys are not read. `within`: a condition that rows of the target meet if they are the old
    images of changes. Files without such rows are not read. If an old image has no row there, the merge runs again
    without the condition. The changes are kept in memory, one row per key, until `close`.
    Raises MissingMergeKey, TargetDoesNotFit, AmbiguousMergeKey.
    """
    with_action = changes if ACTION in changes.columns else changes.withColumn(ACTION, F.lit("INSERT"))
    evolution, name = statement.write.schema_evolution, statement.target.name
    sorted_out = statement.write.quarantine is not None
    fits = fit_columns(with_action.schema, target, target_name=name, evolution=evolution, sorted_out=sorted_out)
    fitted = as_stored(fits, partitioned)
    chosen = key_columns(keys, fitted, target, name)
    each = COMMIT_VERSION in changes.columns
    lasting = is_lasting(with_action, chosen) if each else F.lit(True)
    winners = with_action.transform(_one_row_per_key, fitted, chosen, lasting, each=each).persist()
    of_target = _keys_of_target(chosen, path_name(statement.target.path))
    try:
        found = _refuse_ambiguous(winners, chosen, name, of_target)
    except BaseException:
        winners.unpersist()
        raise
    known = {field.name for field in target.fields}
    merge = _Merge(winners, statement, fitted, chosen, known, rows_in_range(of_target, found["range"]))
    return PreparedWrite(
        run=merge.run if within is None else lambda: merge.run_within(within),
        close=lambda: _forget(winners),
        changes=int(found["read"] or 0),
    )


def _forget(rows: DataFrame) -> None:
    rows.unpersist()


def key_columns(
    keys: Sequence[str], fitted: tuple[FittedColumn, ...], target: StructType, name: str
) -> tuple[FittedColumn, ...]:
    """The columns that `keys` name, in their order. Raises MissingMergeKey."""
    if not keys:
        raise MissingMergeKey(target=name, problem="none are given")
    by_name = {column.source.lower(): column for column in fitted}
    known = {field.name.lower() for field in target.fields}
    lacking = [key for key in keys if key.lower() not in by_name]
    if lacking:
        raise MissingMergeKey(target=name, problem=f"the stream has no column {', '.join(lacking)}")
    unknown = [key for key in keys if key.lower() not in known]
    if unknown:
        raise MissingMergeKey(target=name, problem=f"the target has no column {', '.join(unknown)}")
    unfit = [key for key in keys if not _comparable(by_name[key.lower()].data_type)]
    if unfit:
        raise MissingMergeKey(target=name, problem=f"{', '.join(unfit)} cannot be compared")
    return tuple(by_name[key.lower()] for key in keys)


def is_lasting(changes: DataFrame, keys: Sequence[FittedColumn]) -> Column:
    """Whether no later commit touches the row again, by its row id or else by the merge's key."""
    row = [ROW_ID] if ROW_ID in changes.columns else [key.source for key in keys]
    last = F.max(quoted(COMMIT_VERSION)).over(Window.partitionBy(*(F.col(quoted(name)) for name in row)))
    return F.col(quoted(COMMIT_VERSION)) == last


def _one_row_per_key(
    rows: DataFrame,
    fitted: Sequence[FittedColumn],
    keys: Sequence[FittedColumn],
    lasting: Column,
    *,
    each: bool,
) -> DataFrame:
    """One row per key: the fitted columns, whether the key is deleted, and its numbers of INSERTs, rows and rows read.
    With every change (`each`) a key may be deleted as often as it was inserted.
    """
    is_insert = ~F.col(quoted(ACTION)).eqNullSafe("DELETE") & lasting
    image = F.struct(*(column.expression for column in fitted))
    same = (key.shown(key.expression).alias(key.target) for key in keys)
    shaped = rows.select(*same, image.alias(IMAGE), is_insert.alias(INSERTS))
    return (
        shaped.groupBy(*(quoted(key.target) for key in keys))
        .agg(
            F.max_by(IMAGE, INSERTS).alias(IMAGE),
            F.count_if(F.col(INSERTS)).alias(INSERTS),
            F.count(F.lit(1)).alias(READ),
        )
        .select(
            f"{IMAGE}.*",
            (F.col(INSERTS) == 0).alias(DELETES),
            INSERTS,
            (F.lit(1) if each else F.col(READ)).alias(ROWS),
            READ,
        )
    )


def _keys_of_target(keys: Sequence[FittedColumn], target: str) -> list[Key]:
    """Those whose values are compared as they are stored."""
    return [Key(key.target, _old(target, key.target), key.data_type) for key in keys if key.char_length is None]


def _refuse_ambiguous(winners: DataFrame, keys: Sequence[FittedColumn], target: str, of_target: Sequence[Key]) -> Row:
    """The number of rows that were `read`, and the `range` of their keys. Raises AmbiguousMergeKey."""
    names = [key.target for key in keys]
    twice = (F.col(INSERTS) > 1) | ((F.col(INSERTS) == 0) & (F.col(ROWS) > 1))
    example = F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), {"ignoreNullFields": "false"})
    (found,) = winners.agg(
        F.count_if(twice).alias("twice"),
        F.min(F.when(twice, example)).alias("example"),
        F.sum(READ).alias("read"),
        key_range(of_target).alias("range"),
    ).collect()
    if found["twice"]:
        raise AmbiguousMergeKey(
            target=target, keys=", ".join(names), duplicates=found["twice"], example=found["example"]
        )
    return found


@dataclass(frozen=True)
class _Merge:
    """Spark's own MERGE. Delta's builder needs a plugin in a server of Spark Connect."""

    winners: DataFrame
    statement: Statement
    fitted: Sequence[FittedColumn]
    keys: Sequence[FittedColumn]
    known: set[str]
    possible: Column

    def run(self) -> None:
        self._run(self.possible, whole=True)

    def run_within(self, within: Column) -> None:
        """The merge of a part of the target first; nothing is written if it is the wrong part."""
        try:
            self._run(self.possible & within, whole=False)
        except SPARK_FAILURES as error:
            if not has_said(error, _OUTSIDE):
                raise
            name = self.statement.target.name
            logger.warning("%s has other rows than the changes say, so all its rows are compared", name)
            self.run()

    def _run(self, possible: Column, *, whole: bool) -> None:
        """`whole`: an old image without a row is a row that is new."""
        values = {quoted(column.target): _new(column.target) for column in self.fitted}
        goes, target = _new(DELETES), path_name(self.statement.target.path)
        equal = (key.shown(_old(target, key.target)).eqNullSafe(key.shown(_new(key.target))) for key in self.keys)
        compared = [column for column in self.fitted if column.target in self.known]
        differs = _differs(target, compared, len(compared) < len(self.fitted))
        merge = self.winners.alias("changes").mergeInto(target, reduce(Column.__and__, equal) & possible)
        merge = merge.whenMatched(goes).delete().whenMatched(~goes & differs).update(values)
        if not whole:
            merge = merge.whenNotMatched(_new(READ) > _new(INSERTS)).insert(values | self._refused())
        merge = merge.whenNotMatched(~goes).insert(values)
        if self.statement.write.schema_evolution is SchemaEvolution.ADD:
            merge = merge.withSchemaEvolution()
        with under(self.winners.sparkSession, CHAR_AS_STORED):
            merge.merge()

    def _refused(self) -> dict[str, Column]:
        key = self.keys[0]
        return {quoted(key.target): F.raise_error(F.lit(_OUTSIDE)).cast(key.data_type)}


def _differs(target: str, compared: Sequence[FittedColumn], brings_new_columns: bool) -> Column:
    """Whether the merge changes the target's row. A VARIANT cannot be compared, and counts as changed."""
    if brings_new_columns or any(_has_variant(column.data_type) for column in compared):
        return F.lit(True)
    kind = StructType([StructField(column.target, column.data_type) for column in compared])
    old = F.struct(*(one.shown(_old(target, one.target)).alias(one.target) for one in compared))
    new = F.struct(*(one.shown(_new(one.target)).alias(one.target) for one in compared))
    return ~same_content(old, new, kind)


def _has_variant(data_type: DataType) -> bool:
    return "variant" in data_type.simpleString()


def _comparable(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_comparable(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return _comparable(data_type.elementType)
    return not isinstance(data_type, (MapType, VariantType))


def _old(target: str, name: str) -> Column:
    return F.col(f"{target}.{quoted(name)}")


def _new(name: str) -> Column:
    return F.col(f"changes.{quoted(name)}")
