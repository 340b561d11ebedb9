"""Rows identified by key columns: the key as a value to compare, as METADATA$ROW_ID, and in an error."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from tidemark.errors import KeyNotUnique
from tidemark.jobs.failures import read_failures_by
from tidemark.jobs.raised_facts import facts_in, raised_with

__all__ = ["key_not_unique", "key_of", "key_text", "named_key_error", "once_each", "with_keys_for_ids"]

_SIGN = "TidemarkKeyNotUnique"
_EXACT_TEXT = {  # whatever the session's time zone is, and to the microsecond
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def key_of(row: Column, kind: StructType, keys: Sequence[str]) -> Column:
    """The struct of the key columns `keys` of `row`, a struct of type `kind`. Text is compared by bytes, under any
    collation.
    """
    by_name = {field.name.lower(): field for field in kind.fields}
    parts = []
    for key in keys:
        field = by_name[key.lower()]
        value = row.getField(field.name)
        is_text = isinstance(field.dataType, StringType)
        parts.append((F.collate(value, "UTF8_BINARY") if is_text else value).alias(key))
    return F.struct(*parts)


def key_text(key: Column) -> Column:
    """The key as canonical JSON: parts in the order of the keys, NULL parts kept, times in UTC."""
    return F.to_json(key, _EXACT_TEXT)


def with_keys_for_ids(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Rows with an image, with their key as row_id."""
    kind = rows.schema["image"].dataType
    assert isinstance(kind, StructType)
    return rows.withColumn("row_id", key_of(F.col("image"), kind, keys))


def once_each(rows: DataFrame, failure: Column) -> DataFrame:
    """The rows of `with_keys_for_ids`, if no key is repeated; else `failure`, which knows times_new."""
    counted = rows.groupBy("row_id").agg(F.count(F.lit(1)).alias("times_new"), F.first("image").alias("image"))
    return counted.select("row_id", F.when(F.col("times_new") > 1, failure).otherwise(F.col("image")).alias("image"))


def key_not_unique(
    *, stream: str, table: str, keys: Sequence[str], start: int, end: int, old: Column, new: Column
) -> Column:
    """A column that fails the query for the key `row_id`, which `old` rows have at `start`, and `new` rows at `end`.

    The message has the facts in words and as JSON, from which `named_key_error` makes an error of our tree.
    """
    known = {"stream": stream, "table": table, "columns": ", ".join(keys)}
    is_old = old > 1
    facts = F.struct(
        *(F.lit(value).alias(name) for name, value in known.items()),
        F.when(is_old, F.lit(start)).otherwise(F.lit(end)).alias("version"),
        F.when(is_old, old).otherwise(new).alias("times"),
        key_text(F.col("row_id")).alias("key"),
    )
    words = f": {known['columns']} do not identify a row of {table}, so stream {stream} cannot compare by them"
    return raised_with(_SIGN, facts, words)


@read_failures_by
def named_key_error(text: str) -> KeyNotUnique | None:
    """The error of `key_not_unique` in Spark's message, or None if it has none."""
    facts = facts_in(_SIGN, text)
    return None if facts is None else KeyNotUnique(**facts)
