"""Transformations of COPY INTO give Spark's values, and no bad value of a file makes Spark raise."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidemark.pipes.planning.transforms import Over, select_items

pytestmark = pytest.mark.spark

ERROR = "error"

DOCUMENT = (
    '{"a": {"b": ["1.5", 2]}, "A b": {"c": "s"}, "n": 1.5, "d": "2024-01-02", "ts": 1704067200000,'
    ' "nul": null, "s": "abc", "bad": "no"}'
)


def values(rows: DataFrame, item: str, over: Over) -> list[Any]:
    """The item's value for each row as text, or ERROR if one of its checks holds."""
    (found,) = select_items(item, None, over)
    failed = " OR ".join(f"({check.sql})" for check in found.checks) or "false"
    shown = [f"IF({failed}, '{ERROR}', CAST({found.sql} AS STRING))", *(check.value for check in found.checks)]
    return [row[0] for row in rows.selectExpr(*(f"{one} AS c{n}" for n, one in enumerate(shown))).collect()]


@pytest.fixture(scope="module")
def fields(spark: SparkSession) -> DataFrame:
    rows = [("12.5", "7", "2024-01-02", "abc"), ("x", None, "02/01/2024", "1"), (None, "0", "1704067200", "")]
    found = spark.createDataFrame(rows, "_1 STRING, _2 STRING, _3 STRING, _4 STRING").coalesce(1)
    return found.selectExpr("*", "'a.csv' AS `METADATA$FILENAME`", "1L AS `METADATA$FILE_ROW_NUMBER`").cache()


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("$1::INT", ["13", ERROR, None]),
        ("$1::NUMBER(10, 2)", ["12.50", ERROR, None]),
        ("TRY_TO_NUMBER($1)", ["13", None, None]),
        ("TO_NUMBER($1, 2, 1)", [ERROR, ERROR, None]),
        ("$4::VARCHAR(2)", ["ab", "1", ""]),
        ("$3::DATE", ["2024-01-02", ERROR, ERROR]),
        ("TO_DATE($3, 'DD/MM/YYYY')", [ERROR, "2024-01-02", ERROR]),
        ("$3::TIMESTAMP", ["2024-01-02 00:00:00", ERROR, "2024-01-01 00:00:00"]),
        ("TO_TIMESTAMP_LTZ($3)", ["2024-01-02 00:00:00", ERROR, "2024-01-01 00:00:00"]),
        ("$1 + 1 > 13", ["true", ERROR, None]),
        ("ROUND($1 / $2, 2)", ["1.79", ERROR, None]),
        ("ROUND(1 / $2, 6)", ["0.142857", None, ERROR]),
        ("$1 BETWEEN 1 AND 13", ["true", ERROR, None]),
        ("$2 IN (7, 8)", ["true", None, "false"]),
        ("IFF($4 = 'abc', $1::INT, 0)", ["13", "0", "0"]),
        ("CASE $2 WHEN 7 THEN $4 ELSE 'z' END", ["abc", "z", "z"]),
        ("NVL($2, 0) = 0", ["false", "true", "true"]),
        ("COALESCE($2, 'z')", ["7", "z", "0"]),
        ("NVL($2::INT, $1::INT)", ["7", ERROR, "0"]),
        ("NOT ($4 = 'abc' OR $4 = '1')", ["false", "false", "true"]),
        ("$1 || '-' || $2", ["12.5-7", None, None]),
        ("REGEXP_SUBSTR($4, '[a-z]+')", ["abc", None, None]),
        ("SPLIT($3, '-')[1]::INT", ["1", None, None]),
        ("SPLIT_PART($3, '-', 1)", ["2024", "02/01/2024", "1704067200"]),
        ("DATEADD(day, 1, $3::DATE)::DATE", ["2024-01-03", ERROR, ERROR]),
        ("HEX($4::BINARY)", ["0ABC", "01", ""]),
        ("PARSE_JSON($4):a", [ERROR, None, ERROR]),
        ("METADATA$FILENAME || METADATA$FILE_ROW_NUMBER", ["a.csv1"] * 3),
    ],
)
def test_fields_of_text_are_converted_or_in_error(fields: DataFrame, item: str, expected: list[Any]) -> None:
    assert values(fields, item, Over.FIELDS) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("$1:a.b[0]::INT", "2"),
        ("$1:a.b[7]::INT", None),
        ('$1:"A b".c::STRING', "s"),
        ("$1['a']['b'][1]::FLOAT", "2.0"),
        ("GET_PATH($1, 'a.b[1]')::NUMBER(8, 3)", "2.000"),
        ("$1:n::INT", "2"),
        ("$1:bad::INT", ERROR),
        ("TRY_TO_NUMBER($1:bad)", None),
        ("$1:d::DATE", "2024-01-02"),
        ("$1:ts::TIMESTAMP", "2024-01-01 00:00:00"),
        ("$1:nul::INT", None),
        ("$1:absent::DATE", None),
        ("UPPER($1:s) || $1:n", "ABC1.5"),
        ("$1:n + 1 = 2.5", "true"),
        ("$1:s = 'abc'", "true"),
        ("ARRAY_SIZE($1:a.b)", "2"),
        ("IFF($1:s = 'abc', 1, $1:bad::INT)", "1"),
    ],
)
def test_parts_of_variants_are_converted_or_in_error(spark: SparkSession, item: str, expected: str | None) -> None:
    rows = spark.createDataFrame([(DOCUMENT,)], "t STRING").selectExpr("parse_json(t) AS _1")
    assert values(rows, item, Over.VARIANT) == [expected]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("$1:id", "1"),
        ("$1:ID::INT", "1"),
        ('$1:"s t".u::VARCHAR(1)', "x"),
        ("$1:arr[0]::INT", "5"),
        ("$1:arr[9]", None),
        ("$1:day::DATE", "2024-01-01"),
        ("$1:bad::INT", ERROR),
        ("HEX($1:bytes::BINARY)", "6162"),
        ("$1:at::TIMESTAMP", "2024-01-01 10:00:00.000001"),
    ],
)
def test_columns_of_files_are_selected_by_name(spark: SparkSession, item: str, expected: str | None) -> None:
    columns = "1 AS id, struct('xy' AS u) AS `s t`, array(5, 6) AS arr, '2024-01-01' AS day, 'no' AS bad"
    more = "CAST('ab' AS BINARY) AS bytes, TIMESTAMP_NTZ'2024-01-01 10:00:00.000001' AS at"
    assert values(spark.sql(f"SELECT {columns}, {more}"), item, Over.COLUMNS) == [expected]
