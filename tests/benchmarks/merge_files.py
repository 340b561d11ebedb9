"""A merge into a large target in files by key: with the range of the changed keys, and as Spark's plain MERGE.

    python -m tests.benchmarks.merge_files --rows 10000000 --files 40 --rounds 5

The target is in the order of its key. 1,000 rows next to each other are updated, in a running Spark. Both ways write to
the same table in turn, each time to other rows.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, home_for, medians, spent
from tests.engine.statements import statement
from tidemark.delivery.driver import merge
from tidemark.delivery.driver.exactly_once import open_target, target_schema
from tidemark.model.statements import WriteAs
from tidemark.model.streams import ACTION
from tidemark.testing import local_spark

CHANGED = 1_000


def make_target(spark: SparkSession, path: Path, rows: int, files: int) -> None:
    """`rows` rows of four columns, with deletion vectors."""
    frame = spark.range(0, rows, 1, files).select(
        "id", F.col("id").cast("string").alias("name"), (F.col("id") % 97).alias("x"), F.rand(1).alias("y")
    )
    frame.write.format("delta").option("delta.enableDeletionVectors", "true").save(str(path))


def merge_some(spark: SparkSession, path: Path, first: int) -> int:
    """Updates CHANGED rows from `first` on."""
    changes = spark.range(first, first + CHANGED).select(
        "id", F.lit("new").alias("name"), F.lit(-1).cast("bigint").alias("x"), F.rand().alias("y"),
        F.lit("INSERT").alias(ACTION),
    )  # fmt: skip
    said = statement(path, write_as=WriteAs.MERGE, keys=("id",))
    prepared = merge.prepare_merge(changes, said, target_schema(open_target(said, None)), ("id",))
    try:
        prepared.run()
    finally:
        prepared.close()
    return CHANGED


def compare(spark: SparkSession, path: Path, rows: int, rounds: int) -> dict[str, list[Run]]:
    """`rounds` interleaved rounds after one that warms up."""
    plain = patch.object(merge, "rows_in_range", lambda *_: F.lit(True))
    runs: dict[str, list[Run]] = {"by range": [], "plain": []}
    for number in range(rounds + 1):
        for place, (name, way) in enumerate((("by range", nullcontext()), ("plain", plain))):
            first = rows // (rounds + 2) * (number + 1) + place * 2 * CHANGED
            with way:
                run = spent(lambda first=first: (merge_some(spark, path, first),))  # type: ignore[misc]
            if number:
                runs[name].append(run)
    return runs


def main() -> None:
    """Builds the target, compares, and prints the table of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with home_for(None) as home:
        spark = local_spark(warehouse=home, memory="4g", app_name="merge_files", more=AS_IN_PRODUCTION)
        make_target(spark, home / "target", given.rows, given.files)
        runs = compare(spark, home / "target", given.rows, given.rounds)
    print("| way | wall s | CPU s |")
    print("| --- | --- | --- |")
    for name, of_way in runs.items():
        cpu, wall = medians(of_way)
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
