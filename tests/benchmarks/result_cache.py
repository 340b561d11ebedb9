"""The result cache: how long a hit takes without a JVM, and how much a miss adds to a query.

    python -m tests.benchmarks.result_cache [--rows 3000000] [--rounds 7]

A hit reads one Parquet file, and the logs of its tables; imports are done. A miss and the plain query run in turn
in one session, over the same table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.testing import local_spark

ZONE = {"spark.sql.session.timeZone": "UTC"}
HITS = 200
Times = list[tuple[float, float]]


def main(rows: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        spark = local_spark(warehouse=root)
        for number in range(10):
            count = rows if number == 0 else 1000
            frame = spark.range(0, count, 1, 4).selectExpr("id", "id % 1000 AS g", "CAST(id AS DECIMAL(12, 2)) AS x")
            frame.write.format("delta").save(str(root / f"lake/t{number}"))
        lake = connect(spark, f"sqlite:///{root}/control.db", lake_root=str(root))
        misses(spark, lake, root, rounds)
        texts = {1: "SELECT g, sum(x) AS s FROM lake.t1 GROUP BY g ORDER BY g", 10: of_ten()}
        for text in texts.values():
            lake.query(text)
        idle = connect(never, f"sqlite:///{root}/control.db", lake_root=str(root), session_settings=ZONE)
        for tables, text in texts.items():
            shown(f"hit of {tables} tables", timed(lambda text=text: idle.query(text).to_arrow(), HITS, os_cpu))
        count = "SELECT count(*) AS n, min(id), max(id) FROM lake.t0"
        shown("count, min and max from the log", timed(lambda: idle.query(count).to_arrow(), HITS, os_cpu))
        spark.stop()


def never() -> SparkSession:
    raise AssertionError("Spark was started")


def of_ten() -> str:
    joins = " ".join(f"JOIN lake.t{number} USING (id)" for number in range(1, 10))
    return f"SELECT count(*) + 0 AS n FROM lake.t0 {joins}"


def misses(spark: SparkSession, lake: Lake, root: Path, rounds: int) -> None:
    """The plain query and the missed one in turn, after two rounds that do not count."""
    table = f"delta.`{root}/lake/t0`"
    plain: Times = []
    missed: Times = []
    for number in range(rounds + 2):
        text = f"SELECT g, count(*) AS n, sum(x) AS s, {number} AS r FROM lake.t0 GROUP BY g ORDER BY g"
        acts = [
            (plain, lambda text=text: spark.sql(text.replace("lake.t0", table)).toArrow()),
            (missed, lambda text=text: lake.query(text).to_arrow()),
        ]
        for times, act in acts if number % 2 else reversed(acts):
            times += timed(act, 1, tree_cpu)
    shown("plain query", plain[2:])
    shown("missed query", missed[2:])
    for kind, name in enumerate(("wall", "CPU")):
        ratios = [one[kind] / other[kind] for one, other in zip(missed[2:], plain[2:], strict=True)]
        print(f"missed / plain, {name}: median {statistics.median(ratios):.3f}")


def timed(act: Callable[[], object], times: int, cpu: Callable[[], float]) -> Times:
    """Wall and CPU seconds of each run."""
    found = []
    for _ in range(times):
        used, begun = cpu(), time.perf_counter()
        act()
        found.append((time.perf_counter() - begun, cpu() - used))
    return found


def os_cpu() -> float:
    return sum(os.times()[:2])


def tree_cpu() -> float:
    """CPU seconds of this process and its children, of which the JVM is one."""
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(process.cpu_times().user + process.cpu_times().system for process in tree)


def shown(name: str, found: Times) -> None:
    walls = sorted(wall * 1000 for wall, _ in found)
    cpus = [cpu * 1000 for _, cpu in found]
    p95 = walls[min(len(walls) - 1, round(len(walls) * 0.95))]
    wall = f"wall median {statistics.median(walls):.1f} ms, p95 {p95:.1f} ms"
    print(f"{name}: {wall}; CPU mean {statistics.mean(cpus):.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    main(**vars(parser.parse_args()))
