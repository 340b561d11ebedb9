"""A small consumption as a whole task: in the warm Spark of the host, with one target and two, and by spark-submit.

    python -m tests.benchmarks.warm [--rounds 5] [--rows 1000] [--table 1000000] [--ways warm,two,submit]

Each round updates `rows` of the `table` rows of a source. It and all targets have deletion vectors. Then one
ConsumeStreamOperator of each way takes them by `dag.test()`, in turn first. It prints medians of the wall seconds of
the task, of the seconds of the job, and of CPU seconds of the task and of the server. Two rounds before the
first are not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HOME = Path(tempfile.mkdtemp(prefix="tidemark-warm-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
    TIDEMARK_SPARK_MASTER="local[2]",
    PATH=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    AIRFLOW_CONN_WARM='{"conn_type": "tidemark", "extra": {"spark_mode": "warm"}}',
    AIRFLOW_CONN_SUBMIT='{"conn_type": "tidemark", "extra": {"spark_mode": "submit"}}',
)
(HOME / "dags").mkdir()
START = datetime(2026, 1, 1, tzinfo=UTC)
TARGETS = {"warm": ["b.warm"], "two": ["b.two_a", "b.two_b"], "submit": ["b.submit"]}


@dataclass(frozen=True)
class Taken:
    """Seconds of one run."""

    wall: float
    task_cpu: float
    server_cpu: float
    job: float


def dags(ways: list[str]) -> dict[str, Any]:
    """The contenders."""
    from airflow.sdk import DAG

    from tidemark.operators.consume import ConsumeStreamOperator

    made = {}
    for way in ways:
        merges: list[dict[str, Any]] = [{"target": name, "write_as": "merge", "keys": ["id"]} for name in TARGETS[way]]
        writes = merges[0] if len(merges) == 1 else {"targets": merges}
        with DAG(way, schedule=None) as made[way]:
            conn_id = "submit" if way == "submit" else "warm"
            ConsumeStreamOperator(task_id="write", conn_id=conn_id, stream=way, **writes)
    return made


def measured(dag: Any, at: datetime) -> Taken:
    """One run by the real task runner; a failed one ends the benchmark."""
    from tests.benchmarks.warm_server import server_cpu
    from tests.dag_runs import run_registered
    from tidemark.hooks.spark_job import SparkJob

    jobs: list[float] = []
    plain = SparkJob.run

    def timed(self: SparkJob, spec: Any) -> Any:
        began = time.monotonic()
        try:
            return plain(self, spec)
        finally:
            jobs.append(time.monotonic() - began)

    SparkJob.run = timed  # type: ignore[method-assign]
    before, behind, started = os.times(), server_cpu(HOME), time.monotonic()
    try:
        finished = run_registered(dag, logical_date=at)
    finally:
        SparkJob.run = plain  # type: ignore[method-assign]
    wall, after = time.monotonic() - started, os.times()
    if str(finished.state) != "success":
        sys.exit(f"{dag.dag_id} ended as {finished.state}")
    return Taken(wall, sum(after[:4]) - sum(before[:4]), server_cpu(HOME) - behind, sum(jobs))


def prepare(rows: int, ways: list[str]) -> Any:
    """The source, the targets with its rows, and a stream for each way; returns a Spark session."""
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.streams import StreamMode
    from tidemark.streams.worker.streams import create_stream
    from tidemark.testing import local_spark

    spark = local_spark(warehouse=HOME / "warehouse", cores=1, memory="2g")
    vectors = "'delta.enableDeletionVectors' = 'true'"
    tracked = f"'delta.enableRowTracking' = 'true', {vectors}"
    columns = "id BIGINT, x DOUBLE, name STRING"
    spark.sql(f"CREATE TABLE delta.`{HOME}/lake/b/source` ({columns}) USING delta TBLPROPERTIES ({tracked})")
    frame = spark.range(0, rows, 1, 4).selectExpr("id", "rand() AS x", "concat('name ', id) AS name")
    frame.write.format("delta").mode("append").save(f"{HOME}/lake/b/source")
    hook = TidemarkHook()
    version = hook.open_table(hook.table("b.source")).head()
    for way in ways:
        for target in TARGETS[way]:
            place = f"{HOME}/lake/{target.replace('.', '/')}"
            spark.sql(f"CREATE TABLE delta.`{place}` ({columns}) USING delta TBLPROPERTIES ({vectors})")
            spark.read.format("delta").load(f"{HOME}/lake/b/source").write.format("delta").mode("append").save(place)
        create_stream(
            hook.open_store(),
            name=way,
            source=hook.table("b.source"),
            mode=StreamMode.STANDARD,
            at_version=version,
            who="benchmark",
        )
    return spark


def main() -> None:
    """Print medians as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--table", type=int, default=1_000_000)
    parser.add_argument("--ways", default="warm,two,submit")
    options = parser.parse_args()
    ways = options.ways.split(",")
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    spark = prepare(options.table, ways)
    figures: defaultdict[str, list[Taken]] = defaultdict(list)
    step = options.table // options.rows
    for number in range(-2, options.rounds):
        spark.sql(f"UPDATE delta.`{HOME}/lake/b/source` SET x = x + {number + 3} WHERE id % {step} = {number + 2}")
        contenders = list(dags(ways).items())
        for way, dag in contenders if number % 2 else reversed(contenders):
            taken = measured(dag, START + timedelta(hours=number))
            print(number, way, taken, file=sys.stderr, flush=True)
            if number >= 0:
                figures[way].append(taken)
    same(spark, ways)
    report(figures)
    subprocess.run([sys.executable, "-m", "airflow", "tidemark", "spark", "stop", "--now"], check=True)


def same(spark: Any, ways: list[str]) -> None:
    """Ends the benchmark if a target differs from the source."""
    sums = "count(*), sum(id), round(sum(x), 3)"
    names = ["b.source", *(target for way in ways for target in TARGETS[way])]
    found = {spark.sql(f"SELECT {sums} FROM delta.`{HOME}/lake/{name.replace('.', '/')}`").first() for name in names}
    if len(found) != 1:
        sys.exit(f"the contenders wrote different rows: {found}")


def report(figures: dict[str, list[Taken]]) -> None:
    """Medians over the rounds."""
    print("| way | wall s | job s | CPU s | of which in the server |\n| --- | --- | --- | --- | --- |")
    for way, rows in figures.items():
        wall, job = (statistics.median(getattr(row, name) for row in rows) for name in ("wall", "job"))
        cpu = statistics.median(row.task_cpu + row.server_cpu for row in rows)
        server = statistics.median(row.server_cpu for row in rows)
        print(f"| {way} | {wall:.1f} | {job:.1f} | {cpu:.1f} | {server:.1f} |")


if __name__ == "__main__":
    main()
