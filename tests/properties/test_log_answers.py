"""The answers of the log equal those of Spark, on random small tables."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tidemark.client import connect
from tidemark.model.file_statistics import may_be_rounded

pytestmark = pytest.mark.spark

COLUMNS = "file INT, b TINYINT, i INT, l BIGINT, d DATE, n DECIMAL(38, 10), part INT, day DATE"
TEXT = """
    SELECT count(*), COUNT(1) AS c, min(b), max(B) AS top, min(i), max(i), min(l), max(l), min(d), max(d), min(n),
      max(n),
      min(part), max(part), min(`day`), max(day), min(dropped), max(dropped) AS gone FROM lake.t
"""
DECIMALS = st.decimals(-(10**27), 10**27, places=10, allow_nan=False, allow_infinity=False).filter(
    lambda number: not may_be_rounded(number, 10) and not may_be_rounded(number.normalize(), 10)
)  # others are left to Spark
DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))
ROW = st.tuples(
    st.integers(0, 2),
    st.none() | st.integers(-128, 127),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | DAYS,
    st.none() | DECIMALS,
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from([date(1, 1, 1), date(2026, 3, 1)]),
)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(rows=st.lists(ROW, max_size=12), mapped=st.booleans())
def test_what_the_log_answers_is_what_spark_answers(spark: SparkSession, rows: list[Any], mapped: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        frame = (
            spark.createDataFrame(rows, COLUMNS).repartition(3, "file").selectExpr("*", "CAST(NULL AS INT) AS dropped")
        )
        writer = frame.drop("file").write.format("delta").partitionBy("part", "day")
        if mapped:
            writer = writer.option("delta.columnMapping.mode", "name")
        writer.save(str(root / "lake/t"))
        lake = connect(spark, f"sqlite:///{root}/control.db", lake_root=str(root))
        found = lake.query(TEXT)
        wanted = spark.sql(TEXT.replace("lake.t", f"delta.`{root}/lake/t`"))
        assert found.origin == "log", found.why
        assert list(found.columns) == wanted.columns
        assert found.collect() == wanted.collect()
        assert found.to_arrow().schema.types == wanted.toArrow().schema.types
        lake.close()


def test_columns_that_the_log_has_not_exactly_are_answered_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}/lake/t`"
    spark.sql(f"""
        CREATE TABLE {table} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS
        SELECT id, repeat('x', 40) || id AS s, CASE WHEN id = 3 THEN double('NaN') ELSE double(id) END AS x,
          timestamp_micros(id * 1000 + 7) AS t FROM range(5)
    """)
    lake = connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path))
    for text in ("SELECT max(s) FROM lake.t", "SELECT max(x) FROM lake.t", "SELECT max(t), min(t) FROM lake.t"):
        found = lake.query(text)
        assert (found.origin, found.why) == ("spark", "no answer of this text is kept")
        assert repr(found.collect()) == repr(spark.sql(text.replace("lake.t", table)).collect())
    spark.sql(f"DELETE FROM {table} WHERE id IN (0, 4)")
    assert [tuple(row) for row in lake.query("SELECT count(*) FROM lake.t").collect()] == [(3,)]
    assert lake.query("SELECT count(*) FROM lake.t").origin == "log"
    ends = lake.query("SELECT min(id), max(id) FROM lake.t")
    assert (ends.origin, [tuple(row) for row in ends.collect()]) == ("spark", [(1, 3)])
    lake.close()
