"""What a small consumption takes behind a Spark Connect server that is up (warm) and by spark-submit (cold).

    python -m tests.benchmarks.connect [--rounds 5] [--rows 1000]

Each round inserts `rows` into the source, then runs both DAGs (one ConsumeStreamOperator each, same rows, same Spark
settings, a target each) by `dag.test()`, in turn first; wall seconds of the task, and CPU seconds of the task's process
tree and of the server. One round before the first is not counted: it warms the server up.
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

HOME = Path(tempfile.mkdtemp(prefix="tidemark-connect-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
    PATH=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    AIRFLOW_CONN_COLD_SPARK='{"conn_type": "spark", "host": "local[2]"}',
    AIRFLOW_CONN_COLD='{"conn_type": "tidemark", "extra": {"spark_conn_id": "cold_spark", "spark_mode": "submit"}}',
    AIRFLOW_CONN_WARM='{"conn_type": "tidemark", "extra": {"spark_conn_id": "warm_spark"}}',
)
(HOME / "dags").mkdir()
START = datetime(2026, 1, 1, tzinfo=UTC)
WAYS = ("cold", "warm")


def dags() -> dict[str, Any]:
    """The two contenders."""
    from airflow.sdk import DAG

    from tidemark.operators.consume import ConsumeStreamOperator

    made = {}
    for way in WAYS:
        with DAG(way, schedule=None) as made[way]:
            ConsumeStreamOperator(
                task_id="write", conn_id=way, stream=way, target=f"b.{way}", write_as="merge", keys=["id"]
            )
    return made


def run(dag: Any, at: datetime) -> None:
    """One run by the real task runner; a failed one ends the benchmark."""
    from tests.dag_runs import run_registered

    finished = run_registered(dag, logical_date=at)
    if str(finished.state) != "success":
        sys.exit(f"{dag.dag_id} ended as {finished.state}")


def measured(work: Callable[[], None], server: int) -> tuple[float, float, float]:
    """(wall, CPU, the server's CPU) seconds of `work` and the processes that it started and waited for."""
    before, behind, started = os.times(), cpu_of(server), time.monotonic()
    work()
    after = os.times()
    return time.monotonic() - started, sum(after[:4]) - sum(before[:4]), cpu_of(server) - behind


def cpu_of(process_id: int) -> float:
    """CPU seconds of a process so far."""
    import psutil

    times = psutil.Process(process_id).cpu_times()
    return float(times.user + times.system)


def prepare() -> Any:
    """The source, two equal targets and a stream for each; returns a Spark session that writes to the source."""
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.streams import StreamMode
    from tidemark.streams.worker.streams import create_stream
    from tidemark.testing import local_spark

    spark = local_spark(warehouse=HOME / "warehouse", cores=1, memory="1g")
    tracked = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    spark.sql(f"CREATE TABLE delta.`{HOME}/lake/b/source` (id BIGINT, x DOUBLE) USING delta {tracked}")
    hook = TidemarkHook()
    for way in WAYS:
        spark.sql(f"CREATE TABLE delta.`{HOME}/lake/b/{way}` (id BIGINT, x DOUBLE) USING delta")
        create_stream(
            hook.open_store(),
            name=way,
            source=hook.table("b.source"),
            mode=StreamMode.STANDARD,
            at_version=0,
            who="benchmark",
        )
    return spark


def main() -> None:
    """Print medians and differences as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000)
    options = parser.parse_args()
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)

    from tests.airflow.connect_server import connect_server
    from tidemark.hooks._drivers import JOB_SETTINGS, LOCAL_SETTINGS

    spark = prepare()
    figures: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    with connect_server(HOME, more={**JOB_SETTINGS, **LOCAL_SETTINGS}) as server:
        os.environ["AIRFLOW_CONN_WARM_SPARK"] = server.connection()
        for number in range(-1, options.rounds):
            low = (number + 1) * options.rows
            rows = spark.range(low, low + options.rows).selectExpr("id", "rand() AS x")
            rows.write.format("delta").mode("append").save(f"{HOME}/lake/b/source")
            contenders = list(dags().items())
            for way, dag in contenders if number % 2 else reversed(contenders):
                taken = measured(partial(run, dag, START + timedelta(hours=number)), server.process_id)
                if number >= 0:
                    figures[way].append(taken)
    sums = "count(*), sum(id), round(sum(x), 3)"
    counts = [spark.sql(f"SELECT {sums} FROM delta.`{HOME}/lake/b/{way}`").first() for way in WAYS]
    if counts[0] != counts[1]:
        sys.exit(f"the contenders wrote different rows: {counts}")
    report(figures)


def report(figures: dict[str, list[tuple[float, float, float]]]) -> None:
    """Medians over the rounds."""
    print("| | wall s | CPU s | of which in the server |\n| --- | --- | --- | --- |")
    for way, rows in figures.items():
        wall = statistics.median(row[0] for row in rows)
        behind = statistics.median(row[2] for row in rows)
        cpu = statistics.median(row[1] + row[2] for row in rows)
        print(f"| {way} | {wall:.1f} | {cpu:.1f} | {behind:.1f} |")


if __name__ == "__main__":
    main()
