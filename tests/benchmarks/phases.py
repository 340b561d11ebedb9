"""CPU seconds of a change set by the threads of Python and Spark, after many rounds.

    python -m tests.benchmarks.phases --rows 1000000 --shapes S1,S2,S3,S6 --warm-ups 10 --rounds 5

*tasks* read and compute rows. *driver* analyses, plans and schedules, broadcasts, and opens Delta's logs. *compiler* is
Java's, for code that Spark generates and for Spark itself; it falls with each round. *collector* is Java's. Linux only.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import DataFrame

from tests.benchmarks.answers import answer
from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Ways, home_for
from tests.benchmarks.shapes import SHAPES, build
from tidemark.jobs.workspace import Workspace
from tidemark.testing import local_spark

KINDS = {
    "Executor task": "tasks",
    **dict.fromkeys(("C1 Compiler", "C2 Compiler", "Sweeper"), "compiler"),
    **dict.fromkeys(("GC Thread", "G1 "), "collector"),
}
COLUMNS = ("tasks", "driver", "compiler", "collector")
WAYS = ("tidemark", "difference", "floor")


def seconds_by_kind() -> Counter[str]:
    """CPU seconds of all threads of the process tree until now."""
    ticks, found = os.sysconf("SC_CLK_TCK"), Counter[str]()
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        for task in Path(f"/proc/{process.pid}/task").glob("*/stat"):
            try:
                name, _, rest = task.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue  # a thread that has ended
            user, system = rest.split()[11:13]
            kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), "driver")
            found[kind] += (int(user) + int(system)) / ticks
    return found


def spent_by_kind(way: Callable[[], DataFrame]) -> Counter[str]:
    before = seconds_by_kind()
    answer(way())
    return Counter({kind: seconds - before[kind] for kind, seconds in seconds_by_kind().items()})


def main() -> None:
    """Builds each shape, and prints a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shapes", default="S1,S2,S3,S6")
    parser.add_argument("--warm-ups", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with home_for(None) as home:
        spark = local_spark(warehouse=home, memory="4g", app_name="phases", more=AS_IN_PRODUCTION)
        print(
            f"| shape | way | {' | '.join(COLUMNS)} | all |\n| --- | --- |{' --- |' * (len(COLUMNS) + 1)}", flush=True
        )
        for shape in SHAPES:
            if shape.name not in given.shapes.split(","):
                continue
            window = build(spark, shape, given.rows, home)
            with Workspace(f"file://{home}/_tidemark", "benchmark") as workspace:
                ways, runs = Ways(spark, window, workspace), {name: list[Counter[str]]() for name in WAYS}
                for number in range(given.warm_ups + given.rounds):
                    for name in WAYS:
                        run = spent_by_kind(getattr(ways, name))
                        if number >= given.warm_ups:
                            runs[name].append(run)
            for name, of_way in runs.items():
                medians = [statistics.median(run[kind] for run in of_way) for kind in COLUMNS]
                whole = statistics.median(sum(run.values()) for run in of_way)
                print(
                    f"| {shape.name} | {name} | {' | '.join(f'{one:.2f}' for one in (*medians, whole))} |", flush=True
                )


if __name__ == "__main__":
    main()
