"""Iceberg's side of the comparison; runs with the newest Spark that Iceberg has a runtime for, and nothing of ours.

Each line of standard input asks for a table or for a window's changes, each line of standard output answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.answers import Answer, answer, pairs
from tests.benchmarks.shapes import COLUMNS, SHAPES, rows_of

_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_SETTINGS = {
    "spark.jars.packages": _RUNTIME,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def build(spark: SparkSession, shape: str, rows: int, home: Path) -> Answer:
    """Make the table and run the shape's statements, unless an earlier run has."""
    note = home / f"{shape}-{rows}.window"
    name = table(shape, rows)
    if not note.exists():
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, grp INT, x DOUBLE, name STRING) USING iceberg "
            "TBLPROPERTIES ('format-version' = '2', 'write.distribution-mode' = 'none')"
        )
        spark.sql(f"INSERT INTO {name} {rows_of(0, rows, 16)}")
        start = newest(spark, name)
        for statement in next(one for one in SHAPES if one.name == shape).statements(rows):
            spark.sql(statement.replace("{t}", name))
        note.write_text(json.dumps([start, newest(spark, name)]))
    return ()


def table(shape: str, rows: int) -> str:
    """Its name in Iceberg's catalog."""
    return f"lake.bench.{shape.lower()}_{rows}"


def newest(spark: SparkSession, name: str) -> int:
    """The snapshot that the table is at."""
    return int(spark.sql(f"SELECT snapshot_id FROM {name}.history ORDER BY made_current_at DESC LIMIT 1").head()[0])


def changes(spark: SparkSession, shape: str, rows: int, home: Path) -> DataFrame:
    """The net changes, paired by key: Iceberg gives net changes or update images, not both."""
    start, end = json.loads((home / f"{shape}-{rows}.window").read_text())
    spark.sql(
        f"CALL lake.system.create_changelog_view(table => 'bench.{shape.lower()}_{rows}', net_changes => true, "
        f"changelog_view => 'net', options => map('start-snapshot-id', '{start}', 'end-snapshot-id', '{end}'))"
    )
    image, kind = F.struct(*COLUMNS), F.col("_change_type")
    ends = (
        spark.table("net")
        .groupBy("id")
        .agg(
            F.first(F.when(kind == "DELETE", image), ignorenulls=True).alias("old"),
            F.first(F.when(kind == "INSERT", image), ignorenulls=True).alias("new"),
        )
    )
    return pairs(ends)


def main() -> None:
    """Answer until standard input ends."""
    home = Path(sys.argv[1])
    home.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master("local[2]").config(map=_SETTINGS)
    spark = builder.config("spark.sql.catalog.lake.warehouse", f"file://{home}").getOrCreate()
    for line in sys.stdin:
        question = json.loads(line)
        if "build" in question:
            found = build(spark, question["build"], question["rows"], home)
        else:
            found = answer(changes(spark, question["read"], question["rows"], home))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
