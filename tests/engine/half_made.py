"""Directories as a process leaves them that died between the making of a table and its first commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["DATA_AND_LOG", "EMPTY", "EMPTY_LOG", "NOT_RENAMED", "WITHOUT_ROWS", "half_made"]

EMPTY, EMPTY_LOG = ("",), ("_delta_log/",)
DATA_AND_LOG = ("part-0.parquet", "_delta_log/")
NOT_RENAMED = ("_delta_log/.00000000000000000000.json.1b2.tmp", "xy/")  # a commit, as HDFS and local disks have it
WITHOUT_ROWS = ("_delta_log/_staged_commits/", "part-00000-8d.c000.snappy.parquet")  # Spark's, before the commit


def half_made(place: Path, names: tuple[str, ...]) -> Path:
    """The directory with these files; a name that ends with `/` is a directory."""
    for name in names:
        if name.endswith("/") or not name:
            (place / name).mkdir(parents=True)
        else:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".snappy.parquet"):
                pq.write_table(pa.table({"id": pa.array([], pa.int64())}), place / name)
            else:
                (place / name).write_text("{}")
    return place
