"""Capture of a change stream against a plain copy of the same changes: rows a second, CPU seconds, bytes.

    python -m tests.benchmarks.capture --rows 1000000 --rounds 3 [--warm-ups 1] [--partitions 16] [--home DIR]

One table; the batch is two commits: rows / 2 are inserted, and a MERGE updates, deletes and inserts as many. The *copy*
reads the changes that capture reads, pairs them, and appends them as they are, typed, with a token column, to a table
partitioned by it: what a log costs at the least. Ways are interleaved; CPU seconds are those of the process tree.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, home_for, medians, spent
from tests.benchmarks.shapes import Shape, build_one, rows_of
from tidemark.change_streams.driver.capture import capture_batch
from tidemark.change_streams.model.change_streams import (
    CaptureBatch,
    ChangeStream,
    ChangeStreamOptions,
    TableRange,
    WatchedTable,
)
from tidemark.change_streams.planning.tokens import first_partitions
from tidemark.changes.driver.every_change import plan_pages
from tidemark.changes.driver.rows import read_changed_images
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.testing import local_spark

CREATED = datetime(2020, 1, 1, tzinfo=UTC)


def _statements(rows: int):  # type: ignore[no-untyped-def]
    half, more = rows // 2, rows + rows // 2
    yield f"INSERT INTO {{t}} {rows_of(rows, more, 8)}"
    yield (
        f"MERGE INTO {{t}} t USING (SELECT id * 2 AS id FROM range({half + half // 2})) s ON t.id = s.id "
        f"WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET x = x + 1"
    )


SHAPE = Shape("capture", "an INSERT and a MERGE", _statements)


@dataclass(frozen=True)
class Ways:
    """Each writes a table of its own under `home`, which is removed afterwards."""

    spark: SparkSession
    home: Path
    table: Path
    start: int
    end: int
    partitions: int

    def capture(self) -> tuple[int, int]:
        """Rows and bytes of the log of a change stream."""
        path = self.home / "log"
        log = DeltaLog.open(str(self.table))
        watched = WatchedTable(TableRef("t", log.uri, log.state().table_id), ("id",), None, self.start)
        options = ChangeStreamOptions()
        stream = ChangeStream("uid", "s", False, (watched,), options, CREATED, f"file://{path}", CREATED, 0)
        active = first_partitions(stream.uid, CREATED, self.partitions)
        ranges = (TableRange(watched, self.start, self.end),)
        batch = CaptureBatch(stream, 0, ranges, CREATED, CREATED, active, 10**9, 0, datetime.now(UTC))
        with Workspace(f"file://{self.home}/_tidemark", "benchmark") as workspace:
            return capture_batch(self.spark, batch, workspace).rows, taken(path)

    def copy(self) -> tuple[int, int]:
        """Rows and bytes of a copy of the changes."""
        path = self.home / "copy"
        log = DeltaLog.open(str(self.table))
        with Workspace(f"file://{self.home}/_tidemark", "benchmark") as workspace:
            (plan,) = plan_pages(log, self.start, self.end, rows_per_page=10**9)
            images = read_changed_images(self.spark, log, plan, workspace)
            key = F.coalesce("new.id", "old.id").cast("string")
            token = F.floor(F.pmod(F.xxhash64(key), F.lit(65_536)) * self.partitions / 65_536).cast("string")
            rows = images.withColumn("token", token).repartition(self.partitions, "token")
            rows.write.format("delta").partitionBy("token").save(str(path))
        return self.spark.read.format("delta").load(str(path)).count(), taken(path)


def taken(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*.parquet"))


def compare(ways: Ways, rounds: int, warm_ups: int) -> dict[str, list[Run]]:
    """`rounds` interleaved rounds, after some that warm up."""
    methods: dict[str, Callable[[], tuple[int, int]]] = {"capture": ways.capture, "copy": ways.copy}
    runs: dict[str, list[Run]] = {name: [] for name in methods}
    for number in range(warm_ups + rounds):
        for name, way in methods.items():
            run = spent(lambda way=way: (way(),))  # type: ignore[misc]
            shutil.rmtree(ways.home / ("log" if name == "capture" else "copy"))
            if number >= warm_ups:
                runs[name].append(run)
    return runs


def main() -> None:
    """Build the table, compare, print the table of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--home", help="where the tables go (default: a temporary directory)")
    given = parser.parse_args()
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home:
        spark = local_spark(warehouse=home, memory="4g", app_name="capture", more=AS_IN_PRODUCTION)
        table, start, end = build_one(spark, SHAPE, given.rows, home)
        runs = compare(Ways(spark, home, table, start, end, given.partitions), given.rounds, given.warm_ups)
    print("| way | changed rows | wall s | CPU s | rows / s | log, MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, of_way in runs.items():
        cpu, wall = medians(of_way)
        ((rows, size),) = of_way[0].answer
        print(f"| {name} | {rows:,} | {wall:.1f} | {cpu:.1f} | {rows / wall:,.0f} | {size / 1e6:.1f} |", flush=True)
    print(f"load at the end: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}")


if __name__ == "__main__":
    main()
