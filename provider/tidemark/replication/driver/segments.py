"""One write of a segment of an object's events to its target."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.delivery.driver.key_ranges import Key, rows_in_range_of
from tidemark.errors import ObjectFailed
from tidemark.jobs.raised_facts import facts_in, raised_with
from tidemark.replication.driver.columns import METADATA_COLUMN, field_of
from tidemark.replication.driver.fold import GOES, Folding, given_name, key_name, metadata_of, old_key_name, value_name
from tidemark.replication.driver.object_events import ROWS
from tidemark.replication.driver.target_table import Target
from tidemark.replication.driver.values import spark_type, texts_of, written_value
from tidemark.replication.driver.wide_rows import kept
from tidemark.replication.planning.events import GOES as GOING
from tidemark.replication.planning.types import SchemaChange
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["append_rows", "change_columns", "merge_rows", "missing_row", "truncate"]

SIGN = "TidemarkRowIsMissing"
_HELD = "held"
_IN_SEGMENT = ("INSERT", "UPDATE", "DELETE")


def merge_rows(
    session: SparkSession, target: Target, events: DataFrame, folding: Folding, *, moves: bool, widest: int
) -> None:
    """Merge what the events make of each key. `moves`: some rows take values of the target's rows of other keys.
    `widest`: bytes of a row.

    Fails with what `named_invalid_value` and `missing_row` name; then nothing is written.
    """
    rows = folding.fold(events.where(F.col("change").isin(*_IN_SEGMENT)), moves=moves)
    if moves:
        rows = _with_left_values(session, target, rows, folding)
    keys = _keys_of_target(target, folding)
    with kept(session, rows, widest) as changes:
        _merge(target, changes, folding, rows_in_range_of(changes, keys), moves=moves)


def append_rows(target: Target, events: DataFrame, folding: Folding) -> None:
    """Append a row for each event, and of an update without a key one for each half. A value that an event leaves out
    is NULL.
    """
    columns = folding.schema.columns
    texts = texts_of(F.col("payload"), [column.name for column in columns])
    rows = events.where(F.col("change").isin(*ROWS)).withColumn("texts", texts)
    values = [
        value.alias(column.name) for value, column in zip(folding.values_in(F.col("texts")), columns, strict=True)
    ]
    number = F.lpad(F.hex("sequence"), 16, "0")
    shaped = rows.select(
        *values,
        metadata_of(F.col("uuid"), F.col("source_timestamp")),
        F.col("change").alias("change_type"),
        F.concat("position", F.lit("-"), number).alias("change_sequence_number"),
        "sort_keys",
        F.col("change").isin(*GOING, "TRUNCATE").alias("is_deleted"),
    )
    shaped.write.format("delta").mode("append").save(target.ref.path)


def truncate(session: SparkSession, target: Target) -> None:
    """Every row goes; an empty table gets no commit."""
    session.sql(f"DELETE FROM {target.name}")


def change_columns(
    session: SparkSession, target: Target, change: SchemaChange, folding: Folding, *, at: str, keyed: bool
) -> Callable[[], None] | None:
    """Give the target the columns of the new schema, and answer what gives its rows their values in one commit, or
    None.

    A column that was added has the value that the source gave to rows of before. A renamed column has the value of the
    old name. The column of the old name is unchanged, like a dropped one. Rows of events are unchanged. `at`:
    the position of the change. The command fails with what `named_invalid_value` names.
    """
    before = target.schema()
    target.evolve(session, change.new)
    if not keyed:
        return None
    values: dict[str, Column] = {}
    for old, new in change.renamed:
        if old.name.lower() != new.name.lower():
            values[quoted(new.name)] = F.col(f"{target.name}.{quoted(old.name)}")
    for column in change.added:
        if column.filled is not None or field_of(before, column.name) is not None:
            text = F.lit(column.filled).cast("string")
            values[quoted(column.name)] = written_value(
                text, column, invalid_values=folding.invalid_values, object_name=folding.name, position=F.lit(at)
            )
    return (lambda: _fill(session, target, values)) if values else None


def missing_row(text: str, position: str, remedy: str, **more: Any) -> ObjectFailed | None:
    """The error of an event that leaves out a value which no row of the target has, if Spark's message shows it.

    `more` goes into its facts.
    """
    facts = facts_in(SIGN, text)
    if facts is None:
        return None
    problem = f"an update leaves out values that stayed what they were, and the target has no row of key {facts['key']}"
    return ObjectFailed(object=facts["object"], problem=problem, position=position, remedy=remedy, **more)


def _fill(session: SparkSession, target: Target, values: dict[str, Column]) -> None:
    one = session.range(1).alias("changes")
    one.mergeInto(target.name, F.lit(True)).whenMatched().update(values).merge()


def _with_left_values(session: SparkSession, target: Target, rows: DataFrame, folding: Folding) -> DataFrame:
    """`rows` with the columns `held_i` of the target's row of the key that was left; `held`: whether it exists."""
    columns = [(n, c) for n, c in enumerate(folding.schema.columns) if folding.apart(c)]
    keys = [f"left_{place}" for place in range(len(folding.keys))]
    table = session.read.format("delta").load(target.ref.path)
    left = table.select(
        *(F.col(quoted(column.name)).alias(name) for column, name in zip(folding.keys, keys, strict=True)),
        *(F.col(quoted(column.name)).alias(f"{_HELD}_{place}") for place, column in columns),
        F.lit(True).alias(_HELD),
    )
    same = [F.col(old_key_name(place)) == F.col(name) for place, name in enumerate(keys)]
    return rows.join(left, reduce(Column.__and__, same), "left").drop(*keys)


