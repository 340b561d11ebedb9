"""A client behind a Spark Connect server: views are made, refreshed and read, and answers are reused.

python connect_views.py <url of the server> <control store> <lake root> <path of an empty table (k INT, n INT)>
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemark.client import connect

__all__ = ["main"]

SUMS = "SELECT k, SUM(n) AS s, MIN(n) AS low FROM v.sold GROUP BY k"


def main(server: str, store: str, root: str, table: str) -> dict[str, Any]:
    """Facts of all steps, for the test to compare."""
    spark = SparkSession.builder.remote(server).getOrCreate()
    lake = connect(spark, store, lake_root=root)

    def put(rows: str) -> None:
        spark.sql(f"INSERT INTO delta.`{table}` VALUES {rows}").collect()

    put("(1, 10), (1, 20), (2, 5)")
    found: dict[str, Any] = {"shape": lake.create_materialized_view("v.sums", SUMS).shape.shape}
    made = "CREATE DYNAMIC TABLE v.large TARGET_LAG = '1 minute' AS SELECT k, n FROM v.sold WHERE n > 9"
    found["status"] = lake.sql(made).collect()[0][0]
    lake.create_stream("v_sold", on="v.sold")
    put("(2, 1), (3, 30)")
    found["fresh"] = rows(lake.table("v.sums"))
    found["in sql"] = rows(lake.sql("SELECT s.k, s.low FROM v.sums s WHERE s.low < 9"))
    found["old"] = rows(lake.sql("SELECT * FROM v.large"))
    with lake.transaction() as tx:
        found["beside a stream"] = rows(tx.sql("SELECT s.n, t.n AS other FROM v_sold s, v.large t WHERE t.n = 10"))
    found["refreshed"] = [lake.refresh_view(name, refresh_mode="incremental").how for name in ("v.sums", "v.large")]
    found["new"] = [rows(lake.table("v.sums")), rows(lake.table("v.large"))]
    assert [row.name for row in lake.sql("SHOW DYNAMIC TABLES").collect()] == ["large"]
    answers = [lake.query("SELECT k, count(*) AS n FROM v.sold GROUP BY k ORDER BY k") for _ in range(2)]
    found["origins"] = [answer.origin for answer in answers]
    found["answers"] = [list(map(list, answer.collect())) for answer in answers]
    found["frame"] = rows(answers[1].dataframe())
    found["counted"] = lake.query("SELECT count(*) AS n FROM v.sold").origin
    lake.close()
    return found


def rows(frame: DataFrame | None) -> list[list[Any]]:
    assert frame is not None
    return sorted(list(row) for row in frame.collect())


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
