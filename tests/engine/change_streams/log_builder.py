"""Rows of a change stream's log made by hand: independent of capture, so that reading is not judged by its writer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.table_templates import put_table
from tidemark.change_streams.driver.log_table import LOG_COLUMNS, LOG_DDL, META_TOKEN, TOKEN_COLUMN
from tidemark.change_streams.model.change_streams import ChangeStream, ChangeStreamOptions, TableRef, WatchedTable

__all__ = ["BEGIN", "TYPES", "LogBuilder", "at"]

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
TYPES = [
    {"name": "id", "type": {"code": "INT64"}, "is_primary_key": True, "ordinal_position": 1},
    {"name": "v", "type": {"code": "STRING"}, "is_primary_key": False, "ordinal_position": 3},
]


def at(seconds: float) -> datetime:
    """So many seconds after a stream was made that begins at BEGIN."""
    return BEGIN + timedelta(microseconds=round(seconds * 1_000_000))


@dataclass
class LogBuilder:
    """A log at `path`. Rows are gathered, and `commit` appends them with a window row, as one batch does."""

    spark: SparkSession
    path: Path
    uid: str = "s1"
    begin: datetime = BEGIN
    gathered: list[dict[str, Any]] = field(default_factory=list)
    batch: int = 0

    def create(self) -> LogBuilder:
        made = f"CREATE TABLE {{t}} ({LOG_DDL}) USING delta PARTITIONED BY ({TOKEN_COLUMN})"
        put_table(self.spark, self.path, made)
        return self

    def at(self, seconds: float) -> datetime:
        """So many seconds after the stream was made."""
        return self.begin + timedelta(microseconds=round(seconds * 1_000_000))

    def stream(self, published: float | None = None, retention: timedelta = timedelta(days=1)) -> ChangeStream:
        table = WatchedTable(TableRef("db.t", "file:///t", "t1"), ("id",), None, 0)
        options = ChangeStreamOptions(retention=retention)
        until = self.begin if published is None else self.at(published)
        return ChangeStream(self.uid, "s", False, (table,), options, self.begin, str(self.path), until, self.batch)

    def partition(self, token: str, start: float, *parents: str, lo: int = 0, hi: int = 65_536) -> LogBuilder:
        row = {"record_type": "partition", "commit_timestamp": self.at(start), "token": token, "lo": lo, "hi": hi}
        return self.row(META_TOKEN, **row, parents=list(parents))

    def record(
        self,
        token: str,
        seconds: float,
        keys: Iterable[object] = (1,),
        sequence: int = 0,
        mod_type: str = "INSERT",
        **more: Any,
    ) -> LogBuilder:
        """One record of a transaction of its own, a modification for each key; `more` are columns of the log."""
        for number, key in enumerate(keys):
            row = {
                "record_type": "data",
                "commit_timestamp": self.at(seconds),
                "record_sequence": f"{sequence:012d}",
                "mod_number": number,
                "raw_commit_timestamp": self.at(seconds),
                "server_transaction_id": f"t1:{int(seconds * 1000)}",
                "table_name": "db.t",
                "source_version": int(seconds * 1000),
                "mod_type": mod_type,
                "value_capture_type": "OLD_AND_NEW_VALUES",
                "column_types": json.dumps(TYPES),
                "keys": json.dumps({"id": str(key)}),
                "new_values": "{}" if mod_type == "DELETE" else json.dumps({"v": f"n{key}"}),
                "old_values": "{}" if mod_type == "INSERT" else json.dumps({"v": f"o{key}"}),
                "bucket": key,
                "is_last_record_in_transaction_in_partition": True,
                "number_of_records_in_transaction": 1,
                "number_of_partitions_in_transaction": 1,
                "transaction_tag": "",
                "is_system_transaction": False,
            }
            self.row(token, **{**row, **more})
        return self

    def commit(self, published: float) -> LogBuilder:
        """The gathered rows are one batch, after which everything before `published` is in the log."""
        self.row(META_TOKEN, record_type="window", commit_timestamp=self.at(published))
        rows = [tuple(row.get(name) for name in LOG_COLUMNS) for row in self.gathered]
        frame = self.spark.createDataFrame(rows, LOG_DDL).coalesce(1)
        frame.write.format("delta").mode("append").save(str(self.path))
        self.gathered, self.batch = [], self.batch + 1
        return self

    def row(self, under: str, **row: Any) -> LogBuilder:
        self.gathered.append({TOKEN_COLUMN: under, "batch": self.batch, **row})
        return self
