"""Time passes for Delta tables and for the streams on them: whatever has a time becomes older by as much."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tidemark.control.store import ControlStore
from tidemark.streams.store.schema import offset_moves, streams
from tidemark.streams.worker import missing_files
from tidemark.streams.worker.unread_commits import CommitCache

__all__ = ["age_store", "age_table", "pass_time"]

TIMES = {
    "commitInfo": ("timestamp", "inCommitTimestamp"),
    "remove": ("deletionTimestamp",),
    "add": ("modificationTime",),
    "txn": ("lastUpdated",),
}


def pass_time(spark: SparkSession, tables: Iterable[Path], store: ControlStore, by: timedelta) -> None:
    """Now is later by that much: for VACUUM, for log cleanup, for time travel and for STALE_AFTER."""
    for table in tables:
        age_table(table, by)
    age_store(store, by)
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # it keeps logs in memory, by path


def age_table(table: Path, by: timedelta) -> None:
    """Rewrites the commits, which nobody else ever does. So what this process remembers of them is forgotten."""
    missing_files.COMMIT_CACHE = CommitCache()  # type: ignore[attr-defined]
    log = table / "_delta_log"
    for file in sorted(log.glob("*.json")):
        _rewrite(file, "".join(_older_line(line, by) + "\n" for line in file.read_text().splitlines()).encode(), by)
    for file in log.glob("*.checkpoint*.parquet"):
        aged = pa.BufferOutputStream()
        pq.write_table(_older_checkpoint(pq.read_table(file), by), aged)
        _rewrite(file, aged.getvalue().to_pybytes(), by)
    for file in table.rglob("*"):
        if file.is_file() and not (file.parent == log and file.suffix in (".json", ".parquet")):
            _date_back(file, file.stat().st_mtime, by)


def age_store(store: ControlStore, by: timedelta) -> None:
    def older(connection: Any) -> None:
        for table, key, column in ((streams, "uid", "anchor"), (offset_moves, "id", "moved_at")):
            for row in connection.execute(table.select()).mappings().all():
                past = {column: row[column] - by}
                connection.execute(table.update().where(table.c[key] == row[key]).values(**past))

    store.write(older)


def _older_line(line: str, by: timedelta) -> str:
    action = json.loads(line)
    for kind, names in TIMES.items():
        for name in names:
            if (action.get(kind) or {}).get(name) is not None:
                action[kind][name] -= _millis(by)
    return json.dumps(action)


def _older_checkpoint(found: pa.Table, by: timedelta) -> pa.Table:
    columns = {}
    for name in found.column_names:
        rows = found.column(name).to_pylist()
        for row in rows:
            for time in TIMES.get(name, ()):
                if row is not None and row.get(time) is not None:
                    row[time] -= _millis(by)
        columns[name] = pa.array(rows, found.schema.field(name).type)
    return pa.table(columns, found.schema)


def _rewrite(file: Path, content: bytes, by: timedelta) -> None:
    modified = file.stat().st_mtime
    file.write_bytes(content)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's, of the old content
    _date_back(file, modified, by)


def _date_back(file: Path, modified: float, by: timedelta) -> None:
    then = modified - by.total_seconds()
    os.utime(file, (then, then))


def _millis(by: timedelta) -> int:
    return int(by.total_seconds() * 1000)
