"""The change set of a window, by Tidemark and by what one would use instead: CPU seconds, wall seconds, same answer.

    python -m tests.benchmarks.change_sets --rows 1000000 --rounds 5 [--shapes S1,S4] [--native] [--home DIR]

CPU seconds are those of the whole process tree, Python and JVM. Rounds are interleaved: every way once, then again.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.answers import Answer, answer, pairs
from tests.benchmarks.shapes import COLUMNS, SHAPES, Window, build
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, StreamMode
from tidemark.testing import local_spark

AS_IN_PRODUCTION = {
    "spark.driver.extraJavaOptions": "",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.adaptive.enabled": "true",
}
NATIVE = {"spark.databricks.delta.v2.enableMode": "AUTO", "spark.databricks.delta.changelogV2.enabled": "true"}


@dataclass(frozen=True)
class Run:
    """One evaluation of one way."""

    cpu: float
    wall: float
    answer: Answer


class Ways:
    """Each method answers the same window; all but the floor give action, is_update and the columns."""

    def __init__(self, spark: SparkSession, window: Window, workspace: Workspace) -> None:
        self.spark, self.window, self.workspace = spark, window, workspace

    def tidemark(self) -> DataFrame:
        return self._tidemark(self.window.path)

    def tidemark_with_feed(self) -> DataFrame:
        """On the twin, whose commits have change files."""
        return self._tidemark(self.window.twin)

    def _tidemark(self, path: Path) -> DataFrame:
        log = DeltaLog.open(str(path))
        plan = plan_changes(log, self.window.start, self.window.end, StreamMode.STANDARD)
        rows = read_changes(self.spark, log, plan, self.workspace)
        return rows.select(F.col(ACTION).alias("action"), F.col(IS_UPDATE).alias("is_update"), *COLUMNS)

    def feed(self) -> DataFrame:
        """Delta's change data feed of the twin, collapsed by key: first image of what was, last of what is."""
        first_version = {"readChangeFeed": "true", "startingVersion": self.window.start + 1}
        options = {**first_version, "endingVersion": self.window.end}
        changes = self.spark.read.format("delta").options(**options).load(str(self.window.twin))
        new = F.col("_change_type").isin("insert", "update_postimage")
        order, image = F.struct("_commit_version", new), F.struct(*COLUMNS)
        ends = changes.groupBy("id").agg(
            F.min_by(F.struct(new.alias("new"), image.alias("image")), order).alias("first"),
            F.max_by(F.struct(new.alias("new"), image.alias("image")), order).alias("last"),
        )
        old = F.when(~F.col("first.new"), F.col("first.image"))
        return pairs(ends.select(old.alias("old"), F.when(F.col("last.new"), F.col("last.image")).alias("new")))

    def difference(self) -> DataFrame:
        """Both snapshots whole, joined by row id."""
        old, new = (self._snapshot(v, name) for v, name in ((self.window.start, "old"), (self.window.end, "new")))
        return pairs(old.join(new, "row_id", "full_outer"))

    def native(self) -> DataFrame:
        """Spark's own CHANGES with netChanges; behind a flag of Delta, and it needs a table in the catalog."""
        name = f"bench_{self.window.shape.name.lower()}_{self.window.rows}"
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{self.window.path}'")
        reader = self.spark.read.option("startingVersion", self.window.start + 1)
        reader = reader.option("endingVersion", self.window.end).option("computeUpdates", "true")
        changes = reader.option("deduplicationMode", "netChanges").changes(f"spark_catalog.default.{name}")
        kind = F.col("_change_type")
        action = F.when(kind.isin("insert", "update_postimage"), "INSERT").otherwise("DELETE")
        return changes.select(action.alias("action"), kind.startswith("update").alias("is_update"), *COLUMNS)

    def floor(self) -> DataFrame:
        """A bare scan of the files that the plan names; it does not answer the question."""
        log = DeltaLog.open(str(self.window.path))
        plan = plan_changes(log, self.window.start, self.window.end, StreamMode.STANDARD)
        files = sorted({unquote(file.path) for file in plan.files})
        rows = self.spark.read.parquet(*files)
        return rows.select(F.lit("scan").alias("action"), F.lit(False).alias("is_update"), *COLUMNS)

    def _snapshot(self, version: int, name: str) -> DataFrame:
        table = self.spark.read.format("delta").option("versionAsOf", version).load(str(self.window.path))
        return table.select(F.col("_metadata.row_id").alias("row_id"), F.struct(*COLUMNS).alias(name))


