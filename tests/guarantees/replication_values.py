"""Values of PostgreSQL's types as its own texts, edges among them, and one canonical form that a source's value and a
target's have in common. It is made without the code it is to judge.
"""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

__all__ = ["any_value", "big_text", "canonical", "is_text"]

Chance = random.Random

_TEXTS = ("", " ", "ä€😀", 'it\'s "so"', "a\tb\nc\\d", "\\N", "null", "NULL", "{}", "%s", "`x`.y", "\u2028", "x" * 300)
_EDGES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": ("-32768", "32767", "0"),
    "integer": ("-2147483648", "2147483647", "0"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "0"),
    "real": ("0", "-0", "1e-45", "3.4028235e38", "NaN", "Infinity", "-Infinity", "0.1", "16777216", "1.17549435e-38"),
    "double precision": ("0", "-0", "5e-324", "1.7976931348623157e308", "NaN", "Infinity", "-Infinity", "0.1", "1e22"),
    "numeric(12,2)": ("0", "-0.01", "9999999999.99", "-9999999999.99"),
    "numeric(38,10)": ("0", "0.0000000001", "9999999999999999999999999999.9999999999"),
    "numeric(50,5)": ("0", "123456789012345678901234567890123456789012345.54321"),
    "numeric": ("0", "1.10", "NaN", "1e60", "-0.00000000000000000000000000000000000000001"),
    "char(5)": ("", "ab", "abcde", "ä"),
    "varchar(40)": _TEXTS[:10],
    "text": _TEXTS,
    "bytea": ("\\x", "\\x00", "\\x00ff10", "\\x" + "ab" * 40),
    "date": ("0001-01-01", "9999-12-31", "1582-10-10", "1900-01-01", "2024-02-29"),
    "timestamp": (
        "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1582-10-10 00:00:00.000001", "2024-03-31 02:30:00",
    ),
    "timestamptz": (
        "0001-01-02 00:00:00+00", "9999-12-31 23:59:59.999999+00", "1969-12-31 23:59:59.999999+00",
        "2024-03-31 02:30:00+02",
    ),
    "time": ("00:00:00", "24:00:00", "23:59:59.999999"),
    "timetz": ("00:00:00+14", "12:30:00.5-03:30"),
    "interval": ("0", "1 year 2 mons -3 days", "-00:00:00.000001", "178000000 years"),
    "uuid": ("00000000-0000-0000-0000-000000000000",),
    "json": ("null", '{"a" : [1, null, "x\\u00e4"], "a": 2}', "[]", '"text"', "1.0"),
    "jsonb": ("null", '{"b": 1.50, "a": {"deep": [true, null]}}', "[]", '"text"'),
    "inet": ("::1", "192.168.0.1/24"),
    "macaddr": ("08:00:2b:01:02:03",),
    "int4range": ("empty", "[1,5)", "(,3)"),
    "point": ("(1.5,-2)",),
    "bit(4)": ("0000", "1011"),
    "varbit": ("", "101"),
    "tsvector": ("'a':1 'b':2",),
    "shop.amount": ("0", "-0.01", "9999999999.99"),
    "shop.mood": ("sad", "very happy"),
    "shop.pair": ("(1,)", "(,\"a,b\")", "(,)"),
    "integer[]": ("{}", "{1,NULL,-2147483648}"),
    "text[]": ("{}", '{"a,b",NULL,"","NULL","q\\"q\\\\","ä\nb"}'),
    "boolean[]": ("{t,f,NULL}",),
    "numeric(10,2)[]": ("{1.10,NULL,-0.01}",),
    "double precision[]": ("{NaN,0.1,-0,Infinity}",),
    "date[]": ("{0001-01-01,2024-02-29}",),
    "timestamptz[]": ('{"2024-03-31 02:30:00.5+02",NULL}',),
    "uuid[]": ("{00000000-0000-0000-0000-000000000000,NULL}",),
}  # fmt: skip
_RANDOM: dict[str, Callable[[Chance], str]] = {
    "smallint": lambda c: str(c.randrange(-99, 99)),
    "integer": lambda c: str(c.randrange(-9999, 9999)),
    "bigint": lambda c: str(c.randrange(-(10**15), 10**15)),
    "real": lambda c: repr(c.uniform(-1e3, 1e3)),
    "double precision": lambda c: repr(c.uniform(-1e9, 1e9)),
    "numeric(12,2)": lambda c: f"{c.randrange(-(10**8), 10**8) / 100:.2f}",
    "numeric(38,10)": lambda c: str(Decimal(c.randrange(-(10**30), 10**30)).scaleb(-10)),
    "numeric": lambda c: str(Decimal(c.randrange(10**30)).scaleb(-c.randrange(20))),
    "text": lambda c: big_text(c) if c.random() < 0.3 else f"text {c.randrange(1000)}",
    "varchar(40)": lambda c: f"word {c.randrange(1000)}",
    "bytea": lambda c: "\\x" + c.randbytes(c.choice((3, 40, 3000))).hex(),
    "date": lambda c: str(date(1950, 1, 1) + timedelta(days=c.randrange(40_000))),
    "timestamp": lambda c: _moment(c).removesuffix("+00:00"),
    "timestamptz": lambda c: _moment(c),
    "uuid": lambda c: str(uuid.UUID(int=c.getrandbits(128))),
    "jsonb": lambda c: f'{{"n": {c.randrange(99)}, "t": "{c.randbytes(1200).hex() if c.random() < 0.3 else ""}"}}',
}
_NULLS = 0.15


def _moment(chance: Chance) -> str:
    return str(datetime(1950, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(3 * 10**15)))


def any_value(native: str, chance: Chance, *, nullable: bool = True) -> str | None:
    """A text that the type reads: NULL, an edge or any other."""
    if nullable and chance.random() < _NULLS:
        return None
    made = _RANDOM.get(native)
    if made is None or chance.random() < 0.3:
        return chance.choice(_EDGES[native])
    return made(chance)


def big_text(chance: Chance) -> str:
    """More than a page's share, and it does not compress: kept out of line."""
    return chance.randbytes(1500).hex()


_TYPED = (
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "bytea", "date", "timestamp", "timestamptz",
    "text", "char", "varchar",
)  # fmt: skip
_DOMAINS = {"shop.amount": "numeric(12,2)"}
_EXACT = Context(prec=100)


def is_text(native: str) -> bool:
    """Whether a target has this type as the source's own text. A numeric with more than 38 digits, or any, is one."""
    item = _DOMAINS.get(native, native).removesuffix("[]")
    if item.startswith("numeric("):
        return int(item[8:].split(",")[0]) > 38
    return item.split("(")[0] not in _TYPED


def canonical(native: str, value: Any) -> Any:
    """What two values have in common exactly where they are one; -0 is not 0, NaN is NaN. A time is a text already."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(canonical(native.removesuffix("[]"), item) for item in value)
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("<f" if native == "real" else "<d", value).hex()
    if isinstance(value, Decimal):  # Spark hands 1E-10 of a decimal(38, 10) to Python as 1.00E-10
        return format(_EXACT.normalize(value), "f") if value else "0"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value if isinstance(value, bool | int | str) else str(value)
