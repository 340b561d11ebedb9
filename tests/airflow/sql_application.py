"""A Spark application that runs the statements that it is given."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.appName("statements").getOrCreate()
    for statement in sys.argv[1:]:
        spark.sql(statement)
    spark.stop()
