"""A backfill against a plain copy of the same table by Spark's JDBC reader: rows a second, CPU seconds.

    python -m tests.benchmarks.replication_backfill --rows 1000000 --rounds 3 [--warm-ups 1] [--partitions 4]

*backfill* is the whole job's work: the snapshot, the pinned reading, the checked values, the metadata of each row, the
commit with its mark. *plain* is `spark.read.jdbc(...).write.format("delta")` by ranges of the key with as many
partitions, unpinned. *by key* is the pinned reading by ranges of the key instead of places. Ways are interleaved; CPU
seconds are those of the process tree and of the server.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import psutil
from pyspark.sql import SparkSession

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, home_for, medians, spent
from tests.postgresql import LOGICAL, PostgresServer, running_postgresql
from tidemark.jobs.workspace import Workspace
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.model.spark import DELTA_PACKAGE, POSTGRESQL_PACKAGE
from tidemark.model.streams import TableRef
from tidemark.replication.driver.backfill import backfill_object
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import InvalidValues, ObjectName, ObjectState, ReplicatedObject, WriteMode
from tidemark.replication.sources.postgresql.catalog import columns_of
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.pinned import PinnedTable, jdbc_properties, jdbc_url
from tidemark.testing import local_spark

TABLE = (
    "CREATE TABLE t (id bigint PRIMARY KEY, customer int, amount numeric(12,2), score double precision, "
    "active boolean, note text, made timestamptz, day date)",
    "INSERT INTO t SELECT g, g % 1000, g / 100.0, g / 7.0, g % 2 = 0, repeat(md5(g::text), 2), "
    "timestamptz '2024-01-01' + g * interval '1 second', date '2024-01-01' + g % 365 FROM generate_series(1, {rows}) g",
    "ANALYZE t",
)


@dataclass(frozen=True)
class Ways:
    """Each makes a table under `home`, which is removed afterwards, and answers how many rows it has."""

    spark: SparkSession
    server: PostgresServer
    address: SourceAddress
    home: Path
    rows: int
    partitions: int

    def backfill(self) -> int:
        with connect(self.address) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 'public.t'::regclass::oid::bigint")
            (oid,) = cursor.fetchone()
            schema = columns_of(connection, oid)
        target = TableRef("t", str(self.home / "backfill"), "")
        name = ObjectName("public", "t")
        one = ReplicatedObject("o", "r", name, str(oid), schema, WriteMode.MERGE, target, ObjectState.ACTIVE)
        log = str(self.home / "events")
        request = BackfillObject(
            "r", "s", one, SourceKind.POSTGRESQL, 1, log, "1", InvalidValues.FAIL, self.rows, self.partitions, 0
        )
        with Workspace(f"file://{self.home}/_tidemark", "benchmark") as workspace:
            return backfill_object(
                self.spark, "store", request, self.address, workspace, now=lambda: datetime.now(UTC)
            ).rows

    def by_key(self) -> int:
        def ranges(table: PinnedTable, partitions: int) -> tuple[str, ...]:
            del table
            cuts = [self.rows * number // partitions for number in range(1, partitions)]
            lower, upper = ["true", *(f"c0 >= {cut}" for cut in cuts)], [*(f"c0 < {cut}" for cut in cuts), "true"]
            return tuple(f"{low} AND {high}" for low, high in zip(lower, upper, strict=True))

        with patch.object(PinnedTable, "ranges", ranges):
            return self.backfill()

    def plain(self) -> int:
        path = str(self.home / "plain")
        properties = {**jdbc_properties(self.address), "driver": "org.postgresql.Driver", "fetchsize": "10000"}
        frame = self.spark.read.jdbc(
            jdbc_url(self.address),
            "public.t",
            column="id",
            lowerBound=1,
            upperBound=self.rows,
            numPartitions=self.partitions,
            properties=properties,
        )
        frame.write.format("delta").save(path)
        return self.spark.read.format("delta").load(path).count()


def server_seconds(server: PostgresServer) -> float:
    """CPU seconds of the server and of the sessions that have ended."""
    times = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0])).cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def compare(ways: Ways, rounds: int, warm_ups: int) -> Mapping[str, list[Run]]:
    """`rounds` interleaved rounds, after some that warm up."""
    methods: dict[str, Callable[[], int]] = {"backfill": ways.backfill, "by key": ways.by_key, "plain": ways.plain}
    runs: dict[str, list[Run]] = {name: [] for name in methods}
    for number in range(warm_ups + rounds):
        for name, way in methods.items():
            before = server_seconds(ways.server)
            run = spent(way)
            run = replace(run, cpu=run.cpu + server_seconds(ways.server) - before)
            if run.answer != ways.rows:
                raise RuntimeError(f"{name} has {run.answer} rows")
            shutil.rmtree(ways.home / ("plain" if name == "plain" else "backfill"))
            print(f"{name}: {run.wall:.1f} s, {run.cpu:.1f} CPU s", flush=True)
            if number >= warm_ups:
                runs[name].append(run)
    return runs


def main() -> None:
    """Fill the source, compare, print the table of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--home", help="where the tables go (default: a temporary directory)")
    given = parser.parse_args()
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home, running_postgresql(LOGICAL) as server:
        database = server.new_database()
        for text in TABLE:
            server.sql(text.replace("{rows}", str(given.rows)), database)
        more = {**AS_IN_PRODUCTION, "spark.jars.packages": f"{DELTA_PACKAGE},{POSTGRESQL_PACKAGE}"}
        spark = local_spark(warehouse=home, memory="4g", app_name="backfill", more=more)
        ways = Ways(spark, server, server.address(database), home, given.rows, given.partitions)
        runs = compare(ways, given.rounds, given.warm_ups)
    _, plain = medians(runs["plain"])
    print("| way | wall s | CPU s | rows / s | rows / s against plain |")
    print("| --- | --- | --- | --- | --- |")
    for name, of_way in runs.items():
        cpu, wall = medians(of_way)
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {given.rows / wall:,.0f} | {plain / wall:.2f} |", flush=True)
    print(f"load at the end: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}")


if __name__ == "__main__":
    main()
