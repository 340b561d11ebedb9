"""Columns of files that a table lacks, for ENABLE_SCHEMA_EVOLUTION."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, StringType, StructField, StructType

from tidemark.delivery.driver.fit import missing_required, nullable
from tidemark.pipes.driver.target import Target
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "NAMES_REFUSED",
    "as_if_dropped",
    "drop_not_null",
    "inferred",
    "lacking",
    "lost_by_files",
    "of_files",
    "unfit_names",
]

NAMES_REFUSED = (
    "the table cannot get a column with the name {names}; delta.columnMapping.mode = 'name' of the table allows it"
)
_MAPPING = "delta.columnMapping.mode"
_REFUSED = re.compile(r"[ ,;{}()\n\t=]")
_PLAIN = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING")


def lacking(names: Iterable[str], target: Target) -> list[str]:
    """The names that no column of the target has, in any case, each once."""
    known = {field.name.casefold() for field in target.schema.fields}
    found: dict[str, str] = {}
    for name in names:
        if name and name.casefold() not in known:
            found.setdefault(name.casefold(), name)
    return list(found.values())


def unfit_names(names: Iterable[str], target: Target) -> list[str]:
    """Those of the names that Delta refuses for a new column of the table."""
    mode = target.metadata.configuration.get(_MAPPING, "none").lower()
    return [name for name in names if mode == "none" and _REFUSED.search(name)]


def of_files(schemas: Sequence[Mapping[str, DataType]], target: Target) -> tuple[StructField, ...]:
    """The new columns of files with types. A column with several types becomes text."""
    found: dict[str, StructField] = {}
    for schema in schemas:
        for name in lacking(schema, target):
            kind = nullable(schema[name])
            known = found.setdefault(name.casefold(), StructField(name, kind))
            if known.dataType.simpleString() != kind.simpleString():
                found[name.casefold()] = StructField(known.name, StringType())
    return tuple(found.values())


def inferred(rows: DataFrame, members: Mapping[str, Column]) -> tuple[StructField, ...]:
    """The new columns of documents, by their values. Objects and arrays become their JSON text."""
    if not members:
        return ()
    kinds = rows.select(*(F.schema_of_variant_agg(value).alias(f"k{n}") for n, value in enumerate(members.values())))
    (found,) = kinds.collect()
    return tuple(StructField(name, _type(found[n])) for n, name in enumerate(members))


def lost_by_files(target: Target, names: Callable[[], Iterable[str]]) -> list[str]:
    """The NOT NULL columns that no file has; none if no file has a name, as without any row.

    `names`: of the columns that the files have; they are asked for only if a column may lose NOT NULL.
    """
    if not missing_required((), target.schema):
        return []
    there = {name.lower() for name in names()}
    return missing_required(there, target.schema) if there else []


def drop_not_null(spark: SparkSession, target: Target, columns: Iterable[str]) -> None:
    """Take NOT NULL from these columns. A second run changes nothing."""
    for name in columns:
        spark.sql(f"ALTER TABLE {path_name(target.path)} ALTER COLUMN {quoted(name)} DROP NOT NULL")


def as_if_dropped(target: Target, columns: Collection[str]) -> Target:
    """The target as it would be without NOT NULL of these columns; the table itself is unchanged."""
    fields = [
        StructField(field.name, field.dataType, field.nullable or field.name in columns, field.metadata)
        for field in target.schema.fields
    ]
    return replace(target, schema=StructType(fields))


def _type(found: str | None) -> DataType:
    text = (found or "STRING").upper()
    if text.startswith("DECIMAL"):
        return DoubleType()  # later numbers may have more digits
    return DataType.fromDDL(text) if text.startswith(_PLAIN) else StringType()
