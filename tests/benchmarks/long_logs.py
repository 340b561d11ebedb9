"""Looks at a table with a commit a second, whose log has millions of files; prints medians in milliseconds.

    python -m tests.benchmarks.long_logs [--commits 2600000] [--rounds 9]

The table's log has that many commits and a checkpoint near its head. Commits in between are hard links to a commit that
changed nothing, and neither side reads them. `whole` asks the same without `_last_checkpoint`, so the directory is
listed, by Kernel itself for channels. On a local disk.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.change_sets import home_for
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelTable
from tidemark.errors import KernelFailed
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_tails import log_tail
from tidemark.testing import local_spark

_LINKS = 30_000  # to one file; a file system allows 65,000
_BEHIND = 5  # commits behind the checkpoint
_EVERY = 10  # commits between two checkpoints, as Delta has it
_NEW = 100  # commits since the stream's offset


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=2_600_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--whole-rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "t"
        head = write_table(table, given.commits)
        kernel = start_engine({}, seconds_to_answer=600).table(f"file://{table}")
        for way, act in asked(table, head, kernel).items():
            act()
            tails = [timed(act) for _ in range(given.rounds)]
            (table / "_delta_log" / "_last_checkpoint").rename(table / "kept")
            wholes = [timed(act) for _ in range(given.whole_rounds)]
            (table / "kept").rename(table / "_delta_log" / "_last_checkpoint")
            one, all_ = statistics.median(tails), statistics.median(wholes or [math.inf])
            longest = max(tails)
            print(
                f"{way:60} {one:8.1f} ms (longest {longest:.0f}), whole {all_:9.0f} ms, {all_ / one:6.0f} x", flush=True
            )
    return 0


def asked(table: Path, head: int, kernel: KernelTable) -> dict[str, Callable[[], object]]:
    log = DeltaLog.open(str(table))

    def has_data() -> None:
        opened = DeltaLog.open(str(table))
        assert opened.head() == head
        assert opened.has_changes(head - _NEW, head)

    def begin() -> None:
        opened = DeltaLog.open(str(table))
        assert opened.goes_on_from(head - _NEW)
        assert opened.state(head - _NEW).table_id == opened.state().table_id
        assert len(list(opened.commits(head - _NEW, opened.head()))) == _NEW

    return {
        "has data": has_data,
        f"begin: the log is whole, two states, {_NEW} commits": begin,
        "state": log.state,
        "open of a channel: Kernel's snapshot and its domains": lambda: kernel.latest(log_tail(log.storage)).domains(),
    }


def write_table(table: Path, commits: int) -> int:
    """A Delta table whose log was made longer by hand. Its head."""
    with home_for(None) as home:
        spark = local_spark(warehouse=home / "warehouse")
        spark.sql(
            f"CREATE TABLE delta.`{table}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true',"
            f" 'delta.checkpointInterval' = '{_BEHIND}')"
        )
        for number in range(2 * _BEHIND):
            spark.sql(f"INSERT INTO delta.`{table}` VALUES ({number})")
        spark.stop()
    log = table / "_delta_log"
    for checksum in log.glob("*.crc"):
        checksum.unlink()
    last = 2 * _BEHIND
    begun = time.perf_counter()
    base: Path | None = None
    for version in range(last + 1, commits + 1):
        file = log / f"{version:020d}.json"
        if base is None or version % _LINKS == 0:
            file.write_text(json.dumps({"commitInfo": {"operation": "TEST", "timestamp": 0}}) + "\n")
            base = file
        else:
            os.link(base, file)
    for version in range(commits, commits - 2 * _NEW, -_EVERY):
        shutil.copy(log / f"{last:020d}.checkpoint.parquet", log / f"{version:020d}.checkpoint.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": commits, "size": 1}))
    for number in range(1, _BEHIND + 1):
        (log / f"{commits + number:020d}.json").write_text(json.dumps(changed(number)) + "\n")
    print(f"{commits:,} commits made in {time.perf_counter() - begun:.0f} s", flush=True)
    return commits + _BEHIND


def changed(number: int) -> dict[str, Any]:
    file = {"path": f"f{number}", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}
    return {"add": {**file, "baseRowId": 1_000 + number, "defaultRowCommitVersion": 1, "stats": '{"numRecords": 1}'}}


def timed(act: Callable[[], object]) -> float:
    """Milliseconds; infinite if Kernel's JVM, which has 1 GiB, cannot do it."""
    begun = time.perf_counter()
    try:
        act()
    except KernelFailed as error:
        print(f"  {str(error)[:200]}")
        return math.inf
    return (time.perf_counter() - begun) * 1000


if __name__ == "__main__":
    sys.exit(main())
