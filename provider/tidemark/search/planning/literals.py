"""Constants of a predicate as values of a column's kind, as Spark compares them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from tidemark.model.foreign_json import plain_text
from tidemark.search.model.paths import ValueKind

__all__ = ["NotConstant", "value_of"]

_WHOLE = re.compile(r"[0-9]{1,19}")
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,18})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class NotConstant(ValueError):
    """A constant that may equal other values than the same one."""


def value_of(kind: ValueKind, node: exp.Expr, zone: tzinfo | None) -> Any:
    """The value of a literal, of the type that Spark compares the column with. `zone`: of the session; None if it is
    unknown. Raises NotConstant.
    """
    reader = _READERS[kind]
    found = reader(node.this if isinstance(node, exp.Paren) else node)
    if kind is ValueKind.TIMESTAMP:
        if zone is None:
            raise NotConstant(node)
        return found.replace(tzinfo=zone).astimezone(UTC)
    return found


def _text(node: exp.Expr) -> str:
    """A text with a doubled quote means another one by a setting of the session."""
    text = str(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    if text is None or "'" in text or plain_text(text) != text:
        raise NotConstant(node)
    return text


def _binary(node: exp.Expr) -> bytes:
    if isinstance(node, exp.HexString) and _HEX.fullmatch(str(node.this)):
        return bytes.fromhex(str(node.this))
    raise NotConstant(node)


def _whole(node: exp.Expr) -> int:
    sign, digits = _number_text(node)
    if _WHOLE.fullmatch(digits) and _LEAST <= sign * int(digits) <= _GREATEST:
        return sign * int(digits)
    raise NotConstant(node)


def _decimal(node: exp.Expr) -> Decimal:
    sign, digits = _number_text(node)
    if not _NUMBER.fullmatch(digits):
        raise NotConstant(node)
    try:
        return sign * Decimal(digits)
    except InvalidOperation as error:
        raise NotConstant(node) from error


def _number_text(node: exp.Expr) -> tuple[int, str]:
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if isinstance(node, exp.Cast) and _keeps_its_number(node):
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign, str(node.this)
    raise NotConstant(node)


def _keeps_its_number(cast: exp.Cast) -> bool:
    """Whether the cast is of a whole number that its type has: others are cut, wrap around, or fail."""
    digits = str(cast.this.this) if isinstance(cast.this, exp.Literal) and not cast.this.is_string else ""
    bits = _BITS.get(_type(cast))
    return bits is not None and _WHOLE.fullmatch(digits) is not None and int(digits) < 1 << (bits - 1)


def _day(node: exp.Expr) -> date:
    return date.fromisoformat(_matching(_DAY, node, "DATE"))


def _moment(node: exp.Expr) -> datetime:
    return datetime.fromisoformat(_matching(_TIME, node, "TIMESTAMPTZ"))


def _matching(form: re.Pattern[str], node: exp.Expr, kind: str) -> str:
    inner = node.this if isinstance(node, exp.Cast) and _type(node) == kind else node
    text = _text(inner)
    if not form.fullmatch(text):
        raise NotConstant(node)
    return text


def _type(cast: exp.Cast) -> str:
    return str(getattr(cast.to.this, "value", cast.to.this)).upper()


_READERS: dict[ValueKind, Any] = {
    ValueKind.TEXT: _text,
    ValueKind.BINARY: _binary,
    ValueKind.WHOLE: _whole,
    ValueKind.DECIMAL: _decimal,
    ValueKind.DATE: _day,
    ValueKind.TIMESTAMP: _moment,
}
