"""How long a change takes from its commit in the source to the commit in its target.

    python -m tests.benchmarks.replication_lag --seconds 120 --rate 1000 --tables 1

Writers change `rate` rows a second in transactions of 10 (6 updates, 3 inserts, 1 delete), evenly over the tables.
Beside them run after run: capture, then the apply of each table, at the level of transactions, without Airflow, in
one Spark session that is warm; a run begins when the one before has ended. Lag of a change: from the source's time of
its commit to the time of the Delta commit that has it.
"""

from __future__ import annotations

import argparse
import bisect
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION
from tests.guarantees.replication_tables import SourceTable
from tests.guarantees.replication_world import ReplicationWorld
from tests.guarantees.replication_writers import opened
from tests.postgresql import LOGICAL, running_postgresql
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.source_address import SourceAddress
from tidemark.model.spark import DELTA_PACKAGE, POSTGRESQL_PACKAGE
from tidemark.replication.model.marks import parse_object_mark
from tidemark.replication.model.replication import ReplicatedObject
from tidemark.testing import local_spark

ROWS = 100_000  # in each table at the start
COLUMNS = {"id": "bigint", "customer": "text", "amount": "numeric(12,2)", "kind": "integer", "note": "text"}
CHANGES = 10  # of a transaction


def made_tables(address: SourceAddress, count: int) -> tuple[SourceTable, ...]:
    tables = tuple(SourceTable(f"t{number}", COLUMNS, ("id",), lambda _: ("0",)) for number in range(count))
    with opened(address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA shop")
        for table in tables:
            for text in table.create():
                cursor.execute(text)
            rows = "i, 'customer ' || i % 997, i * 1.25, i % 7, md5(i::text)"
            cursor.execute(
                f"INSERT INTO {table.sql} SELECT {rows} FROM generate_series(1, {ROWS}) i; ANALYZE {table.sql}"
            )
    return tables


@contextmanager
def writing(address: SourceAddress, tables: Sequence[SourceTable], rate: int) -> Iterator[list[int]]:
    """`rate` changes a second as far as the machine can; how many there were is the list's one item."""
    stop, done = threading.Event(), [0]

    def work() -> None:
        began, newest = time.monotonic(), ROWS
        with opened(address) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                number = done[0] // CHANGES
                cursor.execute(_transaction(tables[number % len(tables)].sql, newest, number))
                newest += 3
                done[0] += CHANGES
                time.sleep(max(0.0, began + done[0] / rate - time.monotonic()))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def _transaction(table: str, newest: int, number: int) -> str:
    """One round trip."""
    some = ", ".join(str((number * 7919 + i * 104_729) % ROWS + 1) for i in range(6))
    rows = ", ".join(f"({newest + i}, 'customer', 1.5, 1, 'new')" for i in (1, 2, 3))
    return (
        f"BEGIN; UPDATE {table} SET amount = amount + 1, note = md5(note) WHERE id IN ({some});"
        f" INSERT INTO {table} VALUES {rows}; DELETE FROM {table} WHERE id = {newest - 30}; COMMIT"
    )


def lags(events: DataFrame, objects: Iterable[ReplicatedObject], since: datetime) -> list[tuple[float, float]]:
    """Of each change that committed after `since` and has come: when it was, and seconds until it had."""
    found: list[tuple[float, float]] = []
    for one in objects:
        log = DeltaLog.open(one.target.path)
        marks = [(mark.end.commit, commit.timestamp) for commit in log.commits(0, log.head())
                 if (mark := parse_object_mark(commit.user_metadata)) is not None]  # fmt: skip
        ends = [end for end, _ in marks]
        wanted = events.where((F.col("object_id") == one.source_id) & (F.col("source_timestamp") > F.lit(since)))
        seconds = F.unix_micros("source_timestamp") / 1e6
        for position, at in wanted.select("position", seconds).collect():
            place = bisect.bisect_right(ends, position)
            if place < len(marks):
                found.append((at, marks[place][1].timestamp() - at))
    return found


def table_of(found: Sequence[tuple[float, float]]) -> str:
    """The table of results."""
    each = sorted(lag for _, lag in found)
    told = f"| {len(each):,} | {statistics.median(each):.2f} | {each[int(len(each) * 0.95)]:.2f} | {each[-1]:.2f} |"
    return f"| changes | median lag s | 95 % | most |\n| --- | --- | --- | --- |\n{told}"


def measured(spark: SparkSession, home: Path, seconds: int, rate: int, count: int) -> dict[str, Any]:
    with running_postgresql(LOGICAL) as server:
        address = server.address(server.new_database())
        world = ReplicationWorld(spark, address, made_tables(address, count), home)
        world.turn("backfill")
        runs: list[float] = []
        with writing(address, world.tables, rate) as done:
            for warm in range(2):
                world.turn(f"warm {warm}")
            since, first, ends = datetime.now().astimezone(), done[0], time.monotonic() + seconds
            while time.monotonic() < ends:
                began = time.monotonic()
                world.run_id = f"run {len(runs)}"
                world.capture()
                for table in world.tables:
                    world.apply(table.name)
                runs.append(time.monotonic() - began)
            changes = (done[0] - first) / (time.monotonic() - ends + seconds)
        world.catch_up()
        world.require_same()
        events = spark.read.format("delta").load(world.replication.event_log)
        return {"rate": changes, "runs": runs, "lags": lags(events, world.objects().values(), since)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--tables", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        packages = {"spark.jars.packages": f"{DELTA_PACKAGE},{POSTGRESQL_PACKAGE}"}
        spark = local_spark(warehouse=place, memory="4g", more={**AS_IN_PRODUCTION, **packages})
        found = measured(spark, Path(place), given.seconds, given.rate, given.tables)
    runs = found["runs"]
    print(f"{found['rate']:,.0f} changes/s, {len(runs)} runs of {statistics.median(runs):.2f} s (median)")
    print(table_of(found["lags"]))


if __name__ == "__main__":
    main()
