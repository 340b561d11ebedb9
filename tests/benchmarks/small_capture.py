"""A capture of a handful of changes in a Spark that is up: wall and CPU seconds, and how many Spark jobs it ran.

    python -m tests.benchmarks.small_capture [--rounds 7] [--jobs] [--home DIR]

Two tables of 1,000 rows; each batch is an INSERT of 40 rows, an UPDATE of 30 and a DELETE of 30 in each. The settings
are those of a submitted job. `--jobs` lists what each Spark job of the last round did.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, home_for, spent
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.testing import local_spark

OF_A_JOB = {**AS_IN_PRODUCTION, "spark.sql.shuffle.partitions": "8", "spark.databricks.delta.snapshotPartitions": "4"}
TABLES = ("orders", "items")


@dataclass(frozen=True)
class Round:
    """One capture."""

    wall: float
    cpu: float
    jobs: int
    tasks: int


def change(spark: SparkSession, home: Path, number: int) -> None:
    for table in TABLES:
        name, first = f"delta.`{home / 'lake' / table}`", 1_000 + 40 * number
        spark.sql(f"INSERT INTO {name} SELECT id, 'new', 0 FROM range({first}, {first + 40})")
        spark.sql(f"UPDATE {name} SET x = x + 1 WHERE id >= {first - 40} AND id < {first - 10}")
        spark.sql(f"DELETE FROM {name} WHERE id >= {(number + 5) * 30} AND id < {(number + 6) * 30}")


def captured(lake: Lake) -> tuple[int, int]:
    """Rows that a batch put into the log."""
    result = lake.capture("s", allowed_skew=timedelta(0))
    return (-1 if result is None else result.rows), 0


def jobs_after(spark: SparkSession, last: int) -> list[Any]:
    """What Spark keeps of its jobs with higher numbers, oldest first."""
    kept = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [job for job in (kept.apply(place) for place in range(kept.size())) if job.jobId() > last]
    return sorted(found, key=lambda job: int(job.jobId()))


def said(job: Any) -> str:
    """Milliseconds, tasks, and where it was called."""
    ends = [time.get().getTime() for time in (job.submissionTime(), job.completionTime())]
    return f"{ends[1] - ends[0]:6} ms {job.numTasks():4} tasks  {job.name()}"


def main() -> None:
    """Print the medians, and the jobs if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", action="store_true", help="list the Spark jobs of the last round")
    parser.add_argument("--home", help="where the tables go (default: a temporary directory)")
    given = parser.parse_args()
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home:
        spark = local_spark(warehouse=home, app_name="small_capture", more=OF_A_JOB)
        rounds = measured(spark, home, given.rounds, show=given.jobs)
    medians: Mapping[str, float] = {
        name: statistics.median(getattr(one, name) for one in rounds) for name in ("wall", "cpu", "jobs", "tasks")
    }
    print("| wall s | CPU s | Spark jobs | tasks |\n| --- | --- | --- | --- |")
    print("| {wall:.2f} | {cpu:.2f} | {jobs:.0f} | {tasks:.0f} |".format(**medians))


def measured(spark: SparkSession, home: Path, rounds: int, *, show: bool) -> list[Round]:
    """`rounds` captures after two that warm up."""
    lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home / "lake"))
    for table in TABLES:
        spark.sql(
            f"CREATE TABLE delta.`{home / 'lake' / table}` USING delta "
            "TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT id, 'old' AS name, 0 AS x FROM range(1000)"
        )
    lake.create_change_stream("s", list(TABLES), keys=dict.fromkeys(TABLES, ("id",)), initial_partitions=2)
    done = []
    for number in range(rounds + 2):
        change(spark, home, number)
        last = max((job.jobId() for job in jobs_after(spark, -1)), default=-1)
        run = spent(lambda: (captured(lake),))
        assert run.answer == ((200, 0),), run.answer
        jobs = jobs_after(spark, last)
        if number > 1:
            done.append(Round(run.wall, run.cpu, len(jobs), sum(job.numTasks() for job in jobs)))
    if show:
        print("\n".join(map(said, jobs)))
    return done


if __name__ == "__main__":
    main()
