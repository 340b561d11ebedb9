"""Events on their way into the event log: chunk by chunk into Parquet files, then by Spark into one commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from tidemark.model.source_address import SourceKind
from tidemark.replication.driver.event_log import NO_OBJECT, event_columns
from tidemark.replication.driver.log_forms import EventsOf, LogForm, form_of_kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace
    from tidemark.replication.sources.change_log import ObjectFacts

__all__ = ["EventStaging", "staged_table"]

_ROWS_OF_A_TASK = 200_000
_FACTS = {
    "object": pa.string(),
    "object_id": pa.string(),
    "schema": pa.string(),
    "table": pa.string(),
    "schema_key": pa.string(),
    "primary_keys": pa.list_(pa.string()),
}
_EVENT = {
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
_REPEATED = ("object", "object_id", "schema", "table", "schema_key", "change", "half")


class EventStaging:
    """The files of one batch, in a new directory of the workspace. `widest`: bytes of the largest payload."""

    def __init__(self, workspace: Workspace, kind: SourceKind) -> None:
        self._workspace, self._form = workspace, form_of_kind(kind)
        self._directory = workspace.new_directory()
        self._files: list[str] = []
        self._rows = 0
        self.widest = self._bytes = 0

    @property
    def mean(self) -> int:
        """Bytes of a payload, by and large."""
        return self._bytes // max(self._rows, 1)

    def stage(self, rows: Sequence[tuple[Any, ...]], facts: Sequence[ObjectFacts]) -> None:
        """One more file. Raises StorageRefused, StorageUnreachable."""
        sink = pa.BufferOutputStream()
        table = staged_table(rows, facts, self._form)
        repeated = [*_REPEATED, *self._form.repeated]
        pq.write_table(table, sink, compression="lz4", use_dictionary=repeated, write_statistics=False)
        lengths = pc.binary_length(table["payload"])
        self.widest = max(self.widest, pc.max(lengths).as_py() or 0)
        self._bytes += pc.sum(lengths).as_py() or 0
        uri = f"{self._directory}/{len(self._files):06d}.parquet"
        self._workspace.write(uri, sink.getvalue().to_pybytes())
        self._files.append(uri)
        self._rows += len(rows)

    def events(self, spark: SparkSession, common: EventsOf) -> DataFrame:
        """All of it, as the event log has it."""
        columns = {**_FACTS, **self._form.row, **_EVENT}
        ddl = ", ".join(f"`{name}` {_SPARK_TYPES[kind]}" for name, kind in columns.items())
        staged = spark.read.schema(ddl).parquet(*self._files)
        return _events(staged.coalesce(1 + self._rows // _ROWS_OF_A_TASK), common, self._form)


def staged_table(rows: Sequence[tuple[Any, ...]], facts: Sequence[ObjectFacts], form: LogForm) -> pa.Table:
    """Rows of a file; what is the same for all events of an object is looked up in `facts` by its number."""
    numbers, *columns = zip(*rows, strict=True)
    places = pa.array(numbers, pa.int32())
    filled: dict[str, Any] = {
        name: pc.take(pa.array([getattr(one, name) for one in facts], kind), places) for name, kind in _FACTS.items()
    }
    for (name, kind), values in zip({**form.row, **_EVENT}.items(), columns, strict=True):
        filled[name] = pa.array(values, kind)
    return pa.table(filled)


def _events(staged: DataFrame, common: EventsOf, form: LogForm) -> DataFrame:
    filled = {
        "stream_name": F.lit(common.stream),
        "read_method": F.lit(common.read_method),
        "object": F.coalesce(F.col("object"), F.lit(NO_OBJECT)),
        "read_timestamp": F.lit(common.read_at),
        "source_timestamp": F.timestamp_micros("at"),
        "batch": F.lit(common.batch),
        **form.filled(common),
    }
    columns = event_columns(form)
    return staged.select(*(filled.get(name, F.col(name)).cast(kind).alias(name) for name, kind in columns.items()))
