"""What a wave of change_stream_partitions costs: plan and commit alone, and reading with one task or with several.

    python -m tests.benchmarks.partition_waves [--rounds 3] [--partitions 4]

Runs of `dag.test()`, which runs one task after the other: wall and CPU seconds of the process tree and of the warm
Spark, medians after one round that is not counted. Waves with nothing to read: `waves` of 1 and 5, the difference over
four. Waves that read: partitions of 100 rows each, in one task and in a task each, appended by jobs in the warm Spark.
TIDEMARK_SPARK_MODE=submit starts a Spark for each job instead.
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
from functools import partial
from pathlib import Path
from typing import Any

HOME = Path(tempfile.mkdtemp(prefix="tidemark-waves-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    TIDEMARK_SPARK_MASTER="local[2]",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
    PATH=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    PYSPARK_PYTHON=sys.executable,
)
(HOME / "dags").mkdir()
STREAM = "waves"


def dag_of(name: str, waves: int, chunks_per_task: int) -> Any:
    """A DAG whose consumer group bears its name."""
    from airflow.sdk import DAG

    from tidemark.task_groups.change_stream_partitions import change_stream_partitions

    with DAG(name, schedule=None) as dag:
        change_stream_partitions(
            "deliver",
            change_stream=STREAM,
            consumer_group=name,
            write_as="append",
            target="b.records",
            waves=waves,
            plan={"chunks_per_task": chunks_per_task},
        )
    return dag


def run(make: Callable[[], Any]) -> None:
    """One run by the real task runner; a failed one ends the benchmark."""
    from tests.dag_runs import run_registered

    dag = make()
    finished = run_registered(dag)
    if str(finished.state) != "success":
        sys.exit(f"{dag.dag_id} ended as {finished.state}")


def measured(work: Callable[[], None]) -> tuple[float, float]:
    """(wall, CPU) seconds of `work`, of the processes that it started and waited for, and of the warm Spark."""
    from tests.benchmarks.warm_server import server_cpu

    before, behind, started = os.times(), server_cpu(HOME), time.monotonic()
    work()
    wall, after = time.monotonic() - started, os.times()
    return wall, sum(after[:4]) - sum(before[:4]) + server_cpu(HOME) - behind


def prepare(partitions: int) -> Any:
    """A table, a change stream with so many partitions that has captured it, and the control store."""
    from tests.airflow.fan_out import Shop
    from tidemark.testing import local_spark

    spark = local_spark(warehouse=HOME / "warehouse", cores=1, memory="1g")
    shop = Shop.at(spark, HOME, os.environ.__setitem__, "b.source", STREAM).open(partitions=partitions)
    shop.lake.create("b.records", "commit_timestamp TIMESTAMP, mod_type STRING")
    shop.change(f"INSERT INTO {{t}} SELECT id, 0, 'new' FROM range({partitions * 100})")
    shop.capture(split_rows=10**9)
    return shop.store


def main() -> None:
    """Print the medians as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    given = parser.parse_args()
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    from tidemark.change_streams.worker.groups import create_group

    store = prepare(given.partitions)
    shapes = {"one task": (1, 16), "a task each": (1, 1), "1 wave": (1, 16), "5 waves": (5, 16)}
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in shapes}
    for number in range(given.rounds + 1):
        for name, (waves, each) in shapes.items():
            group = f"{name.replace(' ', '_')}_{number}"
            empty = name.endswith(("wave", "waves"))
            create_group(store, STREAM, group, "now" if empty else "earliest")
            figure = measured(partial(run, partial(dag_of, group, waves, each)))
            print(number, name, figure, file=sys.stderr, flush=True)
            if number:
                figures[name].append(figure)
    report(
        {name: tuple(statistics.median(column) for column in zip(*rows, strict=True)) for name, rows in figures.items()}
    )
    subprocess.run([sys.executable, "-m", "airflow", "tidemark", "spark", "stop", "--now"], check=True)


def report(medians: dict[str, tuple[float, ...]]) -> None:
    """An empty wave is a quarter of what five cost more than one."""
    print("| | wall s | CPU s |\n| --- | --- | --- |")
    for name, (wall, cpu) in medians.items():
        print(f"| {name} | {wall:.1f} | {cpu:.1f} |")
    wall, cpu = ((five - one) / 4 for five, one in zip(medians["5 waves"], medians["1 wave"], strict=True))
    print(f"| an empty wave | {wall:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
