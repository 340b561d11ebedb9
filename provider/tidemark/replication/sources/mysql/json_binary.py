"""JSON documents in the binary form of MySQL, as the text that MySQL writes of them."""

from __future__ import annotations

import struct
from base64 import b64encode
from decimal import Context, Decimal
from json.encoder import encode_basestring

from tidemark.replication.sources.mysql.packed import decimal_text, packed_moment, packed_time

__all__ = ["double_text", "json_of", "queried_text"]

_LEAST_POWER = -15  # of ten, in numbers without an exponent
_EXACT = Context(prec=20)
_LITERALS = {0: "null", 1: "true", 2: "false"}
_NUMBERS = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
_INLINE = {True: frozenset({4, 5, 6, 7, 8}), False: frozenset({4, 5, 6})}  # by whether the container is a large one
_DATE, _TIME, _DATETIME, _TIMESTAMP, _DECIMAL = 10, 11, 12, 7, 246


def json_of(data: bytes) -> str:
    """The text of a document; that of an empty one is null, as INSERT IGNORE may leave it."""
    return _value(data[0], data, 1) if data else "null"


def double_text(value: float, widest: int = 400) -> str:
    """A DOUBLE in the shortest digits that give it back; a whole one has no point. The servers write an exponent for
    other numbers than Python, and if a text would be longer than `widest`.
    """
    if 1e-4 <= abs(value) < 1e15 or not value:
        return repr(value).removesuffix(".0")
    sign, digits, last = Decimal(repr(value)).normalize(_EXACT).as_tuple()
    power, places = len(digits) - 1 + int(last), -int(last)
    if places > 0 and power >= _LEAST_POWER and len(plain := f"{value:.{places}f}") <= widest:
        return plain
    first, *rest = map(str, digits)
    return f"{'-' * sign}{'.'.join(filter(None, (first, ''.join(rest))))}e{power}"


def queried_text(text: str, *, single: bool, widest: int) -> str:
    """The text of a FLOAT (`single`) or a DOUBLE of an event, as a query has it. A FLOAT is a DOUBLE there."""
    (value,) = struct.unpack("<f", struct.pack("<f", float(text))) if single else (float(text),)
    return double_text(value, widest)


def _value(kind: int, data: bytes, at: int) -> str:
    if kind <= 3:
        return _container(kind, data, at)
    if kind == 4:
        return _LITERALS[data[at]]
    if kind in _NUMBERS:
        return str(struct.unpack_from(_NUMBERS[kind], data, at)[0])
    if kind == 11:
        text = double_text(struct.unpack_from("<d", data, at)[0])
        return text if set("e.") & set(text) else f"{text}.0"
    if kind == 12:
        length, at = _length(data, at)
        return encode_basestring(data[at : at + length].decode())
    if kind == 15:
        return _opaque(data, at)
    raise ValueError(f"a JSON document has a value of type {kind}")


def _container(kind: int, data: bytes, at: int) -> str:
    """An object (0, 1) or an array (2, 3); 1 and 3 have offsets of four bytes."""
    large, is_object = bool(kind & 1), kind < 2
    width, number = (4, "<I") if large else (2, "<H")
    (count,) = struct.unpack_from(number, data, at)
    place = at + 2 * width
    keys = []
    if is_object:
        for _ in range(count):
            (start,) = struct.unpack_from(number, data, place)
            (length,) = struct.unpack_from("<H", data, place + width)
            keys.append(encode_basestring(data[at + start : at + start + length].decode()))
            place += width + 2
    values = []
    for _ in range(count):
        one = data[place]
        start = place + 1 if one in _INLINE[large] else at + struct.unpack_from(number, data, place + 1)[0]
        values.append(_value(one, data, start))
        place += 1 + width
    if is_object:
        return f"{{{', '.join(f'{key}: {value}' for key, value in zip(keys, values, strict=True))}}}"
    return f"[{', '.join(values)}]"


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length in seven bits a byte, and where it ends."""
    length = shift = 0
    while True:
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return length, at


def _opaque(data: bytes, at: int) -> str:
    """A value of a type that JSON lacks."""
    kind = data[at]
    length, at = _length(data, at + 1)
    content = data[at : at + length]
    if kind == _DECIMAL:
        return decimal_text(content, 2, content[0], content[1])
    if kind in (_DATE, _DATETIME, _TIMESTAMP):
        return f'"{packed_moment(struct.unpack("<q", content)[0], date=kind == _DATE)}"'
    if kind == _TIME:
        return f'"{packed_time(struct.unpack("<q", content)[0])}"'
    return f'"base64:type{kind}:{b64encode(content).decode()}"'
