"""The application that `acceleration` runs: queries whose tasks wait, with pauses of the driver.

`even` has equal tasks. `mixed` has tasks of three lengths, then a join of two stages that do not wait. `skewed` has
one long task.

    spark-submit … tests/benchmarks/accelerated_queries.py even | mixed | skewed TIMES
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def waiting(spark: SparkSession, tasks: int, milliseconds: str) -> DataFrame:
    """A row per task; `milliseconds` is an expression of `id`, and the task waits so long without computing."""
    slept = f.expr(f"java_method('java.lang.Thread', 'sleep', CAST({milliseconds} AS BIGINT))")
    return spark.range(0, tasks, 1, tasks).select("id", f.coalesce(slept, f.lit("")).alias("slept"))


def even(spark: SparkSession) -> None:
    waiting(spark, 32, "2000").groupBy("slept").count().collect()


def mixed(spark: SparkSession) -> None:
    waiting(spark, 18, "1000 + 1000 * (id % 3)").groupBy("slept").count().collect()
    time.sleep(2)
    left, right = spark.range(0, 8, 1, 8), spark.range(0, 12, 1, 12)
    left.groupBy("id").count().join(right.groupBy("id").count(), "id").collect()
    time.sleep(1)


def skewed(spark: SparkSession) -> None:
    waiting(spark, 16, "CASE WHEN id = 3 THEN 16000 ELSE 2000 END").groupBy("slept").count().collect()


SHAPES: Mapping[str, Callable[[SparkSession], None]] = {"even": even, "mixed": mixed, "skewed": skewed}

if __name__ == "__main__":
    session = SparkSession.builder.appName(f"waiting {sys.argv[1]}").getOrCreate()
    for _ in range(int(sys.argv[2])):
        SHAPES[sys.argv[1]](session)
    session.stop()
