"""The rows of a search table from the rows of a base: Column expressions and DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from tidemark.search.model.paths import COVERAGE, EVERYWHERE, GRAM, Method, SearchColumn, SearchPath, ValueKind
from tidemark.search.planning.hashes import SCALE
from tidemark.sql.identifiers import quoted

__all__ = ["SCHEMA", "entries", "hash_column", "laid_out"]

SCHEMA = "path INT, h BIGINT, file INT, name STRING"
_LEAST_FILES = 10  # below, each value is listed
_ENTRY = "entry"


def entries(rows: DataFrame, number: Column, paths: Sequence[SearchPath]) -> DataFrame:
    """path, h, file and name (NULL), once each, for `rows` of a base. `number`: that of the file of a row."""
    every = F.explode(F.concat(*map(_entries, paths))).alias(_ENTRY)
    found = rows.select(number.cast("int").alias("file"), every)
    plain = found.select(f"{_ENTRY}.path", f"{_ENTRY}.h", "file", F.lit(None).cast("string").alias("name"))
    return plain.distinct()


def laid_out(found: DataFrame, coverage: DataFrame, *, files: int, parts: int) -> DataFrame:
    """All rows in the order of a search table, in `parts` parts. A value in more than half of the `files` has one row,
    EVERYWHERE in place of the file.
    """
    same = Window.partitionBy("path", "h")
    order = same.orderBy("file")
    rows = found.unionByName(coverage).repartitionByRange(parts, "path", "h")
    if files >= _LEAST_FILES:
        often = (F.col("path") != COVERAGE) & (F.col("n") * 2 > files)
        counted = rows.withColumn("n", F.count(F.lit(1)).over(same)).withColumn("at", F.row_number().over(order))
        rows = counted.where(~often | (F.col("at") == 1)).select(
            "path", "h", F.when(often, F.lit(EVERYWHERE)).otherwise(F.col("file")).alias("file"), "name"
        )
    return rows.sortWithinPartitions("path", "h", "file")


def _entries(path: SearchPath) -> Column:
    """The hashes of a row's values as an array of entries."""
    return F.transform(_hashes(path), lambda one: F.struct(F.lit(path.id).alias("path"), one.alias("h")))


def _hashes(path: SearchPath) -> Column:
    """The hashes of a row's values, without NULL and each once; an empty array for none."""
    value = _value(path.column)
    values = value if path.column.is_array else F.array(value)
    if path.method is Method.SUBSTRING:
        values = F.flatten(F.transform(values, _grams))
    known = F.filter(F.array_distinct(values), lambda one: one.isNotNull())
    kind = ValueKind.TEXT if path.method is Method.SUBSTRING else path.column.kind
    return F.coalesce(F.transform(known, lambda one: hash_column(one, kind)), F.array().cast("array<bigint>"))


def _grams(text: Column) -> Column:
    places = F.sequence(F.lit(1), F.length(text) - (GRAM - 1))
    found = F.transform(places, lambda at: F.substr(text, at, F.lit(GRAM)))
    return F.when(F.length(text) >= GRAM, found).otherwise(F.array().cast("array<string>"))


def _value(column: SearchColumn) -> Column:
    first, *inside = column.parts
    return reduce(Column.getField, inside, F.col(quoted(first)))


def hash_column(value: Column, kind: ValueKind) -> Column:
    """The same hash as `search.planning.hashes.hash_of`: equal for equal values of all types of the kind."""
    forms = {
        ValueKind.WHOLE: lambda: value.cast("bigint"),
        ValueKind.DATE: lambda: F.unix_date(value).cast("bigint"),
        ValueKind.TIMESTAMP: lambda: F.unix_micros(value),
        ValueKind.DECIMAL: lambda: value.cast(f"decimal(38,{SCALE})"),
    }
    return F.xxhash64(forms[kind]() if kind in forms else value)
