"""Searches of one key among many files: by a search path without Spark and through one job of Spark, and by scans.

Run `python -m tests.benchmarks.search_paths [files …] [--rows n] [--by-spark n] [--no-peers]`.
Peers in the same run: a scan, which is Delta's own data skipping by a random key, data skipping in a table sorted by
the key, and Parquet's bloom filters.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.testing import local_spark

__all__ = ["measured"]

ROWS = {64: 1_280_000, 1000: 500_000}
TIMES_ALONE, TIMES_BY_SPARK = 15, 3
KEY = "MD5(CAST(id * 7919 AS STRING))"
COLUMNS = [f"{KEY} AS id", "id AS n", "CAST(id % 1000 AS INT) AS g", "CONCAT('some text of row ', id) AS words"]
BLOOM = {
    "parquet.bloom.filter.enabled#id": "true",
    "parquet.bloom.filter.expected.ndv#id": "40000",
}


def measured(
    spark: SparkSession,
    root: Path,
    files: int,
    *,
    peers: bool = True,
    rows: int | None = None,
    by_spark: int = TIMES_BY_SPARK,
) -> dict[str, Any]:
    """The figures of a table with so many files. `by_spark`: searches by Spark, of which the median counts."""
    rows = rows or ROWS.get(files, files * 2000)
    plain, path = spark.range(0, rows, 1, files).selectExpr(*COLUMNS), root / "shop" / f"t{files}"
    plain.write.format("delta").save(str(path))
    client = connect(spark, f"sqlite:///{root}/control{files}.db", lake_root=str(root))
    name = f"shop.t{files}"
    client.add_search_optimization(name, "EQUALITY(id)")
    began = time.monotonic()
    kept = client.keep_search_path(name)
    found: dict[str, Any] = {"files": files, "rows": rows, "build_s": round(time.monotonic() - began, 1)}
    table = sum(file.size for file in client.table_search.newest(kept.search.table.path).files.values())
    found |= {
        "bytes_per_entry": round(kept.search.size / (kept.search.rows - files), 2),
        "share_of_table": round(kept.search.size / table, 3),
    }
    some = spark.range(TIMES_ALONE).selectExpr(f"{KEY.replace('id', f'id * {rows // 16}')} AS k")
    keys = [row.k for row in some.collect()]
    found |= _without_spark(client, root, name, files, keys)
    few = keys[:by_spark]
    found["one_job_ms"] = _median(lambda key: client.table(name).where(f"id = '{key}'").collect(), few)
    found["scan_ms"] = _scan(spark, path, few)
    if peers:
        found |= _peers(spark, root, files, rows, few)
    client.close()
    return found


def _without_spark(client: Lake, root: Path, name: str, files: int, keys: list[str]) -> dict[str, Any]:
    first = connect(_no_spark, f"sqlite:///{root}/control{files}.db", lake_root=str(root))
    began = time.monotonic()
    assert first.search(name, f"id = '{keys[0]}'").to_arrow().num_rows == 1
    first_ms = (time.monotonic() - began) * 1000
    again = _median(lambda key: first.search(name, f"id = '{key}'").to_arrow(), keys)
    read = [len(client.explain_search(name, f"id = '{key}'").files) for key in keys]
    first.close()
    return {"first_ms": round(first_ms), "again_ms": again, "files_read": statistics.mean(read)}


def _peers(spark: SparkSession, root: Path, files: int, rows: int, keys: list[str]) -> dict[str, Any]:
    plain = spark.range(0, rows, 1, files).selectExpr(*COLUMNS)
    in_order = root / f"sorted{files}"
    plain.repartitionByRange(files, "id").write.format("delta").save(str(in_order))
    for setting, value in BLOOM.items():
        spark.conf.set(setting, value)
    bloom = root / f"bloom{files}"
    plain.write.format("delta").save(str(bloom))
    for setting in BLOOM:
        spark.conf.unset(setting)
    return {"sorted_ms": _scan(spark, in_order, keys), "bloom_ms": _scan(spark, bloom, keys)}


def _scan(spark: SparkSession, path: Path, keys: list[str]) -> float:
    def scan(key: str) -> object:
        return spark.read.format("delta").load(str(path)).where(f"id = '{key}'").collect()

    scan(keys[0])
    return _median(scan, keys)


def _median(call: Callable[[str], object], keys: list[str]) -> float:
    times = []
    for key in keys:
        began = time.monotonic()
        call(key)
        times.append((time.monotonic() - began) * 1000)
    return round(statistics.median(times), 1)


def _no_spark() -> SparkSession:
    raise AssertionError("Spark was started")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=int, nargs="*", default=[64, 1000])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--by-spark", type=int, default=TIMES_BY_SPARK)
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        spark = local_spark(warehouse=Path(place) / "warehouse", memory="3g")
        for files in given.files:
            found = measured(
                spark,
                Path(place) / "lake",
                files,
                peers=not given.no_peers,
                rows=given.rows,
                by_spark=given.by_spark,
            )
            print(found, flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
