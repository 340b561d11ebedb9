"""How the cost of a window grows with the table and with the number of commits: CPU seconds, wall seconds, memory.

    python -m tests.benchmarks.growth --rows 1000000,4000000,16000000 --commits 10,50,200 --rounds 3 [--home DIR]

One table for each size gets as many commits as the longest window has, three small appends and one small update by
deletion vector in turn; a window of n commits is its last n. Ways are interleaved: each window once, then again.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, home_for, measured
from tests.benchmarks.shapes import COLUMNS, Shape, build_one, rows_of
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, StreamMode
from tidemark.testing import local_spark

_OF_EACH = 500  # rows that a commit inserts or updates


@dataclass(frozen=True)
class Window:
    """The last `commits` commits of the table at `path`."""

    path: Path
    rows: int
    commits: int
    end: int

    def changes(self, spark: SparkSession, workspace: Workspace) -> DataFrame:
        log = DeltaLog.open(str(self.path))
        plan = plan_changes(log, self.end - self.commits, self.end, StreamMode.STANDARD)
        rows = read_changes(spark, log, plan, workspace)
        return rows.select(F.col(ACTION).alias("action"), F.col(IS_UPDATE).alias("is_update"), *COLUMNS)

    def floor(self, spark: SparkSession) -> DataFrame:
        log = DeltaLog.open(str(self.path))
        plan = plan_changes(log, self.end - self.commits, self.end, StreamMode.STANDARD)
        rows = spark.read.parquet(*sorted({unquote(file.path) for file in plan.files}))
        return rows.select(F.lit("scan").alias("action"), F.lit(False).alias("is_update"), *COLUMNS)


def _commits(count: int) -> Shape:
    def statements(rows: int) -> Iterator[str]:
        for number in range(count):
            if number % 4 == 3:
                first = (number * rows // count) % rows
                yield f"UPDATE {{t}} SET x = x + 1 WHERE id >= {first} AND id < {first + _OF_EACH}"
            else:
                first = rows + number * _OF_EACH
                yield f"INSERT INTO {{t}} {rows_of(first, first + _OF_EACH)}"

    return Shape(f"G{count}", f"{count} small commits", statements)


def compare(spark: SparkSession, windows: list[Window], workspace: Workspace, rounds: int) -> Iterator[str]:
    """One markdown row for each window: medians of `rounds` rounds after one that warms up."""
    ours: dict[int, list[Run]] = {window.commits: [] for window in windows}
    floors: dict[int, list[Run]] = {window.commits: [] for window in windows}
    for number in range(rounds + 1):
        for window in windows:
            runs = (
                measured(lambda one=window: one.changes(spark, workspace)),
                measured(lambda one=window: one.floor(spark)),
            )
            if number:
                ours[window.commits].append(runs[0])
                floors[window.commits].append(runs[1])
    for window in windows:
        found, floor = ours[window.commits], floors[window.commits]
        cpu, bare = (statistics.median(run.cpu for run in runs) for runs in (found, floor))
        wall = statistics.median(run.wall for run in found)
        changed = sum(int(str(line[2])) for line in found[0].answer)
        figures = f"{cpu:.2f} | {wall:.2f} | {bare:.2f} | {cpu / bare:.1f}"
        yield f"| {window.rows:,} | {window.commits} | {changed:,} | {figures} |"


def main() -> None:
    """Build each table, measure its windows, print the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1000000,4000000,16000000")
    parser.add_argument("--commits", default="10,50,200")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", help="where the tables go (default: a temporary directory)")
    given = parser.parse_args()
    commits = sorted(int(text) for text in given.commits.split(","))
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home:
        spark = local_spark(warehouse=home, memory="4g", app_name="growth", more=AS_IN_PRODUCTION)
        print("| rows | commits | changes | CPU s | wall s | floor CPU s | CPU / floor |")
        print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for rows in (int(text) for text in given.rows.split(",")):
            path, _, end = build_one(spark, _commits(commits[-1]), rows, home)
            windows = [Window(path, rows, count, end) for count in commits]
            with Workspace(f"file://{home}/_tidemark", "growth") as workspace:
                print("\n".join(compare(spark, windows, workspace, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
