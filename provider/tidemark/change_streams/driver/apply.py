"""Applying the changes of a chunk to a table: what its modifications make of each key, in one MERGE.

A key's modifications count in the order of their positions. The last INSERT or DELETE restarts the row; the updates
after it bring the columns that they modified. So a row is known whole, or only in part if there were updates alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.change_streams.driver.typed_values import texts_of, value_of
from tidemark.delivery.driver.char_columns import CHAR_AS_STORED, char_length
from tidemark.delivery.driver.fit import nullable, stores_empty_as_null
from tidemark.delivery.driver.key_ranges import Key, rows_in_range_of
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.errors import MissingMergeKey, TargetDoesNotFit, UpdateOfMissingRow
from tidemark.jobs.raised_facts import facts_in, raised_with
from tidemark.jobs.settings import under
from tidemark.model.foreign_json import parsed
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["named_apply_error", "prepare_apply"]

SIGN = "TidemarkUpdateOfMissingRow"
ORDER, RESET, KEY, DELETES, WHOLE = (f"__tidemark_{name}" for name in ("order", "reset", "key", "delete", "whole"))
WHOLE_ROWS = ("NEW_ROW", "NEW_ROW_AND_OLD_VALUES")  # an update has all watched columns


@dataclass(frozen=True)
class _Columns:
    """Columns of the target that the records have, under the target's spelling; `names`: that of the records.
    `partitioned`: the target's partition columns, in small letters.
    """

    keys: tuple[StructField, ...]
    values: tuple[StructField, ...]
    names: dict[str, str]
    partitioned: frozenset[str]

    def key_of(self, texts: Column, field: StructField) -> Column:
        """A key's value as the target stores it: Delta stores an empty text or binary of a partition column as NULL."""
        value = _typed(texts.getField(self.names[field.name]), field)
        becomes_null = stores_empty_as_null(field.name, field.dataType, self.partitioned)
        return F.when(F.length(value) > 0, value) if becomes_null else value


def prepare_apply(
    mods: DataFrame,
    *,
    path: str,
    target: str,
    schema: StructType,
    keys: Sequence[str],
    partitioned: Collection[str],
) -> PreparedWrite:
    """Check that `mods`, rows of a log of one table, fit the target, and make ready to merge them into it. An empty key
    in a `partitioned` column is compared as the NULL that Delta stores.

    One row a key is kept in memory until `close`. A second run finds each row as it should be and changes none. Raises
    TargetDoesNotFit, MissingMergeKey; running it fails with what `named_apply_error` names if an update without the
    whole row meets no row.
    """
    columns = _columns_of(mods, target, schema, keys, partitioned)
    changes = mods.transform(_last_of_each_key, columns).persist()
    return PreparedWrite(run=lambda: _merge(changes, path, target, columns), close=lambda: _forget(changes))


def named_apply_error(text: str) -> UpdateOfMissingRow | None:
    """The error of a merge that met no row, if it is in what Spark says."""
    facts = facts_in(SIGN, text)
    return None if facts is None else UpdateOfMissingRow(**facts)


def _forget(rows: DataFrame) -> None:
    rows.unpersist()


def _columns_of(
    mods: DataFrame, target: str, schema: StructType, keys: Sequence[str], partitioned: Collection[str]
) -> _Columns:
    """From the column types of the records. Raises TargetDoesNotFit, MissingMergeKey."""
    described = [parsed(row[0]) for row in mods.select("column_types").distinct().collect()]
    types = [entry for of_record in described for entry in of_record]
    of_key = list(dict.fromkeys(entry["name"] for entry in types if entry["is_primary_key"]))
    others = list(dict.fromkeys(entry["name"] for entry in types if not entry["is_primary_key"]))
    _require_one_key(described, target)
    if keys and {key.lower() for key in keys} != {key.lower() for key in of_key}:
        raise MissingMergeKey(target=target, problem=f"the records know rows by {', '.join(of_key)} alone")
    known = {field.name.lower(): field for field in schema.fields}
    lacking = [name for name in (*of_key, *others) if name.lower() not in known]
    if lacking:
        raise TargetDoesNotFit(target=target, problem=f"it has no column {', '.join(lacking)}")
    padded = [name for name in of_key if char_length(known[name.lower()]) is not None]
    if padded:
        problem = (
            f"its key column {', '.join(padded)} is CHAR, and a padded key is not that of a record; make it STRING"
        )
        raise TargetDoesNotFit(target=target, problem=problem)
    return _Columns(
        keys=tuple(known[name.lower()] for name in of_key),
        values=tuple(known[name.lower()] for name in others),
        names={known[name.lower()].name: name for name in (*of_key, *others)},
        partitioned=frozenset(name.lower() for name in partitioned),
    )


