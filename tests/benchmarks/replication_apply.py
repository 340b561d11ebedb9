"""An apply of events against a plain MERGE of the net rows that they come to: seconds and CPU seconds.

    python -m tests.benchmarks.replication_apply --rows 1000000 --events 200000 --rounds 3 [--warm-ups 1] [--home DIR]

The target has `rows` rows. Of the events 70% are updates, 20% inserts and 10% deletes; `--toast` of the updates leave a
large column out. *apply* reads the event log, folds, checks and merges; *plain* merges a Parquet table that has
the net rows already, typed, by Spark's MERGE alone. Ways are interleaved, each on a clone of the target.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pyspark.sql import Column as C
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, home_for, medians, spent
from tests.databases.postgresql.event_log import EVENT_COLUMNS
from tidemark.model.streams import TableRef
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.driver.columns import METADATA_COLUMN
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.jobs import ApplyEvents
from tidemark.replication.model.marks import ObjectMark, ObjectWrite
from tidemark.replication.model.replication import (
    START,
    Column,
    InvalidValues,
    LogPosition,
    ObjectName,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)
from tidemark.testing import local_spark

SCHEMA = TableSchema(
    (
        Column("id", UnifiedType(TypeKind.LONG), "bigint", key=True),
        Column("amount", UnifiedType(TypeKind.DECIMAL, 12, 2), "numeric(12,2)"),
        Column("made", UnifiedType(TypeKind.TIMESTAMP), "timestamptz"),
        Column("note", UnifiedType(TypeKind.STRING), "text"),
    )
)


@dataclass(frozen=True)
class Ways:
    """Each changes a clone of the target."""

    spark: SparkSession
    home: Path
    rows: int
    events: int
    toast: float

    def build(self) -> None:
        """The target as a backfill leaves it, the events, and the net rows."""
        base = self.spark.range(self.rows).select(
            "id",
            (F.col("id") / 100).cast("decimal(12,2)").alias("amount"),
            F.timestamp_seconds(F.col("id") + 1_700_000_000).alias("made"),
            F.repeat(F.md5(F.col("id").cast("string")), 3).alias("note"),
            F.struct(F.lit("u").alias("uuid"), F.lit(0).cast("bigint").alias("source_timestamp")).alias(
                METADATA_COLUMN
            ),
        )
        base.write.format("delta").option("delta.enableDeletionVectors", "true").option(
            "delta.enableRowTracking", "true"
        ).save(str(self.home / "target"))
        events = self._events()
        events.write.format("delta").partitionBy("object").save(str(self.home / "events"))
        last = events.groupBy("key").agg(F.max_by(F.struct("change", "payload"), "position").alias("last"))
        payload = F.from_json("last.payload", "id bigint, amount decimal(12,2), made timestamp, note string")
        net = last.select(
            F.get_json_object("key", "$[0]").cast("bigint").alias("id"),
            (F.col("last.change") == "DELETE").alias("goes"),
            payload.getField("amount").alias("amount"),
            payload.getField("made").alias("made"),
            payload.getField("note").alias("note"),
            F.struct(F.lit("u").alias("uuid"), F.lit(0).cast("bigint").alias("source_timestamp")).alias(
                METADATA_COLUMN
            ),
        )
        net.write.parquet(str(self.home / "net"))

    def apply(self, path: str) -> int:
        request = ApplyEvents(
            "r", "o", "s", ObjectName("public", "t"), 1, LogPosition(""), LogPosition("F"), SCHEMA, WriteMode.MERGE,
            TableRef("t", path, ""), str(self.home / "events"), InvalidValues.FAIL, 0, "1",
        )  # fmt: skip
        return sum(apply_events(self.spark, "store", request).rows.values())

    def plain(self, path: str) -> int:
        net = self.spark.read.parquet(str(self.home / "net"))
        table = f"delta.`{path}`"
        values = {name: F.col(f"net.{name}") for name in ("id", "amount", "made", "note", METADATA_COLUMN)}
        kept = {**values, "note": F.coalesce(F.col("net.note"), F.col(f"{table}.note"))}
        merge = net.alias("net").mergeInto(table, F.col(f"{table}.id") == F.col("net.id"))
        merge = merge.whenMatched(F.col("net.goes")).delete().whenMatched(~F.col("net.goes")).update(kept)
        merge.whenNotMatched(~F.col("net.goes")).insert(values).merge()
        return net.count()

    def clone(self) -> str:
        """Of the target, as a backfill has left it."""
        path = str(self.home / f"clone-{datetime.now(UTC).timestamp()}")
        self.spark.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{self.home / 'target'}`")
        nothing = self.spark.read.format("delta").load(path).limit(0).write.format("delta").mode("append")
        mark = ObjectMark("o", 0, 0, START, START, ObjectWrite.BACKFILL)
        Target(TableRef("t", path, ""), "store", "o").write_once(
            self.spark, mark, lambda: nothing.save(path), point="backfill"
        )
        return path

    def _events(self) -> DataFrame:
        dice = F.pmod(F.xxhash64("n"), F.lit(10))
        inserted = F.col("n") + self.rows
        some = F.pmod(F.xxhash64("n", F.lit(1)), F.lit(self.rows // 2)) * 2
        of = self.spark.range(self.events).withColumnRenamed("id", "n").withColumn("dice", dice)
        of = of.withColumn("id", F.when(F.col("dice") < 2, inserted).when(F.col("dice") == 2, some + 1).otherwise(some))
        change = F.when(F.col("dice") < 2, "INSERT").when(F.col("dice") == 2, "DELETE").otherwise("UPDATE")
        left_out = (change == "UPDATE") & (F.pmod(F.xxhash64("n", F.lit(2)), F.lit(100)) < int(self.toast * 100))
        text = F.struct(
            F.col("id").cast("string").alias("id"),
            F.when(change != "DELETE", F.concat(F.col("n") % 100_000, F.lit(".25"))).alias("amount"),
            F.when(change != "DELETE", F.lit("2024-02-29 12:00:00.123456+00")).alias("made"),
            F.when((change != "DELETE") & ~left_out, F.repeat(F.md5(F.col("n").cast("string")), 3)).alias("note"),
        )
        told = {
            "object": F.lit("public_t"),
            "object_id": F.lit("1"),
            "uuid": F.md5(F.col("n").cast("string")),
            "source_timestamp": F.timestamp_seconds(F.lit(1_700_000_000)),
            "position": F.lpad(F.hex(F.floor(F.col("n") / 10)), 16, "0"),
            "sequence": F.col("n") % 10 + 1,
            "change": change,
            "key": F.concat(F.lit('["'), F.col("id"), F.lit('"]')),
            "payload": F.to_json(text),
            "unchanged": F.when(left_out, F.array(F.lit("note"))),
        }
        return of.select(*(told.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in EVENT_COLUMNS.items()))


def _said() -> C:
    said = F.struct(F.lit("u").alias("uuid"), F.lit(0).cast("bigint").alias("source_timestamp"))
    return said.alias(METADATA_COLUMN)


def compare(ways: Ways, rounds: int, warm_ups: int) -> Mapping[str, list[Run]]:
    """`rounds` interleaved rounds, after some that warm up."""
    methods: dict[str, Callable[[str], int]] = {"apply": ways.apply, "plain": ways.plain}
    runs: dict[str, list[Run]] = {name: [] for name in methods}
    for number in range(warm_ups + rounds):
        for name, way in methods.items():
            path = ways.clone()
            run = spent(lambda way=way, path=path: way(path))  # type: ignore[misc]
            print(f"{name}: {run.wall:.1f} s, {run.cpu:.1f} CPU s", flush=True)
            if number >= warm_ups:
                runs[name].append(run)
    return runs


def main() -> None:
    """Build target, events and net rows, compare, print the table of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--toast", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument("--home", help="where the tables go (default: a temporary directory)")
    given = parser.parse_args()
    print(f"load at the start: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}", flush=True)
    with home_for(given.home) as home:
        spark = local_spark(warehouse=home, memory="4g", app_name="apply", more=AS_IN_PRODUCTION)
        ways = Ways(spark, home, given.rows, given.events, given.toast)
        ways.build()
        runs = compare(ways, given.rounds, given.warm_ups)
    plain_cpu, plain_wall = medians(runs["plain"])
    print("| way | wall s | CPU s | events / s | wall / plain | CPU / plain |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, of_way in runs.items():
        cpu, wall = medians(of_way)
        ratios = f"{wall / plain_wall:.2f} | {cpu / plain_cpu:.2f}"
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {given.events / wall:,.0f} | {ratios} |", flush=True)
    print(f"load at the end: {', '.join(f'{load:.1f}' for load in psutil.getloadavg())}")


if __name__ == "__main__":
    main()
