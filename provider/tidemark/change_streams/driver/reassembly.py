"""Transactions put together from the records of all their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.change_streams.driver.log_rows import LogRows
from tidemark.change_streams.driver.read import log_of
from tidemark.change_streams.driver.records import RECORD_COLUMNS, assembled, record_columns
from tidemark.change_streams.model.change_streams import ChangeStream, Partition, Position
from tidemark.change_streams.planning.reading import HEARTBEATS, ask_to_read, below_watermark, require_kept
from tidemark.errors import TransactionIncomplete

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["assemble_transactions", "net_effect", "read_transactions"]

_OF_TRANSACTION = ("commit_timestamp", "server_transaction_id")
_OF_ALL_ITS_RECORDS = ("transaction_tag", "is_system_transaction", "number_of_records_in_transaction")
_NOTHING = "{}"
_JSON_MAP = "map<string, variant>"


def read_transactions(
    spark: SparkSession,
    stream: ChangeStream,
    *,
    now: datetime,
    start_timestamp: datetime | None,
    end_timestamp: datetime | None = None,
    low_watermark: datetime | None = None,
    net: bool = False,
    options: Mapping[str, str] | None = None,
    first: Sequence[Partition] = (),
) -> DataFrame:
    """The transactions of all partitions in [start, end] that are below the low watermark, or below the end of
    everything published. Each is one row as `assemble_transactions` describes, or, with `net`, as `net_effect` does.

    Pinned to the log of now, and lazy but for one look for what is missing. `options`, `first` as in
    `read_change_stream`. All errors are raised before a row is handed out. Raises as `ask_to_read` and
    `below_watermark`, OutOfRange if retention has removed records after the start, ChangeStreamNotFound,
    TransactionIncomplete.
    """
    request = ask_to_read(
        stream,
        now=now,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        partition_token=None,
        heartbeat_milliseconds=HEARTBEATS[0],  # there are none
        read_options=None,
    )
    until = below_watermark(request, stream.published_until, low_watermark)
    log = log_of(spark, stream, LogRows.pinned, options, first)
    require_kept(request.start, log.expired_until())
    records = assembled(log.data(None, Position(request.start), Position(until))).select(*record_columns())
    transactions = assemble_transactions(records, until, stream=stream.name)
    return net_effect(transactions) if net else transactions


def assemble_transactions(records: DataFrame, low_watermark: datetime, *, stream: str) -> DataFrame:
    """One row for each transaction below the low watermark, which is exclusive, sorted by commit timestamp and id. The
    columns are commit_timestamp, server_transaction_id, transaction_tag, is_system_transaction,
    number_of_records_in_transaction and `records`. `records` is an array of structs of RECORD_COLUMNS by
    record_sequence.

    `records`: rows of `read_records` of all partitions, from an earlier low watermark on. They have nothing before that
    one and everything up to this one; a record may occur twice. Looks at all of them once for missing records, and is
    lazy then; `records` must not change until the result is read. A transaction must fit into a task's memory. Raises
    TransactionIncomplete.
    """
    below = records.where(F.col("commit_timestamp") < F.lit(low_watermark))
    _require_complete(below, low_watermark, stream)
    once = below.dropDuplicates([*_OF_TRANSACTION, "record_sequence"])
    keyed = F.struct("record_sequence", F.struct(*RECORD_COLUMNS).alias("record"))
    whole = once.groupBy(*_OF_TRANSACTION).agg(
        *(F.first(name).alias(name) for name in _OF_ALL_ITS_RECORDS),
        F.transform(F.array_sort(F.collect_list(keyed), _by_sequence), lambda one: one["record"]).alias("records"),
    )
    return whole.sort(*_OF_TRANSACTION)


def net_effect(transactions: DataFrame) -> DataFrame:
    """The net changes of each transaction of `assemble_transactions`: its columns, with an array `changes` in place of
    `records`. A change has table_name, keys, mod_type, new_values and old_values; changes are sorted by table, keys and
    mod_type.

    One key of a table has one change. INSERT and UPDATE are an INSERT, INSERT and DELETE nothing, UPDATE and DELETE a
    DELETE. DELETE and INSERT stay two. Values are those of the last write, old values those of the first; numbers may
    be written otherwise if rows were merged. A transaction without a net effect has no changes.
    """
    mods = (
        transactions.select(*_OF_TRANSACTION, F.explode("records").alias("record"))
        .select(*_OF_TRANSACTION, "record", F.posexplode("record.mods").alias("number", "mod"))
        .select(
            *_OF_TRANSACTION,
            "record.table_name",
            "mod.keys",
            F.struct("record.record_sequence", "number", "record.mod_type", "mod.new_values", "mod.old_values").alias(
                "mod"
            ),
        )
    )
    of_key = mods.groupBy(*_OF_TRANSACTION, "table_name", "keys").agg(F.array_sort(F.collect_list("mod")).alias("mods"))
    changes = of_key.select(
        *_OF_TRANSACTION, "table_name", "keys", F.explode(_changes(F.col("mods"))).alias("change")
    ).select(*_OF_TRANSACTION, F.struct("table_name", "keys", "change.*").alias("change"))
    gathered = changes.groupBy(*_OF_TRANSACTION).agg(F.array_sort(F.collect_list("change")).alias("changes"))
    none = F.array().cast(gathered.schema["changes"].dataType)
    kept = transactions.drop("records").join(gathered, list(_OF_TRANSACTION), "left")
    return kept.withColumn("changes", F.coalesce("changes", none)).sort(*_OF_TRANSACTION)


def _require_complete(records: DataFrame, low_watermark: datetime, stream: str) -> None:
    counted = records.groupBy(*_OF_TRANSACTION).agg(
        F.count_distinct("record_sequence").alias("found"),
        F.max("number_of_records_in_transaction").alias("expected"),
    )
    missing = counted.where(~F.col("found").eqNullSafe(F.col("expected"))).sort(*_OF_TRANSACTION).limit(1)
    for row in missing.collect():
        raise TransactionIncomplete(
            transaction=row["server_transaction_id"],
            stream=stream,
            found=row["found"],
            expected=row["expected"],
            watermark=low_watermark,
        )


def _by_sequence(one: Column, other: Column) -> Column:
    """Sequences of a transaction are unique; the records themselves are not compared."""
    left, right = one["record_sequence"], other["record_sequence"]
    return F.when(left < right, -1).when(left > right, 1).otherwise(0)


def _changes(mods: Column) -> Column:
    """The net changes of the modifications of one key, in order."""
    deletes = F.transform(mods, lambda mod: mod["mod_type"] == "DELETE")
    from_end = F.array_position(F.reverse(deletes), True)
    after = F.filter(mods, lambda _, number: (from_end == 0) | (number > F.size(mods) - from_end))
    before = F.slice(mods, 1, F.greatest(F.array_position(deletes, True), F.lit(1)).cast("int"))
    deleted = _change("DELETE", F.lit(_NOTHING), _merged(F.reverse(before), "old_values"))
    inserted = _change("INSERT", _merged(after, "new_values"), F.lit(_NOTHING))
    updated = _change("UPDATE", _merged(mods, "new_values"), _merged(F.reverse(mods), "old_values"))
    was = F.element_at(mods, 1)["mod_type"] != "INSERT"
    is_there = F.element_at(mods, -1)["mod_type"] != "DELETE"
    alone = F.transform(mods, lambda mod: _change(mod["mod_type"], mod["new_values"], mod["old_values"]))
    return (
        F.when(F.size(mods) == 1, alone)
        .when(was & is_there, F.when(from_end > 0, F.array(deleted, inserted)).otherwise(F.array(updated)))
        .when(was, F.array(deleted))
        .when(is_there, F.array(inserted))
        .otherwise(F.array())
    )


def _change(mod_type: str | Column, new: Column, old: Column) -> Column:
    kind = F.lit(mod_type) if isinstance(mod_type, str) else mod_type
    return F.struct(kind.alias("mod_type"), new.alias("new_values"), old.alias("old_values"))


def _merged(mods: Column, values: str) -> Column:
    """JSON objects laid over each other, later ones on top."""
    read = F.transform(mods, lambda mod: F.from_json(mod[values], _JSON_MAP))
    laid = F.aggregate(read, F.from_json(F.lit(_NOTHING), _JSON_MAP), _over)
    return F.to_json(F.map_from_entries(F.array_sort(F.map_entries(laid), _by_key)))


def _over(below: Column, above: Column) -> Column:
    kept = F.map_filter(below, lambda name, _: ~F.array_contains(F.map_keys(above), name))
    return F.map_concat(kept, above)


def _by_key(one: Column, other: Column) -> Column:
    return F.when(one["key"] < other["key"], -1).when(one["key"] > other["key"], 1).otherwise(0)
