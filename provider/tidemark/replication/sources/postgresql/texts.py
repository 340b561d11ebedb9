"""How a value's text, as PostgreSQL writes it, becomes the canonical text of its unified type.

PostgreSQL writes it under the settings of our sessions: ISO dates, UTC, hexadecimal bytea, shortest exact floats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemark.replication.model.replication import Column, TypeKind, UnifiedType
from tidemark.replication.planning.events import TextOf, json_text

__all__ = ["array_text", "canonical", "canonical_of"]

_BOOLEANS: Mapping[str, str] = {"t": "true", "f": "false"}
_BOXES = "box[]"  # the one array whose items are not divided by commas
_ESCAPED = re.compile(r"\\(.)", re.S)


def canonical(kind: UnifiedType, *, delimiter: str = ",") -> TextOf | None:
    """The function from the one text to the other; None where they are the same.

    `delimiter`: between the items of an array, which is ";" for those of boxes.
    """
    match kind.kind:
        case TypeKind.BOOLEAN:
            return _BOOLEANS.__getitem__
        case TypeKind.BYTES:
            return _without_prefix
        case TypeKind.ARRAY:
            return array_text(None if kind.item is None else canonical(kind.item), delimiter)
        case _:
            return None


def canonical_of(column: Column) -> TextOf | None:
    """`canonical` of the column's values."""
    return canonical(column.type, delimiter=";" if column.native == _BOXES else ",")


def array_text(item: TextOf | None = None, delimiter: str = ",") -> TextOf:
    """From `{1,NULL,"a b"}` to `["1",null,"a b"]`: items as strings through `item`, or null; arrays in it as such.

    Bounds that do not begin at 1 are left out: `[0:1]={5,6}` is `["5","6"]`.
    """
    token = re.compile(rf'"((?:[^"\\]|\\.)*)"|([^"{{}}{delimiter}]+)|[{{}}{delimiter}]', re.S)
    brackets = {"{": "[", "}": "]", delimiter: ","}

    def token_text(found: re.Match[str]) -> str:
        quoted, bare = found.groups()
        if bare == "NULL":
            return "null"
        if bare is None and quoted is None:
            return brackets[found[0]]
        text = bare if quoted is None else _ESCAPED.sub(r"\1", quoted)
        return json_text(text if item is None else item(text))

    def array(text: str) -> str:
        return token.sub(token_text, text[text.index("=") + 1 :] if text.startswith("[") else text)

    return array


def _without_prefix(text: str) -> str:
    return text[2:]
