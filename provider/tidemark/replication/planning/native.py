"""Types in the words of a source: which changes of a column's type leave every value the text that it was."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["holds_all"]

_LABELLED = re.compile(r"(enum|set)\((.*)\)", re.S)
_TYPE = re.compile(r"([a-z][a-z ]*[a-z])(?:\((\d+)(?:,(-?\d+))?\))?((?: with(?:out)? time zone)?)((?:\[\])*)")
_ANY = 1 << 30  # more than any length
_SAME = {"varchar": "character varying", "decimal": "numeric"}
_BY_LENGTH = ("character varying", "timestamp", "time", "bit varying", "datetime", "varbinary")
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64}
_WHOLE = {  # the least and the greatest value
    **{name: (-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in _BITS.items()},
    **{f"{name} unsigned": (0, (1 << bits) - 1) for name, bits in _BITS.items()},
}
_TEXTS = {"tinytext": 1, "text": 2, "mediumtext": 3, "longtext": 4}
_BLOBS = {"tinyblob": 1, "blob": 2, "mediumblob": 3, "longblob": 4}


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
    labels, more_labels = _LABELLED.fullmatch(old), _LABELLED.fullmatch(new)
    if labels is not None and more_labels is not None:
        return labels[1] == more_labels[1] and f"{more_labels[2]},".startswith(f"{labels[2]},")
    before, after = _parsed(old), _parsed(new)
    if before is None or after is None or before.more != after.more:
        return False
    if before.base in _WHOLE and after.base in _WHOLE:
        (least, most), (lower, higher) = _WHOLE[before.base], _WHOLE[after.base]
        return lower <= least and most <= higher
    return _holds_texts(before, after) if before.base != after.base else _holds_lengths(before, after)


def _holds_texts(before: _Native, after: _Native) -> bool:
    for sizes in (_TEXTS, _BLOBS):
        if before.base in sizes and after.base in sizes:
            return sizes[before.base] <= sizes[after.base]
    return after.base == "text" and before.base == "character varying"


def _holds_lengths(before: _Native, after: _Native) -> bool:
    """`time` without a zone is that of a MySQL, whose text has every digit of a second."""
    if after.length < before.length or before.base not in ("numeric", *_BY_LENGTH):
        return False
    if before.base == "numeric":
        return after.length == _ANY or before.scale == after.scale
    return before.base != "time" or bool(before.more[0])


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
