"""Conversions of single values, by the rules of the source system (seed 001)."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tidemark.channels.model.columns import Column, ColumnType, Kind
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.convert import convert
from tidemark.channels.planning.values.problem import ValueProblem
from tidemark.channels.planning.values.texts import MOST_BYTES

WRONG, INVALID, RANGE, LARGE = (
    RowErrorKind.WRONG_TYPE,
    RowErrorKind.INVALID_VALUE,
    RowErrorKind.OUT_OF_RANGE,
    RowErrorKind.TOO_LARGE,
)
NULL, EXTRA = RowErrorKind.NULL_VALUE, RowErrorKind.EXTRA_COLUMN

BOOLEAN, BYTE, SHORT, INTEGER, LONG = map(ColumnType, (Kind.BOOLEAN, Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG))
FLOAT, DOUBLE, STRING, BINARY = map(ColumnType, (Kind.FLOAT, Kind.DOUBLE, Kind.STRING, Kind.BINARY))
DATE, TIMESTAMP, NTZ, VARIANT = map(ColumnType, (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.VARIANT))
MONEY, TENTHS = ColumnType(Kind.DECIMAL, 10, 2), ColumnType(Kind.DECIMAL, 3, 1)
WIDE = ColumnType(Kind.DECIMAL, 38, 10)
VARCHAR = ColumnType(Kind.STRING, length=3)
LONGS = ColumnType(Kind.ARRAY, element=LONG)
STRICT_LONGS = ColumnType(Kind.ARRAY, element=LONG, nullable_elements=False)
COUNTS = ColumnType(Kind.MAP, key=STRING, element=LONG)
BY_NUMBER = ColumnType(Kind.MAP, key=LONG, element=STRING)
POINT = ColumnType(Kind.STRUCT, fields=(Column("x", LONG, False, "col-x"), Column("Y", STRING, True, "col-y")))

BERLIN = ZoneInfo("Europe/Berlin")
SEVEN = timezone(timedelta(hours=7))


def micros(*parts: int) -> int:
    return (datetime(*parts, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)  # type: ignore[misc, arg-type]


GOOD: list[tuple[ColumnType, Any, Any]] = [
    *((BOOLEAN, text, True) for text in ("true", " T ", "YES", "y", "on", "1", 1, -0.5, Decimal(3), True)),
    *((BOOLEAN, text, False) for text in ("False", "f", "no", "N", "off", "0", 0, 0.0, Decimal("0.00"), False)),
    (LONG, 7, 7),
    (LONG, "  7 ", 7),
    (LONG, "1e3", 1000),
    (LONG, ".5", 1),
    (LONG, 2.5, 3),
    (LONG, -2.5, -3),
    (LONG, Decimal("2.49"), 2),
    (LONG, 2**63 - 1, 2**63 - 1),
    (LONG, -(2**63), -(2**63)),
    (BYTE, 127.4, 127),
    (BYTE, "-128.4", -128),
    (SHORT, 32767, 32767),
    (INTEGER, "2147483647", 2**31 - 1),
    (MONEY, "1.005", Decimal("1.01")),
    (MONEY, -1.005, Decimal("-1.01")),
    (MONEY, 99999999.99, Decimal("99999999.99")),
    (TENTHS, 99.94, Decimal("99.9")),
    (WIDE, "1234567890123456789012345678.0123456789", Decimal("1234567890123456789012345678.0123456789")),
    (DOUBLE, 1, 1.0),
    (DOUBLE, " 1.5 ", 1.5),
    (DOUBLE, Decimal("0.1"), 0.1),
    (DOUBLE, "-Inf", -math.inf),
    (DOUBLE, math.inf, math.inf),
    (FLOAT, "3.4e38", 3.4e38),
    (STRING, "  kept ", "  kept "),
    (STRING, "", ""),
    (STRING, True, "true"),
    (STRING, 12, "12"),
    (STRING, Decimal("1E-7"), "0.0000001"),
    (STRING, 1.5, "1.5"),
    (VARCHAR, "äöü", "äöü"),
    (VARCHAR, "🙂🙂🙂", "🙂🙂🙂"),
    (BINARY, b"\x00\xff", b"\x00\xff"),
    (BINARY, " 00fF ", b"\x00\xff"),
    (BINARY, "", b""),
    (DATE, date(2024, 2, 29), date(2024, 2, 29)),
    (DATE, datetime(2024, 2, 29, 23, 59, tzinfo=SEVEN), date(2024, 2, 29)),
    (DATE, "2013-04-28", date(2013, 4, 28)),
    (DATE, "2013-04-28T20:57:01.123456789+07:00", date(2013, 4, 28)),
    (DATE, "2013-04-28T20:57", date(2013, 4, 28)),
    (DATE, "1367182621", date(2013, 4, 28)),
    (DATE, "-1", date(1969, 12, 31)),
    (TIMESTAMP, "2013-04-28T20:57:01.123456789+07:00", micros(2013, 4, 28, 13, 57, 1, 123456)),
    (TIMESTAMP, "2013-04-28T20:57:01-0700", micros(2013, 4, 29, 3, 57, 1)),
    (TIMESTAMP, "2013-04-28T20:57Z", micros(2013, 4, 28, 20, 57)),
    (TIMESTAMP, "2013-04-28 20:57:01 +07", micros(2013, 4, 28, 13, 57, 1)),
    (TIMESTAMP, datetime(2013, 4, 28, 20, 57, tzinfo=SEVEN), micros(2013, 4, 28, 13, 57)),
    (TIMESTAMP, "31535999999", 31_535_999_999 * 10**6),
    (TIMESTAMP, "31536000000", 31_536_000_000 * 10**3),
    (TIMESTAMP, "31536000000000", 31_536_000_000_000),
    (TIMESTAMP, "31536000000000999", 31_536_000_000_000),
    (NTZ, "2013-04-28T20:57:01+07:00", micros(2013, 4, 28, 20, 57, 1)),
    (NTZ, datetime(2013, 4, 28, 20, 57, tzinfo=SEVEN), micros(2013, 4, 28, 20, 57)),
    (NTZ, "1367182621", micros(2013, 4, 28, 20, 57, 1)),
    (VARIANT, '{"a": 1.50}', '{"a": 1.50}'),
    (VARIANT, "", None),
    (VARIANT, "null", "null"),
    (VARIANT, {"a": Decimal("1.50"), "b": [1, None, "x"]}, '{"a":1.50,"b":[1,null,"x"]}'),
    (VARIANT, '{"a\\u0000": 1}', '{"a":1}'),
    (VARIANT, datetime(2024, 1, 1, tzinfo=UTC), '"2024-01-01T00:00:00+00:00"'),
    (LONGS, [1, "2", None], [1, 2, None]),
    (LONGS, "[1, 2.5]", [1, 3]),
    (LONGS, "", [None]),
    (LONGS, "null", [None]),
    (LONGS, 5, [5]),
    (COUNTS, {"a": "1"}, [("a", 1)]),
    (COUNTS, '{"a": 1}', [("a", 1)]),
    (BY_NUMBER, {"7": "x"}, [(7, "x")]),
    (POINT, {"X": "1", "y": None}, {"col-x": 1, "col-y": None}),
    (POINT, '{"x": 1}', {"col-x": 1, "col-y": None}),
]

BAD: list[tuple[ColumnType, Any, RowErrorKind]] = [
    (BOOLEAN, "maybe", INVALID),
    (BOOLEAN, math.nan, INVALID),
    (BOOLEAN, b"1", WRONG),
    (LONG, True, WRONG),
    (LONG, "1_000", INVALID),
    (LONG, "١", INVALID),
    (LONG, "", INVALID),
    (LONG, math.inf, INVALID),
    (LONG, 2**63, RANGE),
    (LONG, "1e999", RANGE),
    (LONG, date(2024, 1, 1), WRONG),
    (BYTE, 127.5, RANGE),
    (SHORT, -32769, RANGE),
    (TENTHS, 99.95, RANGE),
    (MONEY, "100000000", RANGE),
    (MONEY, "NaN", INVALID),
    (DOUBLE, "1e400", RANGE),
    (DOUBLE, False, WRONG),
    (FLOAT, 3.5e38, RANGE),
    (STRING, b"x", WRONG),
    (STRING, date(2024, 1, 1), WRONG),
    (STRING, "\ud800", INVALID),
    (STRING, "x" * (MOST_BYTES + 1), LARGE),
    (STRING, Decimal("1E+999999999"), LARGE),
    (STRING, Decimal("-1E-999999999"), LARGE),
    (VARIANT, "[1e99999999999999999999]", INVALID),
    (VARIANT, "1e999999999", INVALID),
    (VARCHAR, "abcd", LARGE),
    (BINARY, "abc", INVALID),
    (BINARY, "0x00", INVALID),
    (BINARY, 5, WRONG),
    (DATE, 5, WRONG),
    (DATE, "2024-02-30", INVALID),
    (DATE, "28.04.2013", INVALID),
    (TIMESTAMP, 1367182621, WRONG),
    (TIMESTAMP, "2013-04-28T24:00", INVALID),
    (TIMESTAMP, "-99999999999999999999", RANGE),
    (TIMESTAMP, datetime(1, 1, 1, tzinfo=SEVEN), RANGE),
    (NTZ, "yesterday", INVALID),
    (VARIANT, "{", INVALID),
    (VARIANT, '{"a": NaN}', INVALID),
    (VARIANT, '{"a": 1, "a": 2}', INVALID),
    (VARIANT, {"a": object()}, WRONG),
    (VARIANT, "[" * 100_000, INVALID),
    (LONGS, [1, "x"], INVALID),
    (STRICT_LONGS, [1, None], NULL),
    (COUNTS, [1], WRONG),
    (COUNTS, {"a": 2**63}, RANGE),
    (BY_NUMBER, {"1": "a", 1: "b"}, INVALID),
    (POINT, {"x": 1, "z": 2}, EXTRA),
    (POINT, {"y": "b"}, NULL),
    (POINT, "no object", INVALID),
]


@pytest.mark.parametrize(("kind", "value", "wanted"), GOOD)
def test_a_value_that_fits_is_converted(kind: ColumnType, value: Any, wanted: Any) -> None:
    found = convert(value, kind, UTC)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize("kind", [BOOLEAN, LONG, MONEY, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, NTZ, VARIANT, LONGS])
def test_null_stays_null(kind: ColumnType) -> None:
    assert convert(None, kind, UTC) is None


@pytest.mark.parametrize(("kind", "value", "wanted"), BAD)
def test_a_value_that_does_not_fit_has_a_problem_of_its_kind(kind: ColumnType, value: Any, wanted: Any) -> None:
    with pytest.raises(ValueProblem) as raised:
        convert(value, kind, UTC)
    assert raised.value.kind is wanted


def test_a_float_takes_nan() -> None:
    assert math.isnan(convert("NaN", DOUBLE, UTC))


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [(LONGS, [1, "x"], "[1]"), (COUNTS, {"a": "x"}, "['a']"), (POINT, {"x": "q"}, ".x"), (POINT, {"z": 1}, ".z")],
)
def test_a_problem_within_a_value_names_its_place(kind: ColumnType, value: Any, path: str) -> None:
    with pytest.raises(ValueProblem) as raised:
        convert(value, kind, UTC)
    assert raised.value.path == path


def test_a_time_without_an_offset_is_one_of_the_channels_zone() -> None:
    assert convert("2024-07-01T12:00:00", TIMESTAMP, BERLIN) == micros(2024, 7, 1, 10)
    assert convert(datetime(2024, 1, 1, 12), TIMESTAMP, BERLIN) == micros(2024, 1, 1, 11)  # noqa: DTZ001
    assert convert(date(2024, 1, 1), TIMESTAMP, BERLIN) == micros(2023, 12, 31, 23)
    assert convert("2024-07-01T12:00:00Z", TIMESTAMP, BERLIN) == micros(2024, 7, 1, 12)
