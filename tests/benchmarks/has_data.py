"""How long it takes to learn whether a stream has data; prints medians in milliseconds.

`python tests/benchmarks/has_data.py [commits]`: a log of that many commits (default 10,000, no checkpoint needed), of
which the last 100 are new. Worst case for the probe: none of them changed a row, so that each must be read.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.lake.delta_log import DeltaLog

NEW = 100
TARGET_MS = 20.0


def main(commits: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "table"
        write_log(table, commits)
        log = DeltaLog.open(str(table))
        head = log.head()
        probe = median_ms(lambda: log.has_changes(head - NEW, head))
        print(f"has_changes, {NEW} commits without changed rows: {probe:.1f} ms (target {TARGET_MS:.0f})")
        print(f"head of {commits} commits: {median_ms(log.head):.1f} ms")
        print(f"time of the head: {median_ms(lambda: log.timestamp(head)):.1f} ms")
        whole = median_ms(lambda: sum(len(commit.adds) for commit in log.commits(0, head)), rounds=3)
        print(f"all {commits} commits read: {whole:.0f} ms")
    print(f"import of DeltaLog in a fresh process: {import_ms():.0f} ms")
    return 0 if probe < TARGET_MS else 1


def write_log(table: Path, commits: int) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True)
    born = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "id", "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
    ]
    (log / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in born))
    for version in range(1, commits):
        changed = version < commits - NEW
        (log / f"{version:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions(version, changed)))


def actions(version: int, changed: bool) -> list[dict[str, object]]:
    stats = json.dumps({"numRecords": 1000, "minValues": {"k": version}, "maxValues": {"k": version + 1000}})
    add = {"path": f"part-{version}.parquet", "size": 1, "partitionValues": {}, "modificationTime": 1}
    return [
        {"commitInfo": {"operation": "WRITE" if changed else "OPTIMIZE", "operationMetrics": {"numFiles": "1"}}},
        {"add": {**add, "dataChange": changed, "stats": stats, "baseRowId": version * 1000}},
    ]


def median_ms(act: Callable[[], object], rounds: int = 15) -> float:
    def once() -> float:
        begun = time.perf_counter()
        act()
        return (time.perf_counter() - begun) * 1000

    return statistics.median(once() for _ in range(rounds))


def import_ms() -> float:
    code = "import time; t = time.perf_counter(); import tidemark.lake.delta_log; print(time.perf_counter() - t)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return float(printed) * 1000


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