def _keys_of_target(target: Target, folding: Folding) -> list[Key]:
    return [
        Key(key_name(place), F.col(f"{target.name}.{quoted(column.name)}"), spark_type(column.type))
        for place, column in enumerate(folding.keys)
    ]


def _merge(target: Target, rows: DataFrame, folding: Folding, possible: Column, *, moves: bool) -> None:
    goes, keys = _new(GOES), folding.keys
    values: dict[str, Column] = {column.name: _new(key_name(place)) for place, column in enumerate(keys)}
    kept, whole = dict(values), F.lit(True)
    for place, column in enumerate(folding.schema.columns):
        if column.key:
            continue
        new, old = _new(value_name(place)), F.col(f"{target.name}.{quoted(column.name)}")
        if not folding.apart(column):
            values[column.name] = kept[column.name] = new
            continue
        given = _new(given_name(place))
        moved = F.when(given, new).otherwise(_new(f"{_HELD}_{place}")) if moves else new
        is_left = _new(old_key_name(0)).isNotNull() if moves else F.lit(False)
        values[column.name] = moved
        kept[column.name] = F.when(given | is_left, moved).otherwise(old)
        whole = whole & (given | (F.coalesce(_new(_HELD), F.lit(False)) if moves else F.lit(False)))
    inserted = {quoted(name): value for name, value in values.items()}
    updated = {quoted(name): value for name, value in kept.items()}
    inserted[quoted(METADATA_COLUMN)] = updated[quoted(METADATA_COLUMN)] = _new(METADATA_COLUMN)
    if folding.unchanged:
        first = quoted(keys[0].name)
        inserted[first] = _or_fail(whole, inserted[first], folding)
    same = [F.col(f"{target.name}.{quoted(c.name)}").eqNullSafe(_new(key_name(n))) for n, c in enumerate(keys)]
    merge = rows.alias("changes").mergeInto(target.name, reduce(Column.__and__, same, possible))
    merge = merge.whenMatched(goes).delete().whenMatched(~goes).update(updated)
    merge.whenNotMatched(~goes).insert(inserted).merge()


def _or_fail(whole: Column, value: Column, folding: Folding) -> Column:
    keys = F.to_json(F.array(*(_new(key_name(place)).cast("string") for place in range(len(folding.keys)))))
    facts = F.struct(F.lit(folding.name).alias("object"), keys.alias("key"))
    return F.when(whole, value).otherwise(raised_with(SIGN, facts, ": no row has the values that an event leaves out"))


def _new(name: str) -> Column:
    return F.col(f"changes.{quoted(name)}")
