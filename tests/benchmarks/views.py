"""A stream on a view against what one would do instead: run the query at both ends and compare.

    python -m tests.benchmarks.views --rows 4000000 --changed 1000 --rounds 9 --warm-ups 4 [--shapes join,left,group]

`--rows` orders are joined with a tenth as many customers, and `--changed` orders are updated. CPU seconds are those of
the whole process tree, Python and JVM. Rounds are interleaved, after some that warm up; both ways must give one answer.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, medians, spent
from tidemark.changes.driver.views.catalog import resolve_view
from tidemark.changes.driver.views.plan import plan_view_changes
from tidemark.changes.driver.views.read import read_view_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, BaseWindow, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.testing import local_spark

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILES = 16
SHAPES = {
    "join": "SELECT o.id, o.x, o.name, c.city FROM orders o JOIN customers c ON o.customer = c.id WHERE o.x >= 0",
    "left": "SELECT o.id, o.x, o.name, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "group": ("SELECT o.customer AS id, sum(o.n) AS x, count(*) AS name, max(o.name) AS city FROM orders o GROUP BY 1"),
}
ORDERS = (
    "SELECT id, CAST(id % {customers} AS BIGINT) AS customer, CAST(id % 97 AS BIGINT) AS n, id * 0.5D AS x, "
    "md5(CAST(id AS STRING)) AS name FROM range(0, {rows}, 1, {files})"
)
CUSTOMERS = "SELECT id, md5(CAST(id AS STRING)) AS city FROM range(0, {customers}, 1, {files})"
PROPERTIES = "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"


@dataclass
class Bench:
    """The tables, a view on them, and both ways to its changes."""

    spark: SparkSession
    home: Path
    workspace: Workspace
    windows: dict[str, BaseWindow]

    def tidemark(self, query: ViewQuery) -> DataFrame:
        found = read_view_changes(self.spark, query, self.of(query), StreamMode.STANDARD, NOW, self.workspace)
        return found.rows.withColumnRenamed(ACTION, "action")

    def again(self, text: str) -> DataFrame:
        """The query at both ends; rows that are in both cancel. It gives no ids and no pairs."""
        ends = []
        for sign in (-1, 1):
            frames = {
                name: self.spark.read.format("delta")
                .option("versionAsOf", window.start if sign < 0 else window.end)
                .load(window.table.path)
                for name, window in self.windows.items()
            }
            named = reduce(lambda so_far, name: so_far.replace(f" {name} ", f" {{{name}}} "), frames, f"{text} ")
            ends.append(self.spark.sql(named, **frames).withColumn("sign", F.lit(sign)))
        both = ends[0].unionAll(ends[1]).groupBy("id", "x", "name", "city").agg(F.sum("sign").alias("sign"))
        action = F.when(F.col("sign") < 0, "DELETE").otherwise("INSERT")
        return both.where("sign != 0").withColumn("action", action)

    def of(self, query: ViewQuery) -> list[BaseWindow]:
        return [self.windows[base.rpartition(".")[2]] for base in query.bases]


def answer(rows: DataFrame) -> tuple[tuple[object, ...], ...]:
    found = rows.groupBy("action").agg(F.count("*"), F.bit_xor(F.xxhash64("id", "x", "name", "city")))
    return tuple(sorted(tuple(row) for row in found.collect()))


def built(spark: SparkSession, home: Path, rows: int, changed: int) -> dict[str, BaseWindow]:
    """Both tables under `home`, and the window in which some orders changed."""
    numbers = {"rows": rows, "customers": max(rows // 10, 1), "files": FILES}
    windows = {}
    for name, text in (("orders", ORDERS), ("customers", CUSTOMERS)):
        path = home / f"{name}-{rows}"
        select = text.format(**numbers)
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}' TBLPROPERTIES ({PROPERTIES}) AS {select}")
        log = DeltaLog.open(str(path))
        start = log.head()
        if name == "orders":
            spark.sql(f"UPDATE {name} SET x = x + 1, n = n + 1 WHERE id < {changed}")
        windows[name] = BaseWindow(TableRef(name, log.uri, log.state().table_id), start, log.head())
    return windows


def compared(bench: Bench, shape: str, rounds: int, warm_ups: int) -> dict[str, list[Run]]:
    name = f"bench_{shape}"
    bench.spark.sql(f"CREATE OR REPLACE VIEW {name} AS {SHAPES[shape]}")
    query = resolve_view(bench.spark, name, beyond_snowflake=True)
    print(plan_view_changes(query, bench.of(query), StreamMode.STANDARD).in_words(), flush=True)
    ways = {
        "tidemark": lambda: answer(bench.tidemark(query)),
        "query at both ends": lambda: answer(bench.again(SHAPES[shape])),
    }
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for number in range(warm_ups + rounds):
        for way, question in ways.items():
            run = spent(question)
            if number >= warm_ups:
                runs[way].append(run)
    answers = {run.answer for each in runs.values() for run in each}
    assert len(answers) == 1, answers
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--changed", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm-ups", type=int, default=4)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with nullcontext(given.home) if given.home else tempfile.TemporaryDirectory() as place:
        home = Path(place)
        spark = local_spark(warehouse=home, memory="8g", more=AS_IN_PRODUCTION)
        windows = built(spark, home, given.rows, given.changed)
        print(
            f"| {given.rows:,} rows, {given.changed:,} changed | CPU s, median | wall s, median |\n| --- | --- | --- |"
        )
        with Workspace(f"file://{home}/_tidemark", "benchmark") as workspace:
            bench = Bench(spark, home, workspace, windows)
            for shape in given.shapes.split(","):
                for way, runs in compared(bench, shape, given.rounds, given.warm_ups).items():
                    cpu, wall = medians(runs)
                    print(f"| {shape}: {way} | {cpu:.2f} | {wall:.2f} |", flush=True)


if __name__ == "__main__":
    main()
