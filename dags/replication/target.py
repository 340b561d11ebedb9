"""Reads small Delta tables without Spark, for a comparison without the wait for a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from tidemark.lake.delta_log import DeltaLog
    from tidemark.model.table_log import AddFile

__all__ = ["read_rows"]


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a local table's newest version. Raises TableNotFound."""
    from tidemark.lake.delta_log import DeltaLog
    from tidemark.lake.live_files import live_files

    log = DeltaLog.open(str(path))
    return [row for file in live_files(log, log.head()) for row in _live_rows(log, path, file, columns)]


def _live_rows(log: DeltaLog, path: Path, file: AddFile, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows that the file's deletion vector does not name."""
    import pyarrow.parquet as pq

    from tidemark.lake.deletion_vectors import load

    rows: list[dict[str, Any]] = pq.ParquetFile(path / unquote(file.path)).read(columns=list(columns)).to_pylist()
    if file.deletion_vector is None:
        return rows
    deleted = load(file.deletion_vector, log.uri, log.storage)
    return [row for place, row in enumerate(rows) if place not in deleted]
