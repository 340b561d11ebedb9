"""A backlog consumed in bounded steps: CPU and wall seconds of each step, and how much memory it left behind.

    python -m tests.benchmarks.backlog --commits 10000 --steps 10 --rows 100 [--max-rows] [--home DIR]

A table gets `--commits` commits of `--rows` inserted rows each, and every tenth also takes an older file away. A stream
from before them is then consumed into another table in `--steps` windows, by max_commits or by max_rows. Memory: the
resident set of this process, and the JVM's heap after a collection. The rows of the target are counted at the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, spent
from tidemark.client import Version, connect
from tidemark.client.lake import Lake
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import ACTION
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.consume import consume
from tidemark.testing import local_spark

CHECKPOINT_EVERY = 1_000
MEGABYTE = 1 << 20


def write_history(spark: SparkSession, path: Path, commits: int, rows: int) -> int:
    """Files and commits as a small writer makes them, checkpoints by Delta. Returns how many rows are left."""
    columns = "id BIGINT, item STRING"
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    start = DeltaLog.open(str(path)).head()
    alive = 0
    for number in range(commits):
        actions = list(_inserted(path, number, rows))
        alive += rows
        if number % 10 == 9:
            actions.append(_taken_away(path, number - 5, rows))
            alive -= rows
        text = "\n".join(json.dumps(action) for action in actions)
        (path / "_delta_log" / f"{start + 1 + number:020d}.json").write_text(text)
        if number % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path)).checkpoint()
    return alive


def _inserted(path: Path, number: int, rows: int) -> Iterator[dict[str, Any]]:
    first = number * rows
    ids = range(first, first + rows)
    file = path / _name(number)
    pyarrow.parquet.write_table(
        pyarrow.table({"id": pyarrow.array(ids, pyarrow.int64()), "item": [f"item {id}" for id in ids]}), file
    )
    now = int(time.time() * 1000)
    yield {"commitInfo": {"timestamp": now, "operation": "WRITE", "operationParameters": {}}}
    yield {
        "add": {
            "path": file.name,
            "partitionValues": {},
            "size": file.stat().st_size,
            "modificationTime": now,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows}),
            "baseRowId": first,
            "defaultRowCommitVersion": number + 1,
        }
    }
    mark = json.dumps({"rowIdHighWaterMark": first + rows - 1})
    yield {"domainMetadata": {"domain": "delta.rowTracking", "configuration": mark, "removed": False}}


def _taken_away(path: Path, number: int, rows: int) -> dict[str, Any]:
    file = path / _name(number)
    return {
        "remove": {
            "path": file.name,
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": file.stat().st_size,
            "stats": json.dumps({"numRecords": rows}),
            "baseRowId": number * rows,
            "defaultRowCommitVersion": number + 1,
        }
    }


def _name(number: int) -> str:
    return f"part-{number:06d}.parquet"


def consume_all(lake: Lake, spark: SparkSession, target: Path, bound: Bound) -> int:
    """One line for each window until nothing is left; returns the number of windows."""
    context = lake._context
    write = PlannedWrite(WriteAs.APPEND, str(target), source="s", tables={str(target): context.tables(str(target)).uri})
    windows = 0
    while lake.has_data("s"):
        key = TransactionKey("benchmark", f"run {windows}", "deliver")

        def one_window(key: TransactionKey = key) -> tuple[tuple[object, ...], ...]:
            done = consume(
                context.runtime,
                key=key,
                streams=["s"],
                writes=[write],
                owner="benchmark",
                bound=bound,
            )
            return ((done.result.rows,),)

        run = spent(one_window)
        windows += 1
        place = lake.describe_stream("s").offset_version
        resident, heap = _memory(spark)
        print(f"| {windows} | {place:,} | {run.cpu:.1f} | {run.wall:.1f} | {resident:.0f} | {heap:.0f} |", flush=True)
    return windows


def _memory(spark: SparkSession) -> tuple[float, float]:
    """MiB resident in this process, and used in the JVM's heap, both after a collection."""
    gc.collect()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return psutil.Process().memory_info().rss / MEGABYTE, (runtime.totalMemory() - runtime.freeMemory()) / MEGABYTE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--max-rows", action="store_true", help="bound by rows, not by commits")
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with nullcontext(given.home) if given.home else tempfile.TemporaryDirectory() as place:
        home = Path(place)
        spark = local_spark(warehouse=home, memory="4g", more=AS_IN_PRODUCTION)
        source, target = home / "source", home / "target"
        left = write_history(spark, source, given.commits, given.rows)
        spark.sql(f"CREATE TABLE delta.`{target}` (id BIGINT, item STRING, `{ACTION}` STRING) USING delta")
        lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home))
        lake.create_stream("s", on=str(source), at=Version(0))
        most = given.commits * given.rows // given.steps if given.max_rows else given.commits // given.steps
        bound = Bound(max_rows=most) if given.max_rows else Bound(max_commits=most)
        print("| window | up to version | CPU s | wall s | MiB resident | MiB of heap |")
        print("| --- | --- | --- | --- | --- | --- |")
        consume_all(lake, spark, target, bound)
        sign = F.when(F.col(f"`{ACTION}`") == "INSERT", 1).otherwise(-1)
        delivered = spark.read.format("delta").load(str(target)).agg(F.sum(sign)).collect()[0][0]
        print(f"{delivered:,} rows delivered and not taken back, {left:,} in the source")


if __name__ == "__main__":
    main()
