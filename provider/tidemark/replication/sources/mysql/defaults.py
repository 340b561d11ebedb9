"""The value that rows have in a column that was added after them: its default, as a canonical text. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from tidemark.replication.sources.mysql.alterations import AddedColumn
from tidemark.replication.sources.mysql.json_binary import double_text
from tidemark.replication.sources.mysql.types import base_of

__all__ = ["Fill", "fill_as_added", "fill_of"]

_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_MOMENTS = {
    "date": "0000-00-00",
    "datetime": "0000-00-00 00:00:00",
    "timestamp": "0000-00-00 00:00:00",
    "time": "00:00:00",
}
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'", re.S)
_ESCAPED = re.compile(r"''|\\.", re.S)
_UNESCAPED = {r"\0": "\0", r"\n": "\n", r"\r": "\r", r"\Z": "\x1a"}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_MOMENT = re.compile(r"(?P<whole>[0-9:\- ]+?)(?:\.(?P<part>\d+))?")


_AS_IT_IS = (  # literals that every server and session takes for the same value
    (_WHOLE - {"year"}, re.compile(r"-?(?:0|[1-9]\d*)")),
    (frozenset({"year"}), re.compile(r"\d{4}")),
    (frozenset({"decimal", "double"}), re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")),
    (_TEXTS - {"enum", "set"}, re.compile(r"|[ -\[\]-~]*[!-\[\]-~]")),  # ASCII without a backslash, no space at its end
    (frozenset({"date"}), re.compile(r"\d{4}-\d\d-\d\d")),
    (frozenset({"datetime"}), re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")),
    (frozenset({"time"}), re.compile(r"\d\d:\d\d:\d\d")),
)


class Fill(NamedTuple):
    """`text`: canonical, None for NULL; `sure`: whether all such rows have it."""

    text: str | None
    sure: bool = True


_UNKNOWN = Fill(None, sure=False)


def fill_of(native: str, default: str | None, extra: str, *, nullable: bool, quotes: bool) -> Fill:
    """`default`: as `information_schema.COLUMNS` has it. `quotes`: texts in it have quotes, and a text without them is
    an expression, as in a MariaDB. A MySQL has texts as they are, and names an expression in `extra`.

    Of a NOT NULL column without a default it is the implicit one of its type, as ALTER TABLE fills it in.
    """
    base, more = base_of(native), extra.upper()
    if "GENERATED" in more or "AUTO_INCREMENT" in more or "PERSISTENT" in more or "VIRTUAL" in more:
        return _UNKNOWN
    if default is None or (quotes and default == "NULL"):
        return Fill(None) if nullable else _implicit(native, base)
    if not quotes:
        return _literal(native, base, default)
    if _QUOTED.fullmatch(default):
        return _literal(native, base, _ESCAPED.sub(lambda found: _UNESCAPED.get(found[0], found[0][1:]), default[1:-1]))
    return _UNKNOWN if base in _TEXTS else _literal(native, base, default)


def fill_as_added(native: str, added: AddedColumn, now: Fill) -> Fill:
    """By the statement that added the column. A default may have changed since, so `now`, that of the catalog, only
    confirms a literal whose meaning depends on the session.
    """
    base = base_of(native)
    if not added.constant:
        return _UNKNOWN
    if added.plain:
        return Fill(None) if base != "timestamp" or now.sure else _UNKNOWN  # some have the current time by themselves
    if added.default is None:
        return _implicit(native, base) if base != "timestamp" or now.sure else _UNKNOWN
    found = _literal(native, base, added.default)
    as_it_is = any(base in bases and form.fullmatch(added.default) for bases, form in _AS_IT_IS)
    return found if as_it_is or (found.sure and found == now) else _UNKNOWN


def _implicit(native: str, base: str) -> Fill:
    if base in _TEXTS:
        return Fill(_first_of(native)) if base == "enum" else Fill("")
    if base in _MOMENTS:
        return _literal(native, base, _MOMENTS[base])
    if base in ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"):
        return Fill("00" * int(native[7:-1])) if base == "binary" else Fill("")
    return _literal(native, base, "0")


def _literal(native: str, base: str, text: str) -> Fill:
    if base in _TEXTS:
        return Fill(text)
    if base in _WHOLE and re.fullmatch(r"-?\d+", text):
        return Fill(str(int(text)))
    if base == "decimal" and _NUMBER.fullmatch(text):
        return _decimal(native, text)
    if base in ("float", "double") and _NUMBER.fullmatch(text):
        return Fill(double_text(float(text)))
    if base in _MOMENTS and (found := _MOMENT.fullmatch(text)):
        return _moment(native, base, found["whole"], found["part"] or "")
    return _UNKNOWN


def _decimal(native: str, text: str) -> Fill:
    scale = int(native.partition(",")[2].partition(")")[0] or 0)
    whole, _, part = text.partition(".")
    if len(part) > scale:
        return _UNKNOWN
    return Fill(f"{whole}.{part.ljust(scale, '0')}" if scale else whole)


def _moment(native: str, base: str, whole: str, part: str) -> Fill:
    digits = int(native.partition("(")[2].rstrip(")") or 0) if "(" in native else 0
    text = whole if base == "date" or not digits else f"{whole}.{part.ljust(digits, '0')[:digits]}"
    return Fill(f"{text}+00" if base == "timestamp" else text)


def _first_of(native: str) -> str:
    found = re.search(r"'((?:[^']|'')*)'", native)
    return "" if found is None else found[1].replace("''", "'")
