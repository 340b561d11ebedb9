"""Reads small Delta tables without Spark, for a comparison that is not to wait for a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

__all__ = ["read_rows"]


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a local table's newest version. Raises ValueError for one with deletion vectors, TableNotFound."""
    import pyarrow.parquet as pq

    from tidemark.lake.delta_log import DeltaLog

    log = DeltaLog.open(str(path))
    files: dict[tuple[str, str | None], str] = {}
    for commit in log.commits(-1, log.head()):
        for removed in commit.removes:
            files.pop(removed.key, None)
        for added in commit.adds:
            if added.deletion_vector is not None:
                raise ValueError(f"{path} has deletion vectors; read it with Spark")
            files[added.key] = unquote(added.path)
    rows: list[dict[str, Any]] = []
    for name in files.values():
        rows += pq.ParquetFile(path / name).read(columns=list(columns)).to_pylist()
    return rows
