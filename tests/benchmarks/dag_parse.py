"""What it costs to parse a DAG that uses all of Tidemark, beyond a DAG of the same shape that knows Airflow alone.

`python -m tests.benchmarks.dag_parse [--rounds 10]`: fresh processes, the two in turn, medians of CPU milliseconds.
*whole*: the process with all of its imports. *file*: the file alone, after what the plain DAG imports of Airflow is
there, as in a DAG processor that has parsed other files. `--importtime` prints the slowest imports instead.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["FILES", "TARGET_MS", "environment", "measure", "parse"]

ROOT = Path(__file__).parents[2]
FILES = {name: Path(__file__).parent / "parsed_dags" / f"{name}.py" for name in ("plain", "every_operator")}
TARGET_MS = 100.0

ONE = """
import runpy, sys, time
file, *before = sys.argv[1:]
for other in before:
    runpy.run_path(other, run_name="parsed")
began = time.process_time() if before else 0.0
runpy.run_path(file, run_name="parsed")
print("CPU ms:", 1000 * (time.process_time() - began))
print("heavy:", *(name for name in HEAVY if name in sys.modules))
"""
HEAVY = ("pyspark", "delta", "sqlalchemy", "alembic", "pyarrow", "fsspec", "sqlglot", "fastapi", "openlineage")


def measure(rounds: int) -> tuple[dict[str, float], dict[str, float], set[str]]:
    """Medians in milliseconds: whole processes by file, the file alone by file, and what it imports that is heavy."""
    whole: dict[str, list[float]] = {name: [] for name in FILES}
    alone: dict[str, list[float]] = {name: [] for name in FILES}
    heavy: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as home:
        for number in range(rounds + 1):  # the first fills caches of the disk and writes byte code
            for name, file in FILES.items():
                for kept, before in ((whole, ()), (alone, (FILES["plain"],))):
                    spent, heavy[name] = parse(home, file, *before)
                    if number:
                        kept[name].append(spent)
    medians = [{name: statistics.median(spent) for name, spent in kept.items()} for kept in (whole, alone)]
    return medians[0], medians[1], heavy["every_operator"] - heavy["plain"]


def parse(home: str, file: Path, *before: Path) -> tuple[float, set[str]]:
    """CPU milliseconds of `file` in a fresh process, after the files `before` or with the process; heavy imports."""
    code = ONE.replace("HEAVY", repr(HEAVY))
    command = [sys.executable, "-c", code, str(file), *map(str, before)]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=True)
    said = dict(line.split(":", 1) for line in done.stdout.splitlines() if line.startswith(("CPU ms:", "heavy:")))
    return float(said["CPU ms"]), set(said["heavy"].split())


def environment(home: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return {**known, "AIRFLOW_HOME": home, "PYTHONPATH": str(ROOT / "provider")}


def slowest_imports(count: int) -> None:
    """The imports of the DAG with the most time of their own, those of the plain DAG left out."""
    with tempfile.TemporaryDirectory() as home:
        found = {name: _imports(home, file) for name, file in FILES.items()}
    more = {module: spent for module, spent in found["every_operator"].items() if module not in found["plain"]}
    print(f"{len(more)} modules more, {sum(more.values()) / 1000:.1f} ms")
    for module, spent in sorted(more.items(), key=lambda one: -one[1])[:count]:
        print(f"{spent / 1000:8.1f} ms  {module}")


def _imports(home: str, file: Path) -> dict[str, int]:
    command = [sys.executable, "-X", "importtime", str(file)]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=True)
    told = (line.removeprefix("import time:").split("|") for line in done.stderr.splitlines() if "import time:" in line)
    return {name.strip(): int(own) for own, _, name in told if own.strip().isdigit()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--importtime", action="store_true")
    given = parser.parse_args()
    if given.importtime:
        slowest_imports(25)
        return 0
    whole, alone, heavy = measure(given.rounds)
    print("CPU ms, median of", given.rounds)
    for label, found in (("whole", whole), ("file", alone)):
        more = found["every_operator"] - found["plain"]
        print(f"{label}: plain {found['plain']:.0f}, every operator {found['every_operator']:.0f}, {more:.0f} more")
    print(f"heavy imports: {', '.join(sorted(heavy)) or 'none'}; target {TARGET_MS:.0f} ms more")
    return 0 if alone["every_operator"] - alone["plain"] < TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
