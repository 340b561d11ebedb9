"""Sixteen partitions of a change stream's log read in parallel, against one filtered scan each of an unpartitioned log.

    python -m tests.benchmarks.partition_reads --rows 2000000 --rounds 5 [--home DIR]

Both logs have the same rows in as many batches. Each way reads every partition by a query of its own, sixteen at once.
CPU seconds are those of the whole process tree, Python and JVM. Rounds are interleaved, after one that warms up; both
ways must give one answer.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, spent
from tidemark.change_streams.driver.log_table import LOG_COLUMNS, LOG_DDL, TOKEN_COLUMN
from tidemark.change_streams.driver.read import read_mods
from tidemark.change_streams.model.change_streams import Position
from tidemark.testing import local_spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PARTITIONS, BATCHES = 16, 8
TOKENS = [f"token{number:02d}" for number in range(PARTITIONS)]
WHOLE = (Position(BEGIN), Position(BEGIN + timedelta(days=1)))
STATS = "'delta.dataSkippingStatsColumns' = 'record_type, batch, commit_timestamp, record_sequence'"


def built(spark: SparkSession, home: Path, rows: int) -> tuple[Path, Path]:
    """The log, and its twin that is not partitioned, batch by batch."""
    paths = home / "log", home / "twin"
    for path, layout in zip(paths, (f"PARTITIONED BY ({TOKEN_COLUMN})", ""), strict=True):
        spark.sql(f"CREATE TABLE delta.`{path}` ({LOG_DDL}) USING delta {layout} TBLPROPERTIES ({STATS})")
        for batch in range(BATCHES):
            made = _rows(spark, batch, rows // BATCHES)
            made.repartition(2, TOKEN_COLUMN).write.format("delta").mode("append").save(str(path))
    return paths


def _rows(spark: SparkSession, batch: int, count: int) -> DataFrame:
    key = F.col("id") + batch * count
    micros = F.lit(int(BEGIN.timestamp()) * 1_000_000) + key
    texts = {"v": F.md5(key.cast("string")), "w": F.sha1(key.cast("string"))}
    values = F.to_json(F.struct(*(value.alias(name) for name, value in texts.items())))
    given = {
        TOKEN_COLUMN: F.concat(F.lit("token"), F.lpad((key % PARTITIONS).cast("string"), 2, "0")),
        "record_type": F.lit("data"),
        "batch": F.lit(batch),
        "commit_timestamp": F.timestamp_micros(micros),
        "record_sequence": F.lpad(key.cast("string"), 12, "0"),
        "mod_number": F.lit(0),
        "mod_type": F.lit("UPDATE"),
        "keys": F.to_json(F.struct(key.cast("string").alias("id"))),
        "new_values": values,
        "old_values": values,
    }
    frame = spark.range(count)
    return frame.select(*(given.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in LOG_COLUMNS.items()))


def in_parallel(read: Callable[[str], DataFrame]) -> tuple[tuple[object, ...], ...]:
    def answer(token: str) -> tuple[object, ...]:
        rows = read(token).agg(F.count("*"), F.bit_xor(F.xxhash64("keys", "new_values", "old_values")))
        return tuple(rows.collect()[0])

    with ThreadPoolExecutor(PARTITIONS) as pool:
        return tuple(pool.map(answer, TOKENS))


def compared(spark: SparkSession, log: Path, twin: Path, rounds: int) -> dict[str, list[Run]]:
    def filtered(token: str) -> DataFrame:
        return spark.read.format("delta").load(str(twin)).where(F.col(TOKEN_COLUMN) == token)

    ways = {
        "pruned reads of the log": lambda: in_parallel(lambda token: read_mods(spark, str(log), token, *WHOLE)),
        "a filtered scan each": lambda: in_parallel(filtered),
    }
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, question in ways.items():
            run = spent(question)
            if number:
                runs[way].append(run)
    answers = {run.answer for each in runs.values() for run in each}
    assert len(answers) == 1, answers
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with nullcontext(given.home) if given.home else tempfile.TemporaryDirectory() as place:
        home = Path(place)
        spark = local_spark(warehouse=home, memory="4g", more=AS_IN_PRODUCTION)
        log, twin = built(spark, home, given.rows)
        print(f"| {given.rows:,} rows, {PARTITIONS} partitions | CPU s, median | wall s, median |\n| --- | --- | --- |")
        for way, runs in compared(spark, log, twin, given.rounds).items():
            cpu, wall = (statistics.median(times) for times in zip(*((r.cpu, r.wall) for r in runs), strict=True))
            print(f"| {way} | {cpu:.2f} | {wall:.2f} |", flush=True)


if __name__ == "__main__":
    main()
