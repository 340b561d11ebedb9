"""Texts become the values that Spark's own casts give, where both systems take the text."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidemark.channels.driver.arrow_types import buffer_type
from tidemark.channels.model.columns import ColumnType, Kind
from tidemark.channels.planning.values.convert import convert
from tidemark.channels.planning.values.problem import ValueProblem

pytestmark = pytest.mark.spark

_SIZE = 400
_any = random.Random(7)
_moment = datetime(1970, 1, 1, tzinfo=UTC)


def whole() -> str:
    return f"{_any.choice(['', ' ', '-', '+'])}{_any.randrange(10 ** _any.randint(1, 21))}{_any.choice(['', ' '])}"


def fraction() -> str:
    return f"{whole().strip()}.{_any.randrange(10 ** _any.randint(1, 6))}{_any.choice(['', '', 'e2', 'E-3'])}"


def number() -> str:
    return _any.choice([whole, fraction])()


def day() -> str:
    return (_moment + timedelta(days=_any.randint(-40_000, 40_000))).date().isoformat()


def time() -> str:
    at = _moment + timedelta(microseconds=_any.randint(-(10**15), 10**15))
    zone = _any.choice(["", "Z", "+01:00", "-11:30"])
    return at.replace(tzinfo=None).isoformat(sep=_any.choice([" ", "T"])) + zone


def word() -> str:
    return _any.choice(["true", "FALSE", "t", "No", "y", "1", "0", "maybe", " yes "])


@pytest.mark.parametrize(
    ("kind", "cast", "text", "fewest"),
    [
        (ColumnType(Kind.BOOLEAN), "try_cast(t AS BOOLEAN)", word, 200),
        (ColumnType(Kind.BYTE), "try_cast(t AS TINYINT)", whole, 20),
        (ColumnType(Kind.INTEGER), "try_cast(t AS INT)", whole, 100),
        (ColumnType(Kind.LONG), "try_cast(t AS BIGINT)", whole, 200),
        (ColumnType(Kind.DECIMAL, 20, 3), "try_cast(t AS DECIMAL(20, 3))", number, 150),
        (ColumnType(Kind.DECIMAL, 38, 10), "try_cast(t AS DECIMAL(38, 10))", number, 200),
        (ColumnType(Kind.DOUBLE), "try_cast(t AS DOUBLE)", number, 200),
        (ColumnType(Kind.FLOAT), "try_cast(t AS FLOAT)", number, 200),
        (ColumnType(Kind.DATE), "unix_date(try_cast(t AS DATE))", day, 200),
        (ColumnType(Kind.TIMESTAMP), "unix_micros(try_cast(t AS TIMESTAMP))", time, 200),
    ],
)
def test_a_text_becomes_what_spark_casts_it_to(
    spark: SparkSession, kind: ColumnType, cast: str, text: Callable[[], str], fewest: int
) -> None:
    texts = [text() for _ in range(_SIZE)]
    frame = spark.createDataFrame([(one,) for one in texts], "t STRING").selectExpr("t", f"{cast} AS theirs")
    both = [(row.t, ours(row.t, kind), row.theirs) for row in frame.collect() if row.theirs is not None]
    taken = [(one, mine, theirs) for one, mine, theirs in both if mine is not None]
    assert [each for each in taken if each[1] != each[2]] == []
    assert len(taken) >= fewest


def ours(text: str, kind: ColumnType) -> Any:
    """The value in a buffer; dates and times as numbers, as Spark counts them. None if the text is refused."""
    try:
        value = pa.array([convert(text, kind, UTC)], buffer_type(kind))
    except ValueProblem:
        return None
    number_of = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64()}.get(kind.kind)
    return (value if number_of is None else value.cast(number_of))[0].as_py()
