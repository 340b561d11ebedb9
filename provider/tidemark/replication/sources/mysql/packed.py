"""Numbers and moments as MySQL packs them into bytes, as texts."""

from __future__ import annotations

__all__ = ["decimal_size", "decimal_text", "packed_moment", "packed_time"]

_BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_DIGITS = 9  # in four bytes


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a DECIMAL."""
    whole, more = divmod(precision - scale, _DIGITS)
    part, rest = divmod(scale, _DIGITS)
    return 4 * (whole + part) + _BYTES_OF_DIGITS[more] + _BYTES_OF_DIGITS[rest]


def decimal_text(data: bytes, at: int, precision: int, scale: int) -> str:
    """Plain digits, with `scale` of them behind the point."""
    content = bytearray(data[at : at + decimal_size(precision, scale)])
    negative = not content[0] & 0x80
    content[0] ^= 0x80
    if negative:
        content = bytearray(byte ^ 0xFF for byte in content)
    whole, more = divmod(precision - scale, _DIGITS)
    part, rest = divmod(scale, _DIGITS)
    digits, place = [], 0
    for count in (more, *[_DIGITS] * whole, *[_DIGITS] * part, rest):
        size = _BYTES_OF_DIGITS[count]
        if size:
            digits.append(str(int.from_bytes(content[place : place + size], "big")).zfill(count))
        place += size
    text = "".join(digits)
    before = text[: len(text) - scale].lstrip("0") or "0"
    found = f"{before}.{text[len(text) - scale :]}" if scale else before
    return f"-{found}" if negative else found


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