def _require_one_key(described: Sequence[Sequence[Mapping[str, Any]]], target: str) -> None:
    """Raises MissingMergeKey for records before and after a change of the watched table's key."""
    keys = {", ".join(sorted(entry["name"] for entry in types if entry["is_primary_key"])) for types in described}
    if len({key.lower() for key in keys}) > 1:
        problem = (
            f"some records know rows by {'; others by '.join(sorted(keys))}. Reset the consumer group to 'now', and"
            " begin with the backfill"
        )
        raise MissingMergeKey(target=target, problem=problem)


def _last_of_each_key(mods: DataFrame, columns: _Columns) -> DataFrame:
    """One row for each key: the key's columns, and `set_i` and `value_i` of every other column. It also says whether
    the key is deleted, and whether its row is known whole.
    """
    by_key = Window.partitionBy(KEY)
    order = F.struct("commit_timestamp", "record_sequence", "mod_number")
    begins = F.col("mod_type") != "UPDATE"
    counted = (
        mods.select(F.col("keys").alias(KEY), order.alias(ORDER), "mod_type", "new_values", "value_capture_type")
        .withColumn(RESET, F.max(F.when(begins, F.col(ORDER))).over(by_key))
        .where(F.col(RESET).isNull() | (F.col(ORDER) >= F.col(RESET)))
    )
    names = [columns.names[field.name] for field in columns.values]
    texts = counted.withColumn("texts", texts_of(F.col("new_values"), names))
    given = F.coalesce(F.json_object_keys("new_values"), F.array().cast("array<string>"))
    picked = [_last_value(number, name, given) for number, name in enumerate(names)]
    last = F.max_by("mod_type", ORDER)
    whole = F.max(F.col(RESET).isNotNull() | F.col("value_capture_type").isin(*WHOLE_ROWS))
    folded = texts.groupBy(KEY).agg(
        (last == "DELETE").alias(DELETES), whole.alias(WHOLE), *(column for pair in picked for column in pair)
    )
    key_texts = texts_of(F.col(KEY), [columns.names[field.name] for field in columns.keys])
    return folded.select(
        DELETES,
        WHOLE,
        KEY,
        *(columns.key_of(key_texts, field).alias(f"key_{n}") for n, field in enumerate(columns.keys)),
        *(F.col(f"set_{n}") for n in range(len(names))),
        *(_typed(F.col(f"value_{n}"), f).alias(f"value_{n}") for n, f in enumerate(columns.values)),
    )


def _last_value(number: int, name: str, given: Column) -> tuple[Column, Column]:
    """Whether the column was given, and the text that was given last."""
    was_given = F.array_contains(given, name)
    text = F.col("texts").getField(name)
    when_given = F.when(was_given, F.col(ORDER))
    return F.coalesce(F.bool_or(was_given), F.lit(False)).alias(f"set_{number}"), F.max_by(text, when_given).alias(
        f"value_{number}"
    )


def _typed(text: Column, field: StructField) -> Column:
    return value_of(text, nullable(field.dataType))


def _merge(changes: DataFrame, path: str, target: str, columns: _Columns) -> None:
    """Spark's own MERGE, as merge.py has it."""
    table = path_name(path)
    goes, whole = F.col(f"changes.{DELETES}"), F.col(f"changes.{WHOLE}")
    key = {field.name: F.col(f"changes.key_{n}") for n, field in enumerate(columns.keys)}
    new = {field.name: F.col(f"changes.value_{n}") for n, field in enumerate(columns.values)}
    is_set = {field.name: F.col(f"changes.set_{n}") for n, field in enumerate(columns.values)}
    old = {field.name: F.col(f"{table}.{quoted(field.name)}") for field in (*columns.keys, *columns.values)}
    keys = [Key(f"key_{n}", old[field.name], field.dataType) for n, field in enumerate(columns.keys)]
    possible = rows_in_range_of(changes, keys)
    same_key = reduce(Column.__and__, (old[name].eqNullSafe(value) for name, value in key.items()), possible)
    updated = {quoted(n): F.when(is_set[n], value).otherwise(old[n]) for n, value in new.items()}
    inserted = {quoted(n): _or_fail(whole, value, target) for n, value in key.items()}
    inserted.update({quoted(n): value for n, value in new.items()})
    merge = changes.alias("changes").mergeInto(table, same_key).whenMatched(goes).delete()
    if updated:
        merge = merge.whenMatched(~goes).update(updated)
    with under(changes.sparkSession, CHAR_AS_STORED):
        merge.whenNotMatched(~goes).insert(inserted).merge()


def _or_fail(whole: Column, value: Column, target: str) -> Column:
    facts = F.struct(F.lit(target).alias("target"), F.col(f"changes.{KEY}").alias("key"))
    words = f": an update of a row that {target} does not have, and the record has only what was modified"
    return F.when(whole, value).otherwise(raised_with(SIGN, facts, words))
