"""The bytes that upkeep of a clustering writes, for each byte that arrives.

    python -m tests.benchmarks.clustering_amplification [appends] [depth]

Appends of one file each, written without Spark, come to a table that is kept clustered by its key. Behind each append
the depth is kept: once by AutoClusterOperator's steps, once by Delta's own OPTIMIZE whenever the depth is above the
goal. Two orders of arrival are run: each append spans the whole range of keys, or keys rise from append to append, and
reach back over four earlier ones. Bytes are those of the log: of the appended files, and of the files that OPTIMIZE has
added. Prints the ratio of all written to the appended bytes, the largest average depth behind an append, and the depth
behind a full rewrite. Beside them it prints the least ratio that is possible if each append spans the range, by
`least_rewriting`.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.benchmarks.least_rewriting import least_rewriting
from tests.unit.lake.delta_directories import add, commit
from tidemark.client import connect
from tidemark.clustering.model.tables import Goal
from tidemark.clustering.worker.upkeep import keep_clustered, tables_to_keep
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import TransactionKey
from tidemark.testing import local_spark

__all__ = ["Arrivals", "Measured", "run"]

ROWS = 5_000
RANGE = 1_000_000_000
REACH = 4  # appends that a partly sorted one reaches back over
FILE_BYTES = 1 << 20
COLUMNS = "k BIGINT, payload STRING"


@dataclass(frozen=True)
class Arrivals:
    """An order of arrival. `spread`: the share of the range that an append spans."""

    name: str
    spread: float
    appends: int

    def rows(self, step: int) -> pa.Table:
        """The rows of an append."""
        draw = random.Random(step)
        least = 0.0 if self.spread == 1.0 else (step - REACH) / self.appends
        keys = [int(RANGE * (least + self.spread * draw.random())) for _ in range(ROWS)]
        return pa.table({"k": pa.array(keys, pa.int64()), "payload": [draw.randbytes(64).hex() for _ in keys]})


@dataclass
class Measured:
    """`ratio`: all written bytes by the appended ones. `deepest`: the largest average depth behind an append."""

    ratio: float = 0.0
    deepest: float = 0.0
    after_full: float = 0.0
    rewrites: int = 0
    seconds: float = 0.0


def run(spark: SparkSession, root: Path, arrivals: Arrivals, depth: float, *, own: bool) -> Measured:
    """All appends, with upkeep by Tidemark, or with `own` by Delta's OPTIMIZE."""
    path = root / "db" / "events"
    table = f"delta.`{path}`"
    lake = connect(spark, f"sqlite:///{root}/control.db", lake_root=str(root), who="benchmark")
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta")
    lake.cluster_by("db.events", ["k"], goal=Goal(depth=depth, file_bytes=FILE_BYTES))
    found, began = Measured(), time.perf_counter()
    for step in range(arrivals.appends):
        _append(path, arrivals.rows(step), step)
        if own:
            found.rewrites += _optimized(spark, lake, table, depth)
        else:
            found.rewrites += _kept(lake, step)
        found.deepest = max(found.deepest, lake.clustering_information("db.events")["average_depth"])
    found.seconds = time.perf_counter() - began
    found.ratio = _ratio(DeltaLog.open(str(path)))
    lake.recluster("db.events")
    found.after_full = lake.clustering_information("db.events")["average_depth"]
    lake.close()
    return found


def _append(path: Path, rows: pa.Table, step: int) -> None:
    """A file and its commit, as a writer without Spark makes them."""
    name = f"arrived-{step:05d}.parquet"
    pq.write_table(rows, path / name, compression="snappy")
    ends = pc.min_max(rows["k"]).as_py()
    said = {"numRecords": len(rows), "minValues": {"k": ends["min"]}, "maxValues": {"k": ends["max"]}}
    stats = json.dumps({**said, "nullCount": {"k": 0}})
    version = DeltaLog.open(str(path)).head() + 1
    commit(path, version, add(name, size=(path / name).stat().st_size, stats=stats))


def _kept(lake: Any, step: int) -> int:
    context = lake._context
    key = TransactionKey("benchmark", str(step), "keep")
    (done,) = keep_clustered(context.runtime, tables_to_keep(context.store), key=key)
    return int(done.version is not None)


def _optimized(spark: SparkSession, lake: Any, table: str, depth: float) -> int:
    if lake.clustering_information("db.events")["average_depth"] <= depth:
        return 0
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(FILE_BYTES))
    spark.sql(f"OPTIMIZE {table}").collect()
    return 1


def _ratio(log: DeltaLog) -> float:
    written = {True: 0, False: 0}
    for one in log.commits(-1, log.head()):
        for file in one.adds:
            written[file.data_change] += file.size
    return (written[True] + written[False]) / written[True]


if __name__ == "__main__":
    said = [int(one) for one in sys.argv[1:]]
    appends, goal = said[0] if said else 50, said[1] if len(said) > 1 else 4
    least = least_rewriting(appends, goal) / appends
    print(f"{appends} appends, depth {goal}: at least {least:.2f} if each append spans the range", flush=True)
    orders = (Arrivals("whole range", 1.0, appends), Arrivals("partly sorted", (REACH + 1) / appends, appends))
    with tempfile.TemporaryDirectory() as place:
        session = local_spark(warehouse=Path(place) / "warehouse", memory="2g")
        for own in (False, True):
            for number, order in enumerate(orders):
                home = Path(place) / f"{own}{number}"
                home.mkdir()
                done = run(session, home, order, goal, own=own)
                by = "Delta's OPTIMIZE" if own else "Tidemark"
                print(
                    f"{order.name}, {by}: {done.ratio:.2f} written, {done.ratio / least:.2f} x least, {done.rewrites}"
                    f" rewrites, deepest {done.deepest}, after a full rewrite {done.after_full}, {done.seconds:.0f} s",
                    flush=True,
                )
        session.stop()
