"""The 64-bit hash of a value, equal to Spark's `xxhash64` of the forms in `search.driver.entries` (XXH64, seed 42)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

from tidemark.search.model.paths import GRAM, ValueKind

__all__ = ["SCALE", "grams_of", "hash_of", "literal_parts"]

SCALE = 18  # digits behind the point of hashed decimals
_WIDE = Context(prec=60)  # more digits than any decimal of Spark
_SEED = 42
_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_EPOCH = date(1970, 1, 1).toordinal()
_EPOCH_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def hash_of(kind: ValueKind, value: Any) -> int:
    """The hash of a value, as a signed number of 64 bits. `value`: int, str, bytes, date, aware datetime or Decimal."""
    return _signed(_xxh64(_bytes_of(kind, value)))


def grams_of(pattern: str) -> frozenset[str]:
    """The runs of GRAM characters that each text of the pattern has."""
    parts = literal_parts(pattern)
    return frozenset(part[at : at + GRAM] for part in parts for at in range(len(part) - GRAM + 1))


def literal_parts(pattern: str) -> tuple[str, ...]:
    """The texts between the wildcards of a LIKE pattern without escapes."""
    return tuple(part for part in pattern.replace("_", "%").split("%") if part)


def _bytes_of(kind: ValueKind, value: Any) -> bytes:
    if kind is ValueKind.TEXT:
        return str(value).encode()
    if kind is ValueKind.BINARY:
        return bytes(value)
    if kind is ValueKind.DECIMAL:
        return _unscaled(value)
    return _whole(kind, value).to_bytes(8, "little", signed=True)


def _whole(kind: ValueKind, value: Any) -> int:
    if isinstance(value, date) and kind is ValueKind.DATE:
        return value.toordinal() - _EPOCH
    if kind is ValueKind.TIMESTAMP:
        since = value - _EPOCH_TIME
        return int(since.days * 86_400 + since.seconds) * 1_000_000 + int(since.microseconds)
    return int(value)


def _unscaled(value: Decimal) -> bytes:
    """The bytes of Java's BigInteger, of the value with SCALE digits behind the point."""
    number = int(value.scaleb(SCALE, _WIDE))
    bits = (number if number >= 0 else ~number).bit_length()
    return int.to_bytes(number, bits // 8 + 1, "big", signed=True)


def _xxh64(data: bytes) -> int:
    at, size = 0, len(data)
    if size >= 32:
        lanes = [_SEED + _P1 + _P2, _SEED + _P2, _SEED, _SEED - _P1]
        while at <= size - 32:
            lanes = [_round(lane & _MASK, _word(data, at + 8 * n, 8)) for n, lane in enumerate(lanes)]
            at += 32
        found = sum(_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (_SEED + _P5) & _MASK
    return _avalanche(_tail(data, at, (found + size) & _MASK))


def _tail(data: bytes, at: int, found: int) -> int:
    size = len(data)
    while at + 8 <= size:
        found = (_turned(found ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        found = (_turned(found ^ (_word(data, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found = _turned(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return found


def _avalanche(found: int) -> int:
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(number: int, by: int) -> int:
    number &= _MASK
    return (number << by | number >> 64 - by) & _MASK


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
