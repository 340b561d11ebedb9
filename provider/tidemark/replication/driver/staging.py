"""Events on their way into the event log: chunk by chunk into Parquet files, then by Spark into one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from tidemark.replication.driver.event_log import EVENT_COLUMNS, NO_OBJECT
from tidemark.replication.driver.uuids import uuid5
from tidemark.replication.planning.events import EVENT_NAMESPACE, GOES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace
    from tidemark.replication.sources.postgresql.transactions import EventRow, ObjectFacts

__all__ = ["EventStaging", "EventsOf", "staged_table"]

_ROWS_OF_A_TASK = 200_000
_FACTS = {
    "object": pa.string(),
    "object_id": pa.string(),
    "schema": pa.string(),
    "table": pa.string(),
    "schema_key": pa.string(),
    "primary_keys": pa.list_(pa.string()),
}
_ROW = {
    "commit": pa.int64(),
    "xid": pa.int64(),
    "at": pa.int64(),  # microseconds
    "lsn": pa.int64(),
    "nth": pa.int64(),
    "sequence": pa.int64(),
    "change": pa.string(),
    "half": pa.string(),
    "payload": pa.string(),
    "key": pa.string(),
    "old_key": pa.string(),
    "unchanged": pa.list_(pa.string()),
    "problem": pa.string(),
}
_SPARK_TYPES = {pa.string(): "string", pa.int64(): "bigint", pa.list_(pa.string()): "array<string>"}
_STAGED_DDL = ", ".join(f"`{name}` {_SPARK_TYPES[kind]}" for name, kind in {**_FACTS, **_ROW}.items())
_REPEATED = ["object", "object_id", "schema", "table", "schema_key", "xid", "at", "commit", "change", "half"]


@dataclass(frozen=True)
class EventsOf:
    """The facts that all events of a batch have in common."""

    stream: str
    read_method: str
    system_id: str
    batch: int
    read_at: datetime


class EventStaging:
    """The files of one batch, in a new directory of the workspace. `widest`: bytes of the largest payload."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._directory = workspace.new_directory()
        self._files: list[str] = []
        self._rows = 0
        self.widest = self._bytes = 0

    @property
    def mean(self) -> int:
        """Bytes of a payload, by and large."""
        return self._bytes // max(self._rows, 1)

    def stage(self, rows: Sequence[EventRow], facts: Sequence[ObjectFacts]) -> None:
        """One more file. Raises StorageRefused, StorageUnreachable."""
        sink = pa.BufferOutputStream()
        table = staged_table(rows, facts)
        pq.write_table(table, sink, compression="lz4", use_dictionary=_REPEATED, write_statistics=False)
        lengths = pc.binary_length(table["payload"])
        self.widest = max(self.widest, pc.max(lengths).as_py() or 0)
        self._bytes += pc.sum(lengths).as_py() or 0
        uri = f"{self._directory}/{len(self._files):06d}.parquet"
        self._workspace.write(uri, sink.getvalue().to_pybytes())
        self._files.append(uri)
        self._rows += len(rows)

    def events(self, spark: SparkSession, common: EventsOf) -> DataFrame:
        """All of it, as the event log has it."""
        staged = spark.read.schema(_STAGED_DDL).parquet(*self._files)
        return _events(staged.coalesce(1 + self._rows // _ROWS_OF_A_TASK), common)


def staged_table(rows: Sequence[EventRow], facts: Sequence[ObjectFacts]) -> pa.Table:
    """Rows of a file; what is the same for all events of an object is looked up in `facts` by its number."""
    numbers, *columns = zip(*rows, strict=True)
    places = pa.array(numbers, pa.int32())
    filled: dict[str, Any] = {
        name: pc.take(pa.array([getattr(one, name) for one in facts], kind), places) for name, kind in _FACTS.items()
    }
    for (name, kind), values in zip(_ROW.items(), columns, strict=True):
        filled[name] = pa.array(values, kind)
    return pa.table(filled)


def _events(staged: DataFrame, common: EventsOf) -> DataFrame:
    position, lsn, deleted = _hex("commit"), _lsn_text(F.col("lsn")), F.col("change").isin(*GOES)
    name = F.concat_ws("|", F.lit(common.system_id), position, _hex("lsn"), F.col("nth").cast("string"), F.col("half"))
    milliseconds = F.floor(F.col("at") / 1000).cast("string")
    metadata = F.struct(
        F.col("schema"),
        F.col("table"),
        deleted.alias("is_deleted"),
        F.col("change").alias("change_type"),
        F.col("xid").cast("string").alias("tx_id"),
        lsn.alias("lsn"),
        F.col("primary_keys"),
    )
    filled = {
        "stream_name": F.lit(common.stream),
        "read_method": F.lit(common.read_method),
        "object": F.coalesce(F.col("object"), F.lit(NO_OBJECT)),
        "uuid": uuid5(EVENT_NAMESPACE, name),
        "read_timestamp": F.lit(common.read_at),
        "source_timestamp": F.timestamp_micros("at"),
        "sort_keys": F.array(milliseconds, lsn, F.col("sequence").cast("string")),
        "source_metadata": metadata,
        "position": position,
        "batch": F.lit(common.batch),
    }
    return staged.select(
        *(filled.get(name, F.col(name)).cast(kind).alias(name) for name, kind in EVENT_COLUMNS.items())
    )


def _hex(column: str) -> Column:
    """As a LogPosition has it."""
    return F.lpad(F.hex(F.col(column)), 16, "0")


def _lsn_text(lsn: Column) -> Column:
    """As PostgreSQL writes it."""
    return F.concat(F.hex(F.shiftright(lsn, 32)), F.lit("/"), F.hex(lsn.bitwiseAND(F.lit(0xFFFFFFFF))))
