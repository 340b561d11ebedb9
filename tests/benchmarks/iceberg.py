"""Tidemark on Delta beside Iceberg's `create_changelog_view`, on the same statements: CPU seconds, wall seconds.

    python -m tests.benchmarks.iceberg --rows 1000000 --rounds 3 [--shapes S1,S3,S4] [--home DIR]

Iceberg has no runtime for our Spark, so it runs with its newest one in an environment of its own, which is made under
`--home` once. Its tables are copy-on-write: it refuses to read changes beside delete files. Rounds are interleaved.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

from tests.benchmarks.answers import Answer
from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, Ways, home_for, measured, medians, spent
from tests.benchmarks.shapes import SHAPES, Shape, build
from tidemark.jobs.workspace import Workspace
from tidemark.testing import local_spark

_ROOT = Path(__file__).parents[2]
_PYSPARK = "pyspark==4.1.4"


class Peer:
    """A process with a Spark and Iceberg of its own: one line asks, one line answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._asks, self._answers = _pipe(process.stdin), _pipe(process.stdout)

    def request(self, **question: object) -> Answer:
        """Wait for its answer."""
        self._asks.write(json.dumps(question) + "\n")
        self._asks.flush()
        line = self._answers.readline()
        if not line:
            raise SystemExit("Iceberg's process ended; its standard error says why")
        return tuple(tuple(row) for row in json.loads(line))


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@contextmanager
def peer(home: Path) -> Iterator[Peer]:
    """Iceberg's side, in its own environment."""
    python = home / "iceberg-env" / "bin" / "python"
    if not python.exists():
        print(f"Making an environment with {_PYSPARK}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", _PYSPARK], check=True)
    command = [str(python), "-m", "tests.benchmarks.iceberg_side", str(home / "iceberg")]
    with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Peer(process)
        _pipe(process.stdin).close()


def compare(ways: Ways, other: Peer, rounds: int) -> dict[str, list[Run]]:
    """`rounds` interleaved rounds after one that warms up."""
    runs: dict[str, list[Run]] = {"tidemark": [], "tidemark, feed on": [], "iceberg": []}
    window = ways.window
    other.request(build=window.shape.name, rows=window.rows)
    for number in range(rounds + 1):
        found = {
            "tidemark": measured(ways.tidemark),
            "tidemark, feed on": measured(ways.tidemark_with_feed),
            "iceberg": spent(lambda: other.request(read=window.shape.name, rows=window.rows)),
        }
        for name, run in found.items() if number else ():
            runs[name].append(run)
    return runs


def table_rows(shape: Shape, rows: int, runs: dict[str, list[Run]]) -> Iterator[str]:
    """One markdown row for each way."""
    truth = runs["tidemark"][0].answer
    for name, of_way in runs.items():
        cpu, wall = medians(of_way)
        same = "yes" if all(run.answer == truth for run in of_way) else "NO"
        yield f"| {shape.name} {shape.title} | {rows:,} | {name} | {cpu:.2f} | {wall:.2f} | {same} |"


def main() -> None:
    """Build each shape on both sides, compare, print the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", default="S1,S3,S4")
    parser.add_argument("--home", help="where tables and the environment go (default: a temporary directory)")
    given = parser.parse_args()
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home, peer(home) as other:
        spark = local_spark(warehouse=home, memory="4g", app_name="beside iceberg", more=AS_IN_PRODUCTION)
        print("| shape | rows | way | CPU s | wall s | same answer |")
        print("| --- | --- | --- | --- | --- | --- |", flush=True)
        for shape in SHAPES:
            if shape.name in given.shapes.split(","):
                window = build(spark, shape, given.rows, home)
                with Workspace(f"file://{home}/_tidemark", "benchmark") as workspace:
                    runs = compare(Ways(spark, window, workspace), other, given.rounds)
                print("\n".join(table_rows(shape, window.rows, runs)), flush=True)


if __name__ == "__main__":
    main()
