"""JSON texts for VARIANT, and the values of texts for ARRAY, MAP and STRUCT, by the rules of the source system."""

from __future__ import annotations

import json
import re
from typing import Any

from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.json_text import json_text, object_of
from tidemark.channels.planning.values.problem import ValueProblem, shown
from tidemark.channels.planning.values.texts import MOST_BYTES
from tidemark.model.foreign_json import exact_number

__all__ = ["json_value", "to_variant"]

_MOST_BYTES = MOST_BYTES - 64
_ESCAPES = re.compile(r"\\u(0000|d[89a-f])", re.IGNORECASE)  # a NUL, or a half of a character that may lack the other


def to_variant(value: Any) -> str | None:
    """The JSON text of a value. A text must be JSON itself, and keeps its digits; an empty one is NULL.

    An object with a key twice is refused. Keys lose NULs at their end first.
    """
    if isinstance(value, str):
        if not value.strip():
            return None
        found = json_value(value)
        text = _written(found) if _ESCAPES.search(value) else value
    else:
        text = _written(value)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(text)} has an unpaired surrogate") from None
    if size > _MOST_BYTES:
        problem = f"the value has {size:,} bytes as JSON, and at most {_MOST_BYTES:,} are taken"
        raise ValueProblem(RowErrorKind.TOO_LARGE, problem)
    return text


def json_value(text: str) -> Any:
    """The value of a JSON text; numbers with a point or an exponent are decimals."""
    try:
        return json.loads(text, parse_float=exact_number, parse_constant=_refused, object_pairs_hook=object_of)
    except RecursionError:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, "the JSON is nested too deeply") from None
    except ValueProblem:
        raise
    except ValueError as error:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(text)} is not JSON: {error}") from None


def _refused(word: str) -> Any:
    raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{word} is not JSON")


def _written(value: Any) -> str:
    try:
        return json_text(value)
    except RecursionError:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, "the value is nested too deeply") from None
