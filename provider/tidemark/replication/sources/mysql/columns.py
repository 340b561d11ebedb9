"""Columns of a table as the log has them: their types in normal words, and readers of their values.

A reader takes the bytes of an event and a place in it. It gives the canonical text of the value, and where it ends.
"""

from __future__ import annotations

import ipaddress
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from tidemark.replication.sources.mysql.charsets import BINARY, Charsets, Decoder, decoder_of
from tidemark.replication.sources.mysql.json_binary import double_text, json_of
from tidemark.replication.sources.mysql.packed import decimal_of, decimal_size

__all__ = ["LoggedColumn", "Reader", "native_of", "reader_of"]

Reader: TypeAlias = Callable[[bytes, int], tuple[str, int]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = {1: ("tinyint", 1), 2: ("smallint", 2), 9: ("mediumint", 3), 3: ("int", 4), 8: ("bigint", 8)}
FLOAT, DOUBLE, TIMESTAMP, DATE, TIME, DATETIME, YEAR, NEWDATE, VARCHAR, BIT = 4, 5, 7, 10, 11, 12, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2, VECTOR, JSON, DECIMAL, ENUM, SET = 17, 18, 19, 242, 245, 246, 247, 248
BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255
_LARGE = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_PLAIN = {DATE: "date", NEWDATE: "date", YEAR: "year", JSON: "json", GEOMETRY: "geometry", VECTOR: "vector",
          TIMESTAMP: "timestamp(0)", DATETIME: "datetime(0)", TIME: "time(0)"}  # fmt: skip
_FRACTIONAL = {TIMESTAMP2: "timestamp", DATETIME2: "datetime", TIME2: "time"}
_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r"})
_OF_THE_CATALOG = {("binary(16)", "uuid"), ("binary(16)", "inet6"), ("binary(4)", "inet4")}


@dataclass(frozen=True)
class LoggedColumn:
    """`kind`: its type's number, `meta`: what the log says of the type. `values`: labels of an ENUM or SET, as bytes.
    `known_as`: the type that the catalog has for a column which the log has as BINARY only.
    """

    kind: int
    meta: tuple[int, int]
    name: str = ""
    unsigned: bool = False
    collation: int = BINARY
    values: tuple[bytes, ...] = ()
    known_as: str | None = None

    @property
    def length(self) -> int:
        """Bytes of a CHAR or VARCHAR at most."""
        first, second = self.meta
        if self.kind == VARCHAR:
            return first | second << 8
        return second | ((first & 0x30) ^ 0x30) << 4 if self.kind in (STRING, VAR_STRING) else 0

    def refined(self, native: str) -> LoggedColumn:
        """With the type that the catalog has for it, where the log does not have all of the type."""
        return replace(self, known_as=native) if self._pair(native) in _OF_THE_CATALOG else self

    def _pair(self, native: str) -> tuple[str, str]:
        binary = self.kind == STRING and self.collation == BINARY
        return (f"binary({self.length})" if binary else "", native)


def native_of(column: LoggedColumn, charsets: Charsets) -> str:
    """The type in the words of `normal_type`. Raises LookupError for a collation or a type that is not known."""
    if column.known_as is not None:
        return column.known_as
    kind, (first, second) = column.kind, column.meta
    sign = " unsigned" if column.unsigned else ""
    if kind in (ENUM, SET):
        decode = decoder_of(charsets[column.collation].name)
        labels = ",".join(f"'{decode(value).translate(_ESCAPES)}'" for value in column.values)
        return f"{'enum' if kind == ENUM else 'set'}({labels})"
    simple = {
        **{whole: f"{name}{sign}" for whole, (name, _) in _WHOLE.items()},
        **{moment: f"{name}({first})" for moment, name in _FRACTIONAL.items()},
        **_PLAIN,
        FLOAT: f"float{sign}",
        DOUBLE: f"double{sign}",
        DECIMAL: f"decimal({first},{second}){sign}",
        BIT: f"bit({second * 8 + first})",
    }
    return simple[kind] if kind in simple else _native_text(column, charsets)


def _native_text(column: LoggedColumn, charsets: Charsets) -> str:
    binary = column.collation == BINARY
    if column.kind == BLOB:
        return f"{_LARGE[column.meta[0]]}{'blob' if binary else 'text'}"
    varying = {VARCHAR: ("varbinary", "varchar"), VAR_STRING: ("varbinary", "varchar"), STRING: ("binary", "char")}
    if column.kind not in varying:
        raise LookupError(f"column {column.name} has a type, {column.kind}, that is not known")
    length = column.length if binary else column.length // charsets[column.collation].widest
    name = varying[column.kind][0 if binary else 1]
    return f"{name}({length})" if length else name


def reader_of(column: LoggedColumn, charsets: Charsets) -> Reader:
    """Raises LookupError for a type or a character set that cannot be read."""
    kind, (first, second) = column.kind, column.meta
    if kind in _WHOLE:
        return _whole(_WHOLE[kind][1], not column.unsigned)
    if kind == DECIMAL:
        size, digits = decimal_size(first, second), decimal_of(first, second)
        return lambda data, at: (digits(data, at), at + size)
    if kind in _FRACTIONAL:
        return {TIMESTAMP2: _timestamp2, DATETIME2: _datetime2, TIME2: _time2}[kind](first)
    if kind == BIT:
        size = (second * 8 + first + 7) // 8
        return lambda data, at: (str(int.from_bytes(data[at : at + size], "big")), at + size)
    if kind in (ENUM, SET):
        decode = decoder_of(charsets[column.collation].name)
        labels = [decode(value) for value in column.values]
        return _enum(labels, second) if kind == ENUM else _set(labels, second)
    if kind == JSON:
        return _sized(first, json_of)
    if kind in (GEOMETRY, VECTOR):
        return _sized(first, (lambda value: value[4:].hex()) if kind == GEOMETRY else bytes.hex)
    return _SIMPLE[kind] if kind in _SIMPLE else _text_reader(column, charsets)


def _text_reader(column: LoggedColumn, charsets: Charsets) -> Reader:
    if column.kind == BLOB:
        size = column.meta[0]
    elif column.kind in (VARCHAR, VAR_STRING, STRING):
        size = 2 if column.length > 255 else 1
    else:
        raise LookupError(f"column {column.name} has a type, {column.kind}, that cannot be read")
    if column.known_as is not None:
        return _sized(size, _KNOWN_AS[column.known_as])
    if column.collation != BINARY:
        return _sized(size, decoder_of(charsets[column.collation].name))
    if column.kind != STRING:
        return _sized(size, bytes.hex)
    width = column.length
    return _sized(size, lambda value: value.ljust(width, b"\0").hex())  # the log leaves out zeros at the end


def _whole(size: int, signed: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        end = at + size
        return str(int.from_bytes(data[at:end], "little", signed=signed)), end

    return read


def _sized(size: int, text: Decoder) -> Reader:
    """A value behind its length, which has `size` bytes."""

    def read(data: bytes, at: int) -> tuple[str, int]:
        start = at + size
        end = start + int.from_bytes(data[at:start], "little")
        return text(data[start:end]), end

    return read


def _enum(labels: Sequence[str], size: int) -> Reader:
    """The number 0 is that of a value which was not valid: an empty text."""
    texts = ["", *labels]
    return lambda data, at: (texts[int.from_bytes(data[at : at + size], "little")], at + size)


def _set(labels: Sequence[str], size: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        mask = int.from_bytes(data[at : at + size], "little")
        return ",".join(label for bit, label in enumerate(labels) if mask >> bit & 1), at + size

    return read


def _float(data: bytes, at: int) -> tuple[str, int]:
    """The shortest digits that give the 32 bits back."""
    (value,) = struct.unpack_from("<f", data, at)
    for digits in (6, 7, 8, 9):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == data[at : at + 4]:
            break
    return double_text(float(text)), at + 4


def _double(data: bytes, at: int) -> tuple[str, int]:
    return double_text(struct.unpack_from("<d", data, at)[0]), at + 8


def _year(data: bytes, at: int) -> tuple[str, int]:
    return (str(1900 + data[at]) if data[at] else "0000"), at + 1


def _date(data: bytes, at: int) -> tuple[str, int]:
    packed = int.from_bytes(data[at : at + 3], "little")
    return f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}", at + 3


def _old_datetime(data: bytes, at: int) -> tuple[str, int]:
    """Before MySQL 5.6: digits, as a number."""
    digits = f"{int.from_bytes(data[at : at + 8], 'little'):014d}"
    day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{day} {digits[8:10]}:{digits[10:12]}:{digits[12:]}", at + 8


def _old_time(data: bytes, at: int) -> tuple[str, int]:
    value = int.from_bytes(data[at : at + 3], "little", signed=True)
    sign, value = ("-", -value) if value < 0 else ("", value)
    return f"{sign}{value // 10000:02d}:{value // 100 % 100:02d}:{value % 100:02d}", at + 3


def _old_timestamp(data: bytes, at: int) -> tuple[str, int]:
    return f"{_moment(int.from_bytes(data[at : at + 4], 'little'))}+00", at + 4


def _moment(seconds: int) -> str:
    if not seconds:
        return "0000-00-00 00:00:00"
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def _fraction(data: bytes, at: int, digits: int) -> tuple[str, int]:
    """Of a second, in its digits with a point before them."""
    if not digits:
        return "", at
    size = (digits + 1) // 2
    micro = int.from_bytes(data[at : at + size], "big") * 10 ** (6 - 2 * size)
    return f".{f'{micro:06d}'[:digits]}", at + size


def _timestamp2(digits: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        part, end = _fraction(data, at + 4, digits)
        return f"{_moment(int.from_bytes(data[at : at + 4], 'big'))}{part}+00", end

    return read


def _datetime2(digits: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        packed = int.from_bytes(data[at : at + 5], "big") - 0x8000000000
        part, end = _fraction(data, at + 5, digits)
        months = packed >> 22
        day = f"{months // 13:04d}-{months % 13:02d}-{packed >> 17 & 31:02d}"
        return f"{day} {packed >> 12 & 31:02d}:{packed >> 6 & 63:02d}:{packed & 63:02d}{part}", end

    return read


def _time2(digits: int) -> Reader:
    size = (digits + 1) // 2
    zero, mask = 0x800000 << 8 * size, (1 << 8 * size) - 1

    def read(data: bytes, at: int) -> tuple[str, int]:
        end = at + 3 + size
        packed = int.from_bytes(data[at:end], "big") - zero
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        clock, part = packed >> 8 * size, packed & mask
        micro = part * 10 ** (6 - 2 * size)
        more = f".{f'{micro:06d}'[:digits]}" if digits else ""
        return f"{sign}{clock >> 12 & 0x3FF:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}{more}", end

    return read


def _uuid(value: bytes) -> str:
    return str(uuid.UUID(bytes=value.ljust(16, b"\0")))


_SIMPLE: dict[int, Reader] = {
    FLOAT: _float,
    DOUBLE: _double,
    YEAR: _year,
    DATE: _date,
    NEWDATE: _date,
    DATETIME: _old_datetime,
    TIME: _old_time,
    TIMESTAMP: _old_timestamp,
}
_KNOWN_AS: dict[str, Decoder] = {
    "uuid": _uuid,
    "inet4": lambda value: str(ipaddress.IPv4Address(value.ljust(4, b"\0"))),
    "inet6": lambda value: _inet6(value.ljust(16, b"\0")),
}


def _inet6(value: bytes) -> str:
    """An address of IPv4 in one of IPv6 is written with points."""
    if value[:12] == bytes(10) + b"\xff\xff":
        return f"::ffff:{ipaddress.IPv4Address(value[12:])}"
    return str(ipaddress.IPv6Address(value))
