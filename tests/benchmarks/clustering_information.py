"""SYSTEM$CLUSTERING_INFORMATION of a table with many files, from its log alone.

    python -m tests.benchmarks.clustering_information [files]

The log has a checkpoint of nearly all files, and 20 commits behind it. The keys are a whole number, whose ranges many
files share; a text, in ranges that a good clustering leaves; and two whole numbers, in boxes as Hilbert's curve leaves
them. Each is asked six times in one process; the first answer warms the page cache and does not count. Prints medians
of wall clock and of CPU.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.lake.delta_directories import add, commit, singers
from tidemark.clustering.worker.looking import clustering_information
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog

__all__ = ["measure", "write_table"]

COLUMNS = (("a", "long"), ("b", "long"), ("name", "string"), ("x", "double"))
TAIL, FILES_PER_COMMIT = 20, 10
KEYS = (("a",), ("name",), ("a", "b"))
TIMES = 6


def write_table(root: Path, files: int) -> Path:
    """The log of a table with so many files; the data files do not exist."""
    table = singers(root, "bench.events", columns=COLUMNS)
    rows = list(_adds(files))
    behind = TAIL * FILES_PER_COMMIT
    fields = {"path": pa.string(), "size": pa.int64(), "stats": pa.string(), "tags": pa.map_(pa.string(), pa.string())}
    tags = [("ZCUBE_ID", "c"), ("ZCUBE_ZORDER_BY", '["a"]')]
    kept = [{**row, "tags": tags} for row in rows[:-behind]]
    log = table / "_delta_log"
    born = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    commit(table, 1)
    adds = pa.array([*kept, None, None], pa.struct(list(fields.items())))
    state = [json.dumps(next(one[kind] for one in born if kind in one)) for kind in ("metaData", "protocol")]
    _write_checkpoint(log / f"{1:020d}.checkpoint.parquet", adds, state)
    for number in range(TAIL):
        part = rows[len(rows) - behind + number * FILES_PER_COMMIT :][:FILES_PER_COMMIT]
        commit(table, 2 + number, *(add(row["path"], size=row["size"], stats=row["stats"]) for row in part))
    return table


def _write_checkpoint(file: Path, adds: pa.Array, state: Sequence[str]) -> None:
    metadata, protocol = (json.loads(one) for one in state)
    metadata["configuration"] = list(metadata["configuration"].items())
    kinds = {
        "metaData": pa.struct(
            [
                ("id", pa.string()),
                ("schemaString", pa.string()),
                ("partitionColumns", pa.list_(pa.string())),
                ("configuration", pa.map_(pa.string(), pa.string())),
                ("format", pa.struct([("provider", pa.string())])),
            ]
        ),
        "protocol": pa.struct(
            [
                ("minReaderVersion", pa.int32()),
                ("minWriterVersion", pa.int32()),
                ("readerFeatures", pa.list_(pa.string())),
                ("writerFeatures", pa.list_(pa.string())),
            ]
        ),
    }
    nothing = [None] * (len(adds) - 2)
    table = {
        "add": adds,
        "metaData": pa.array([*nothing, metadata, None], kinds["metaData"]),
        "protocol": pa.array([*nothing, None, protocol], kinds["protocol"]),
    }
    pq.write_table(pa.table(table), file)


def _adds(files: int) -> Iterator[dict[str, Any]]:
    """Each file has a range of a and of the text that touches a few others, and a box of a and b."""
    draw = random.Random(7)
    side = int(files**0.5)
    for index in range(files):
        a = index // side * 1000 + draw.randrange(300)
        b = index % side * 1000 + draw.randrange(300)
        least = {"a": a, "b": b, "name": f"{index * 10 + draw.randrange(20):012d}", "x": draw.random()}
        greatest = {"a": a + 1000, "b": b + 1000, "name": f"{index * 10 + 30:012d}", "x": least["x"] + 1}
        nulls = dict.fromkeys(least, 0)
        said = {"numRecords": 1_000_000, "minValues": least, "maxValues": greatest, "nullCount": nulls}
        path = f"part-{index:08d}-{draw.getrandbits(128):032x}.parquet"
        yield {"path": path, "size": 1 << 27, "stats": json.dumps(said)}


def measure(table: Path, store: ControlStore, columns: Sequence[str]) -> tuple[float, float, dict[str, Any]]:
    """Medians of seconds by the wall clock and of CPU, and the answer."""
    walls, works = [], []
    for _ in range(TIMES):
        wall, work = time.perf_counter(), time.process_time()
        found = clustering_information(store, DeltaLog.open(str(table)), columns, table="bench.events")
        walls.append(time.perf_counter() - wall)
        works.append(time.process_time() - work)
    return statistics.median(walls[1:]), statistics.median(works[1:]), found.to_plain()


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as place:
        made = write_table(Path(place), wanted)
        opened = ControlStore(f"sqlite:///{place}/control.db")
        for key in KEYS:
            wall, work, answer = measure(made, opened, key)
            assert answer["total_partition_count"] == wanted
            depth = f"depth {answer['average_depth']}, {answer['average_overlaps']} overlaps"
            print(f"{wanted} files by {', '.join(key)}: {wall:.2f} s, CPU {work:.2f} s, {depth}")
