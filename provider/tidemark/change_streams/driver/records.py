"""Rows of the log become data change records, and records the one column of READ_<stream>."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "CHANGE_RECORD",
    "CHANGE_RECORD_DDL",
    "CHILDREN",
    "DATA",
    "HEARTBEAT",
    "JSON_OPTIONS",
    "KINDS",
    "RECORD_COLUMNS",
    "assembled",
    "child_record",
    "data_record",
    "framed",
    "heartbeat_record",
    "record_columns",
]

DATA, HEARTBEAT, CHILDREN = "data_change_record", "heartbeat_record", "child_partitions_record"

_COLUMN_TYPES = "array<struct<name: string, type: string, is_primary_key: boolean, ordinal_position: bigint>>"
RECORD_COLUMNS = {
    "commit_timestamp": "timestamp",
    "record_sequence": "string",
    "server_transaction_id": "string",
    "is_last_record_in_transaction_in_partition": "boolean",
    "table_name": "string",
    "column_types": _COLUMN_TYPES,
    "mods": "array<struct<keys: string, new_values: string, old_values: string>>",
    "mod_type": "string",
    "value_capture_type": "string",
    "number_of_records_in_transaction": "bigint",
    "number_of_partitions_in_transaction": "bigint",
    "transaction_tag": "string",
    "is_system_transaction": "boolean",
}
KINDS = {
    DATA: ", ".join(f"{name}: {kind}" for name, kind in RECORD_COLUMNS.items()),
    HEARTBEAT: "timestamp: timestamp",
    CHILDREN: (
        "start_timestamp: timestamp, record_sequence: string, "
        "child_partitions: array<struct<token: string, parent_partition_tokens: array<string>>>"
    ),
}
CHANGE_RECORD = "ChangeRecord"
CHANGE_RECORD_DDL = f"array<struct<{', '.join(f'{name}: array<struct<{kind}>>' for name, kind in KINDS.items())}>>"

_PLACE = ("commit_timestamp", "record_sequence")
_VALUES = ("keys", "new_values", "old_values")
JSON_OPTIONS = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX", "ignoreNullFields": "false"}


def assembled(rows: DataFrame, *beside: str) -> DataFrame:
    """One row for each record of the log's `rows`, its `mods` in order; `beside` are more columns that distinguish
    records. `column_types` is still JSON text. `rows` must have all rows of a record.
    """
    mod = F.struct("mod_number", *_VALUES)
    of_record = (name for name in RECORD_COLUMNS if name not in (*_PLACE, "mods"))
    records = rows.groupBy(*beside, *_PLACE).agg(
        F.array_sort(F.collect_list(mod)).alias("mods"), *(F.first(name).alias(name) for name in of_record)
    )
    mods = F.transform("mods", lambda one: F.struct(*(one[name].alias(name) for name in _VALUES)))
    return records.withColumn("mods", mods).select(*beside, *RECORD_COLUMNS)


def record_columns() -> list[Column]:
    """The columns of `assembled` in their types of 1.1; JSON values stay text."""
    typed = {"column_types": F.from_json("column_types", _COLUMN_TYPES)}
    return [typed.get(name, F.col(name)).cast(kind).alias(name) for name, kind in RECORD_COLUMNS.items()]


def data_record(as_json: bool) -> Column:
    """A row of `assembled` as a struct, or as JSON text in which keys, values and types are not text but JSON."""
    if not as_json:
        return F.struct(*record_columns())
    names = list(RECORD_COLUMNS)
    before, after = names[: names.index("column_types")], names[names.index("mods") + 1 :]
    mods = F.transform("mods", lambda mod: _object({name: mod[name] for name in _VALUES}))
    return F.concat(
        F.rtrim(F.to_json(F.struct(*before), JSON_OPTIONS), F.lit("}")),
        F.lit(',"column_types":'),
        F.col("column_types"),
        F.lit(',"mods":['),
        F.array_join(mods, ","),
        F.lit("],"),
        F.ltrim(F.to_json(F.struct(*after), JSON_OPTIONS), F.lit("{")),
    )


def heartbeat_record(time: Column, as_json: bool) -> Column:
    """That everything up to and including `time` was read."""
    return _plain(F.struct(time.alias("timestamp")), as_json)


def child_record(time: Column, sequence: Column, children: Column, as_json: bool) -> Column:
    """`children`: array<struct<token, parent_partition_tokens>>."""
    fields = (time.alias("start_timestamp"), sequence.alias("record_sequence"), children.alias("child_partitions"))
    return _plain(F.struct(*fields), as_json)


def framed(kind: str, record: Column, as_json: bool) -> Column:
    """The record as the one column of READ_<stream>: a one-element array, or JSON text with one key. The struct in the
    array has three arrays; exactly one has an element.
    """
    if as_json:
        return _object({kind: record}).alias(CHANGE_RECORD)
    arrays = (F.array(record) if name == kind else F.array() for name in KINDS)
    return F.array(F.struct(*arrays)).cast(CHANGE_RECORD_DDL).alias(CHANGE_RECORD)


def _plain(record: Column, as_json: bool) -> Column:
    return F.to_json(record, JSON_OPTIONS) if as_json else record


def _object(members: dict[str, Column]) -> Column:
    """JSON of members that are JSON."""
    parts = [part for name, value in members.items() for part in (F.lit(f',"{name}":'), value)]
    return F.concat(F.lit("{"), F.lit(f'"{next(iter(members))}":'), *parts[1:], F.lit("}"))
