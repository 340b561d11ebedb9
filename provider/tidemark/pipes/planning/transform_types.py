"""Types of the source system in a transformation: the type in Spark, and the conversion of texts to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tidemark.sql.foreign_sql import SPARK

__all__ = ["Refused", "TypeOf", "call", "converted", "tried", "type_of"]

_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.NCHAR, exp.DType.NVARCHAR)
_WHOLE = (
    *(exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT, exp.DType.MEDIUMINT),
    *(exp.DType.INT128, exp.DType.BIGDECIMAL),
)
_PLAIN = {
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.FLOAT: "DOUBLE",
    exp.DType.BOOLEAN: "BOOLEAN",
    exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMP: "TIMESTAMP_NTZ",
    exp.DType.DATETIME: "TIMESTAMP_NTZ",
    exp.DType.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
    exp.DType.TIMESTAMPLTZ: "TIMESTAMP",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
    exp.DType.BINARY: "BINARY",
    exp.DType.VARBINARY: "BINARY",
    exp.DType.VARIANT: "VARIANT",
    exp.DType.OBJECT: "VARIANT",
    exp.DType.ARRAY: "VARIANT",
    exp.DType.STRUCT: "VARIANT",
}
_SECONDS = 31_536_000_000  # from here on a number of seconds is one of milliseconds, as there
_EPOCH = exp.cast(exp.Literal.string("1970-01-01 00:00:00"), exp.DataType.build("TIMESTAMPNTZ"))


class Refused(ValueError):
    """The reason why an item cannot be part of a transformation."""


@dataclass(frozen=True)
class TypeOf:
    """A type by Spark's name. `length`: of a text, which is cut there, as an explicit cast does. `shown`: to users."""

    name: str
    shown: str
    length: int | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is a type of numbers."""
        return self.name == "DOUBLE" or self.name.startswith("DECIMAL")


def type_of(type: exp.DataType) -> TypeOf:
    """The type in Spark. A whole number is NUMBER(38, 0), and is rounded. Raises Refused."""
    given = [int(one.name) for one in type.expressions if one.name.isdigit()]
    if type.this in _TEXTS:
        return TypeOf("STRING", "VARCHAR", given[0] if given else None)
    if type.this in _WHOLE:
        return TypeOf("DECIMAL(38, 0)", "INTEGER")
    if type.this is exp.DType.DECIMAL:
        precision, scale = [*given, *(38, 0)[len(given) :]][:2]
        return TypeOf(f"DECIMAL({precision}, {scale})", f"NUMBER({precision}, {scale})")
    if type.this not in _PLAIN:
        name = type.this.value if isinstance(type.this, exp.DType) else str(type)
        raise Refused(f"type {name} has no counterpart in Delta tables")
    name = _PLAIN[type.this]
    return TypeOf(name, name)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function of Spark."""
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


def tried(value: exp.Expr, type: str) -> exp.Expr:
    """TRY_CAST to a type of Spark."""
    return exp.TryCast(this=value.copy(), to=exp.DataType.build(type, dialect=SPARK), safe=True)


def converted(text: exp.Expr, type: TypeOf, pattern: str | None = None) -> exp.Expr:
    """A text, or another value, in this type; NULL if it does not fit. `pattern`: in Spark's letters."""
    if pattern is not None:
        return _parsed(text, type.name, pattern)
    if type.name in _CONVERSIONS:
        return _CONVERSIONS[type.name](text)
    found: exp.Expr = tried(text, type.name)
    return found if type.length is None else call("left", found, exp.Literal.number(type.length))


def _parsed(text: exp.Expr, type: str, pattern: str) -> exp.Expr:
    literal = exp.Literal.string(pattern)
    if type == "DATE":
        return call("try_to_date", text, literal)
    moment = call("try_to_timestamp", text, literal)
    return moment if type == "TIMESTAMP" else exp.cast(moment, exp.DataType.build("TIMESTAMPNTZ"))


def _local(text: exp.Expr) -> exp.Expr:
    """A timestamp without a zone. A whole number is the time since 1970, in a unit that its size says."""
    seconds = exp.cast(exp.Div(this=_micros(text), expression=exp.Literal.number(1_000_000)), "DECIMAL(18, 6)")
    zero = exp.Literal.number(0)
    since = exp.Add(this=_EPOCH.copy(), expression=call("make_dt_interval", zero, zero, zero, seconds))
    return exp.func("COALESCE", since, tried(_text(text), "TIMESTAMP_NTZ"))


def _moment(text: exp.Expr) -> exp.Expr:
    cast = tried(_text(text), "TIMESTAMP")
    return exp.func("COALESCE", call("timestamp_micros", _micros(text)), cast)


def _micros(text: exp.Expr) -> exp.Expr:
    number = tried(_text(text), "BIGINT")
    size = exp.func("ABS", exp.cast(number, "DECIMAL(38, 0)"))
    case = exp.Case(default=exp.IntDiv(this=number.copy(), expression=exp.Literal.number(1000)))
    for factor in (1_000_000, 1_000, 1):
        limit = exp.Literal.number(_SECONDS * 1_000_000 // factor)
        scaled = exp.Mul(this=number.copy(), expression=exp.Literal.number(factor))
        case = case.when(exp.LT(this=size.copy(), expression=limit), scaled)
    return case


def _text(value: exp.Expr) -> exp.Expr:
    return tried(value, "STRING")


def _bytes(text: exp.Expr) -> exp.Expr:
    return call("try_to_binary", text, exp.Literal.string("hex"))


_CONVERSIONS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "TIMESTAMP_NTZ": _local,
    "TIMESTAMP": _moment,
    "BINARY": _bytes,
}
