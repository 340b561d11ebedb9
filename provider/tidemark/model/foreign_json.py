"""JSON that others may have written: texts in a table's log, to which any program may write.

One module reads them all, so that no text can stop a stream. A text that is no JSON, is nested too deeply or has
another form than ours is not ours. If correctness depends on the text, the caller then chooses the safe side.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from tidemark.model.codec import from_plain

__all__ = ["exact_number", "foreign_object", "foreign_value", "parsed", "parsed_line", "plain_text", "whole_number"]

T = TypeVar("T")
_INVALID = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
_WHOLE = re.compile("[0-9]{1,18}")  # so it has 64 bits
_BITS = 2**63
_MOST_DIGITS = 200_000  # before or behind the point; PostgreSQL's numeric has 131,072
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BEYOND = "it has a number beyond all bounds"
_hints = functools.cache(typing.get_type_hints)


def parsed(
    text: str | bytes, *, number: Callable[[str], Any] | None = None, fraction: Callable[[str], Any] | None = None
) -> Any:
    """The value of a required text. Raises ValueError, even if the text is nested too deeply or has a number that
    `number` or `fraction` refuses.

    `number`: a function from the digits of a number to its value. `fraction`: one for numbers with a point or an
    exponent only.
    """
    try:
        return json.loads(text, parse_int=number, parse_float=fraction or number, parse_constant=number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ArithmeticError as error:
        raise ValueError(_BEYOND) from error


def parsed_line(
    line: str | bytes, *, number: Callable[[str], Any] | None = None, fraction: Callable[[str], Any] | None = None
) -> Any:
    """`parsed`, of a text whose content a table gets. So it raises ValueError for bytes that are no UTF-8, and for half
    of a surrogate pair.
    """
    text = line if isinstance(line, str) else line.decode("utf-8-sig")
    found = parsed(text, number=number, fraction=fraction)
    if _SURROGATE.search(text):
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    return found


def exact_number(text: str) -> Decimal:
    """The number with each digit, for `parsed`. Raises ValueError for an exponent beyond all bounds: as a whole number
    or as plain digits, `1e999999999` would fill the memory.
    """
    try:
        found = Decimal(text)
    except ArithmeticError as error:
        raise ValueError(_BEYOND) from error
    if abs(found.adjusted()) > _MOST_DIGITS:
        raise ValueError(_BEYOND)
    return found


def foreign_object(text: str | bytes | None) -> dict[str, Any]:
    """The JSON object in the text; empty if the text has none or cannot be read."""
    try:
        said = parsed(text or "")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def foreign_value(kind: type[T], text: str | None, name: str) -> T | None:
    """The dataclass `kind` under `name` in the text's object. None if there is no value of exactly that form, down to
    the types of its parts.
    """
    try:
        value = from_plain(kind, foreign_object(text)[name])
        return value if _is_of(kind, value) else None
    except _INVALID:
        return None


def whole_number(text: object) -> int | None:
    """The number that a text has in plain digits, from 0 on; None for any other text."""
    return int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else None


def plain_text(text: str) -> str:
    """The text without lone surrogates, which JSON can have, but neither UTF-8 nor a database."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _is_of(kind: Any, value: Any) -> bool:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(part, value) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(parts[0], item) for item in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(_is_of(parts[1], item) for item in value.values())
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return isinstance(value, kind) and all(_is_of(hint, getattr(value, name)) for name, hint in hints.items())
    if kind is int:
        return type(value) is int and abs(value) < _BITS
    return isinstance(value, kind)
