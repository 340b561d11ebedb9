"""Rows of the log become data change records (partitions.md 1.1), and those the JSON of Spanner's second dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["COLUMN_TYPES", "RECORD_COLUMNS", "RECORD_DDL", "assembled", "record_columns"]

COLUMN_TYPES = "array<struct<name: string, type: string, is_primary_key: boolean, ordinal_position: bigint>>"
RECORD_COLUMNS = {
    "commit_timestamp": "timestamp",
    "record_sequence": "string",
    "server_transaction_id": "string",
    "is_last_record_in_transaction_in_partition": "boolean",
    "table_name": "string",
    "column_types": COLUMN_TYPES,
    "mods": "array<struct<keys: string, new_values: string, old_values: string>>",
    "mod_type": "string",
    "value_capture_type": "string",
    "number_of_records_in_transaction": "bigint",
    "number_of_partitions_in_transaction": "bigint",
    "transaction_tag": "string",
    "is_system_transaction": "boolean",
}
RECORD_DDL = ", ".join(f"{name}: {kind}" for name, kind in RECORD_COLUMNS.items())
_PLACE = ("commit_timestamp", "record_sequence")


def assembled(rows: DataFrame, *beside: str) -> DataFrame:
    """One row for each record of the log's `rows`, its `mods` in order; `beside` are more columns that tell records
    apart. `column_types` is still JSON text. The rows of a record must all be there.
    """
    mod = F.struct("mod_number", "keys", "new_values", "old_values")
    place = (*beside, *_PLACE)
    of_record = (name for name in RECORD_COLUMNS if name not in (*_PLACE, "mods"))
    records = rows.groupBy(*place).agg(
        F.array_sort(F.collect_list(mod)).alias("numbered"), *(F.first(name).alias(name) for name in of_record)
    )
    mods = F.transform("numbered", lambda one: F.struct(*(one[name].alias(name) for name in _VALUES)))
    return records.withColumn("mods", mods).select(*beside, *RECORD_COLUMNS)


def record_columns() -> list[Column]:
    """The columns of `assembled` in their types of 1.1; JSON values stay text."""
    typed = {"column_types": F.from_json("column_types", COLUMN_TYPES)}
    return [typed.get(name, F.col(name)).cast(kind).alias(name) for name, kind in RECORD_COLUMNS.items()]


_VALUES = ("keys", "new_values", "old_values")
