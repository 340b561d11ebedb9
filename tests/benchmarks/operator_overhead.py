"""What ConsumeStreamOperator costs over a bare SparkSubmitOperator that writes the same rows.

    python -m tests.benchmarks.operator_overhead [--rounds 5] [--rows 100000]

Each round inserts `rows` into the source, then runs both DAGs (one task each) by `dag.test()`, in turn first; wall
seconds of the task and CPU seconds of the process tree. Spark settings, rows and written columns are the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

HOME = Path(tempfile.mkdtemp(prefix="tidemark-overhead-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    TIDEMARK_SPARK_MASTER="local[2]",
    TIDEMARK_SPARK_MODE="submit",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
    PATH=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    PYSPARK_PYTHON=sys.executable,
    AIRFLOW_CONN_BARE='{"conn_type": "spark", "host": "local[2]"}',
)
(HOME / "dags").mkdir()
START = datetime(2026, 1, 1, tzinfo=UTC)
BARE = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
source, target, low = sys.argv[1:]
spark.sql(f"INSERT INTO delta.`{target}` SELECT * FROM delta.`{source}` WHERE id >= {low}")
"""


def dags(low: int) -> dict[str, Any]:
    """The two contenders; `low` is where this round's rows begin."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk import DAG

    from tidemark.hooks._drivers import JOB_SETTINGS
    from tidemark.model.spark import DELTA_PACKAGE, DELTA_SETTINGS
    from tidemark.operators.consume import ConsumeStreamOperator

    script = HOME / "bare.py"
    script.write_text(BARE)
    with DAG("bare", schedule=None) as bare:
        SparkSubmitOperator(
            task_id="write",
            application=str(script),
            conn_id="bare",
            packages=DELTA_PACKAGE,
            conf={**JOB_SETTINGS, **DELTA_SETTINGS},
            application_args=[str(HOME / "lake/b/source"), str(HOME / "lake/b/bare"), str(low)],
        )
    with DAG("tidemark", schedule=None) as ours:
        ConsumeStreamOperator(task_id="write", stream="s", target="b.ours", write_as="append")
    return {"bare": bare, "tidemark": ours}


def run(dag: Any, at: datetime) -> None:
    """One run by the real task runner; a failed one ends the benchmark."""
    from tests.dag_runs import run_registered

    finished = run_registered(dag, logical_date=at)
    if str(finished.state) != "success":
        sys.exit(f"{dag.dag_id} ended as {finished.state}")


def measured(work: Callable[[], None]) -> tuple[float, float]:
    """(wall, CPU) seconds of `work` and the processes that it started and waited for."""
    before, started = os.times(), time.monotonic()
    work()
    after = os.times()
    return time.monotonic() - started, sum(after[:4]) - sum(before[:4])


def main() -> None:
    """Print medians and differences as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.streams import StreamMode
    from tidemark.streams.worker.streams import create_stream
    from tidemark.testing import local_spark

    spark = local_spark(warehouse=HOME / "warehouse", cores=1, memory="1g")
    source, *targets = (f"delta.`{HOME}/lake/b/{name}`" for name in ("source", "bare", "ours"))
    spark.sql(
        f"CREATE TABLE {source} (id BIGINT, x DOUBLE) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    for target in targets:
        spark.sql(f"CREATE TABLE {target} (id BIGINT, x DOUBLE) USING delta")
    hook = TidemarkHook()
    create_stream(
        hook.open_store(),
        name="s",
        source=hook.table("b.source"),
        mode=StreamMode.STANDARD,
        at_version=0,
        who="benchmark",
    )
    figures: dict[str, list[tuple[float, float]]] = {"bare": [], "tidemark": []}
    for number in range(options.rounds):
        low = number * options.rows
        spark.range(low, low + options.rows).selectExpr("id", "rand() AS x").write.format("delta").mode("append").save(
            f"{HOME}/lake/b/source"
        )
        contenders = list(dags(low).items())
        for name, dag in contenders if number % 2 else reversed(contenders):
            figures[name].append(measured(partial(run, dag, START + timedelta(hours=number))))
    counts = [spark.sql(f"SELECT count(*), sum(id) FROM {target}").collect()[0] for target in targets]
    if counts[0] != counts[1]:
        sys.exit(f"the contenders wrote different rows: {counts}")
    report(figures)


def report(figures: dict[str, list[tuple[float, float]]]) -> None:
    """Medians over the rounds."""
    median = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in figures.items()}
    print("| | wall s | CPU s |\n| --- | --- | --- |")
    for name, (wall, cpu) in median.items():
        print(f"| {name} | {wall:.1f} | {cpu:.1f} |")
    wall, cpu = (ours - bare for ours, bare in zip(median["tidemark"], median["bare"], strict=True))
    print(f"| difference | {wall:+.1f} | {cpu:+.1f} |")


if __name__ == "__main__":
    main()