def measured(way: Callable[[], DataFrame]) -> Run:
    return spent(lambda: answer(way()))


def spent(question: Callable[[], Answer]) -> Run:
    """What an answer cost the whole process tree."""
    cpu, wall = _cpu_seconds(), time.perf_counter()
    result = question()
    return Run(_cpu_seconds() - cpu, time.perf_counter() - wall, result)


def medians(runs: Sequence[Run]) -> tuple[float, float]:
    """CPU and wall seconds."""
    return statistics.median(run.cpu for run in runs), statistics.median(run.wall for run in runs)


def _cpu_seconds() -> float:
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def compare(ways: Ways, rounds: int, *, native: bool) -> dict[str, list[Run]]:
    """`rounds` interleaved rounds after one that warms up; native CHANGES runs once."""
    methods = {
        "tidemark": ways.tidemark,
        "tidemark, feed on": ways.tidemark_with_feed,
        "feed": ways.feed,
        "difference": ways.difference,
        "floor": ways.floor,
    }
    runs: dict[str, list[Run]] = {name: [] for name in methods}
    for number in range(rounds + 1):
        for name, way in methods.items():
            run = measured(way)
            if number:
                runs[name].append(run)
    if native:
        runs["native"] = [with_native_changes(ways)]
    return runs


def with_native_changes(ways: Ways) -> Run:
    """Once, with the settings that no other way may have."""
    for name, value in NATIVE.items():
        ways.spark.conf.set(name, value)
    try:
        return measured(ways.native)
    finally:
        for name in NATIVE:
            ways.spark.conf.unset(name)


def table_rows(window: Window, runs: dict[str, list[Run]]) -> Iterator[str]:
    """One markdown row for each way; ratios are CPU seconds over Tidemark's."""
    ours, _ = medians(runs["tidemark"])
    truth = runs["difference"][0].answer
    for name, of_way in runs.items():
        cpu, wall = medians(of_way)
        same = "–" if name == "floor" else "yes" if all(run.answer == truth for run in of_way) else "NO"
        changed = "–" if name == "floor" else sum(int(str(line[2])) for line in of_way[0].answer)
        yield (
            f"| {window.shape.name} {window.shape.title} | {window.rows:,} | {name} | {cpu:.2f} | {wall:.2f} | "
            f"{cpu / ours:.2f} | {changed} | {same} |"
        )


@contextmanager
def home_for(given: str | None) -> Iterator[Path]:
    """The directory that was given, or one for the time being."""
    if given:
        yield Path(given)
    else:
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as made:
            yield Path(made)


def main() -> None:
    """Build each shape, compare the ways, print the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default=",".join(shape.name for shape in SHAPES))
    parser.add_argument("--native", action="store_true", help="run Spark's CHANGES once, too (slow)")
    parser.add_argument("--home", help="where the tables go (default: a temporary directory)")
    given = parser.parse_args()
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home:
        spark = local_spark(warehouse=home, memory="4g", app_name="change sets", more=AS_IN_PRODUCTION)
        print("| shape | rows | way | CPU s | wall s | CPU / ours | changes | same answer |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for shape in SHAPES:
            if shape.name in given.shapes.split(","):
                window = build(spark, shape, given.rows, home)
                with Workspace(f"file://{home}/_tidemark", "benchmark") as workspace:
                    runs = compare(Ways(spark, window, workspace), given.rounds, native=given.native)
                print("\n".join(table_rows(window, runs)), flush=True)


if __name__ == "__main__":
    main()
