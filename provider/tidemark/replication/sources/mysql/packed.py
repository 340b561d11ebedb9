"""Numbers and moments as MySQL packs them into bytes, as texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

__all__ = ["decimal_of", "decimal_size", "decimal_text", "packed_moment", "packed_time"]

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_DIGITS = 9  # in four bytes


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a DECIMAL."""
    return sum(_BYTES_OF_DIGITS[count] for count in _groups(precision, scale))


def decimal_text(data: bytes, at: int, precision: int, scale: int) -> str:
    """Plain digits, with `scale` of them behind the point."""
    return decimal_of(precision, scale)(data, at)


@lru_cache
def decimal_of(precision: int, scale: int) -> Callable[[bytes, int], str]:
    """`decimal_text` of one type. The highest bit is set for a number that is not negative; of a negative one all
    others are turned over.
    """
    size = decimal_size(precision, scale)
    highest, ones = 1 << 8 * size - 1, (1 << 8 * size) - 1
    groups = [(8 * _BYTES_OF_DIGITS[count], count) for count in reversed(_groups(precision, scale))]

    def text(data: bytes, at: int) -> str:
        packed = int.from_bytes(data[at : at + size], "big") ^ highest
        negative = bool(packed & highest)
        packed = packed ^ ones if negative else packed
        digits = ""
        for bits, count in groups:
            digits = str(packed & (1 << bits) - 1).zfill(count) + digits
            packed >>= bits
        before = digits[: len(digits) - scale].lstrip("0") or "0"
        found = f"{before}.{digits[-scale:]}" if scale else before
        return f"-{found}" if negative else found

    return text


def _groups(precision: int, scale: int) -> tuple[int, ...]:
    """How many digits are in each group of bytes."""
    whole, more = divmod(precision - scale, _DIGITS)
    part, rest = divmod(scale, _DIGITS)
    return tuple(count for count in (more, *[_DIGITS] * whole, *[_DIGITS] * part, rest) if count)


def packed_moment(packed: int, *, date: bool) -> str:
    """A DATETIME of a JSON document: microseconds in the lowest 24 bits."""
    moment, micro = packed >> 24, packed & 0xFFFFFF
    days, clock = moment >> 17, moment & 0x1FFFF
    months = days >> 5
    day = f"{months // 13:04d}-{months % 13:02d}-{days & 31:02d}"
    return day if date else f"{day} {clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{micro:06d}"


def packed_time(packed: int) -> str:
    """A TIME of a JSON document."""
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    clock, micro = packed >> 24, packed & 0xFFFFFF
    return f"{sign}{clock >> 12 & 0x3FF:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{micro:06d}"
