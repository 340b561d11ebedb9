"""Canonical texts become the values of a target's columns, or are known not to fit."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemark.replication.driver.values import fits, typed, value_of
from tidemark.replication.model.replication import TypeKind, UnifiedType

pytestmark = pytest.mark.spark

UNFIT = object()
DECIMAL = UnifiedType(TypeKind.DECIMAL, 6, 2)
LARGE = UnifiedType(TypeKind.DECIMAL, 38, 9)


def of(kind: TypeKind) -> UnifiedType:
    return UnifiedType(kind)


def array(item: UnifiedType) -> UnifiedType:
    return UnifiedType(TypeKind.ARRAY, item=item)


CASES: tuple[tuple[UnifiedType, str | None, Any], ...] = (
    (of(TypeKind.BOOLEAN), "true", True),
    (of(TypeKind.BOOLEAN), "false", False),
    (of(TypeKind.BOOLEAN), None, None),
    (of(TypeKind.SMALLINT), "-32768", -32768),
    (of(TypeKind.SMALLINT), "32768", UNFIT),
    (of(TypeKind.INTEGER), "2147483647", 2147483647),
    (of(TypeKind.LONG), "-9223372036854775808", -(2**63)),
    (of(TypeKind.FLOAT), "3.4028235e+38", 3.4028234663852886e38),
    (of(TypeKind.DOUBLE), "0.1", 0.1),
    (of(TypeKind.DOUBLE), "5e-324", 5e-324),
    (of(TypeKind.DOUBLE), "NaN", math.nan),
    (of(TypeKind.DOUBLE), "-Infinity", -math.inf),
    (DECIMAL, "1234.50", Decimal("1234.50")),
    (DECIMAL, "-1234.5000", Decimal("-1234.50")),
    (DECIMAL, "0", Decimal("0.00")),
    (DECIMAL, "0.005", UNFIT),
    (DECIMAL, "12345.00", UNFIT),
    (DECIMAL, "NaN", UNFIT),
    (DECIMAL, "-Infinity", UNFIT),
    (LARGE, "12345678901234567890123456789.123456789", Decimal("12345678901234567890123456789.123456789")),
    (UnifiedType(TypeKind.DECIMAL, 60, 2), "1" * 50, "1" * 50),
    (of(TypeKind.DECIMAL), "1e400", "1e400"),
    (UnifiedType(TypeKind.DECIMAL, 3, -2), "99900", Decimal(99900)),
    (of(TypeKind.STRING), "", ""),
    (of(TypeKind.STRING), "żółw 🐢 \u0001", "żółw 🐢 \u0001"),
    (of(TypeKind.BYTES), "00ff10", b"\x00\xff\x10"),
    (of(TypeKind.BYTES), "", b""),
    (of(TypeKind.DATE), "2024-02-29", date(2024, 2, 29)),
    (of(TypeKind.DATE), "0001-01-01", date(1, 1, 1)),
    (of(TypeKind.DATE), "9999-12-31", date(9999, 12, 31)),
    (of(TypeKind.DATE), "10000-01-01", UNFIT),
    (of(TypeKind.DATE), "0044-03-15 BC", UNFIT),
    (of(TypeKind.DATE), "infinity", UNFIT),
    (of(TypeKind.DATETIME), "2024-02-29 12:00:00.123456", datetime.fromisoformat("2024-02-29T12:00:00.123456")),
    (of(TypeKind.DATETIME), "1500-01-01 00:00:00", datetime.fromisoformat("1500-01-01")),
    (of(TypeKind.DATETIME), "10000-01-01 00:00:00", UNFIT),
    (of(TypeKind.DATETIME), "0044-03-15 00:00:00 BC", UNFIT),
    (of(TypeKind.DATETIME), "-infinity", UNFIT),
    (of(TypeKind.TIMESTAMP), "2024-02-29 12:00:00.5+00", datetime(2024, 2, 29, 12, 0, 0, 500000, UTC)),
    (of(TypeKind.TIMESTAMP), "1969-12-31 23:59:59.999999+00", datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    (of(TypeKind.TIMESTAMP), "infinity", UNFIT),
    (of(TypeKind.TIMESTAMP), "0044-03-15 00:00:00+00 BC", UNFIT),
    (of(TypeKind.JSON), '{"a": [1, null]}', '{"a": [1, null]}'),
    (array(of(TypeKind.INTEGER)), '["1",null,"3"]', [1, None, 3]),
    (array(of(TypeKind.INTEGER)), "[]", []),
    (array(of(TypeKind.INTEGER)), "[1,2]", [1, 2]),
    (array(of(TypeKind.INTEGER)), '["1","x"]', UNFIT),
    (array(of(TypeKind.INTEGER)), '[["1","2"],["3","4"]]', UNFIT),
    (array(of(TypeKind.STRING)), '[["a","b"],["c",null]]', UNFIT),
    (array(of(TypeKind.JSON)), '[["{}"]]', UNFIT),
    (array(of(TypeKind.STRING)), '["[\\"a\\"]","[["]', ['["a"]', "[["]),
    (array(of(TypeKind.STRING)), '["a,b","\\"","",null]', ["a,b", '"', "", None]),
    (array(of(TypeKind.DATE)), '["2024-02-29","infinity"]', UNFIT),
    (array(DECIMAL), '["1.25"]', [Decimal("1.25")]),
)


def same(one: Any, other: Any) -> bool:
    return one == other or (
        isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    )


def test_every_type_has_its_values_and_knows_what_it_cannot_hold(spark: SparkSession) -> None:
    columns = []
    for number, (kind, text, _) in enumerate(CASES):
        told = F.lit(text).cast("string")
        value = typed(told, kind)
        shown = F.unix_micros(value) if kind.kind is TypeKind.TIMESTAMP else value_of(told, kind)
        columns += [shown.alias(f"v{number}"), fits(told, value, kind).alias(f"f{number}")]
    row = spark.range(1).select(*columns).collect()[0]
    wrong = []
    for number, (kind, text, wanted) in enumerate(CASES):
        value, fit = row[f"v{number}"], row[f"f{number}"]
        expected = None if wanted is UNFIT else wanted
        if kind.kind is TypeKind.TIMESTAMP and isinstance(expected, datetime):
            expected = round((expected - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)
        if fit is not (wanted is not UNFIT) or not same(value, expected):
            wrong.append((kind, text, value, fit))
    assert wrong == []
