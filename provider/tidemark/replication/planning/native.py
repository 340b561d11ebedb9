"""Types in the words of a source: which changes of a column's type leave every value the text that it was."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["holds_all"]

_TYPE = re.compile(r"([a-z][a-z ]*[a-z])(?:\((\d+)(?:,(-?\d+))?\))?((?: with(?:out)? time zone)?)((?:\[\])*)")
_ANY = 1 << 30  # more than any length
_SAME = {"varchar": "character varying", "decimal": "numeric"}
_BY_LENGTH = ("character varying", "timestamp", "time", "bit varying")
_WHOLE = {"smallint": 5, "integer": 10, "bigint": 19}


@dataclass(frozen=True)
class _Native:
    """`numeric(9,2)`: base, length, scale. `more`: the text behind these, a time zone and brackets."""

    base: str
    length: int
    scale: int | None
    more: tuple[str, str]


def holds_all(old: str, new: str) -> bool:
    """Whether a column of type `old` that became one of `new` has the same texts as before. A conversion that is not
    known to keep them counts as another: `char(3)` to `text` takes blanks away, `timestamp` to `timestamp(0)` rounds.
    """
    if old == new:
        return True
    before, after = _parsed(old), _parsed(new)
    if before is None or after is None or before.more != after.more:
        return False
    if after.base == "text":
        return before.base == "character varying"
    if before.base in _WHOLE and after.base in _WHOLE:
        return _WHOLE[before.base] <= _WHOLE[after.base]
    if before.base != after.base or after.length < before.length:
        return False
    if before.base == "numeric":
        return after.length == _ANY or before.scale == after.scale
    return before.base in _BY_LENGTH


def _parsed(native: str) -> _Native | None:
    found = _TYPE.fullmatch(native)
    if found is None:
        return None
    base, length, scale, zone, items = found.groups()
    if zone == "" and (named := re.fullmatch(r"(.*?)( with(?:out)? time zone)", base)) is not None:
        base, zone = named.groups()
    known = _SAME.get(base, base)
    digits = _ANY if length is None else int(length)
    return _Native(known, digits, int(scale or 0) if known == "numeric" and length else None, (zone, items))
