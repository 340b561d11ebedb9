"""Names of stages, file formats and pipes: in any case, or exact in quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

from tidemark.errors import InvalidArgument
from tidemark.sql.alike import alike
from tidemark.sql.like import like_pattern

__all__ = ["in_order", "key_of", "known_names", "listed", "name_parts", "require_one_way"]

_LONGEST = 255
_MOST_PARTS = 3
_SHOWN = 10
_PART = re.compile(r'"(?P<double>(?:[^"]|"")+)"|`(?P<back>(?:[^`]|``)+)`|(?P<plain>[^."`@/]+)')


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def name_parts(name: str, argument: str = "name") -> tuple[str, ...]:
    """One to three parts without their quotes, as they were written. Raises InvalidArgument."""
    return tuple(text for text, _ in _parts(name, argument))


def key_of(name: str, argument: str = "name") -> str:
    """The identity of a name. Unquoted parts are in upper case, and parts in quotes as they are. Raises
    InvalidArgument.
    """
    folded = (text if exact else text.upper() for text, exact in _parts(name, argument))
    return ".".join('"' + text.replace('"', '""') + '"' if re.search(r'[."]', text) else text for text in folded)


def in_order(name: str) -> tuple[str, ...]:
    """The key by which lists of names are sorted, in any case and without quotes."""
    return tuple(part.casefold() for part in name_parts(name))


def known_names(name: str, names: Iterable[str]) -> str:
    """The names that are similar to `name`, or else the first of all names; `none` without any."""
    found = sorted(names, key=str.casefold)
    shown = alike(name, found) or found[:_SHOWN]
    more = ", …" if len(shown) < len(found) else ""
    return ", ".join(shown) + more or "none"


def listed(found: Iterable[Named], like: str | None) -> tuple[Named, ...]:
    """Those whose last part fits the pattern of LIKE, in any case; all without a pattern."""
    if like is None:
        return tuple(found)
    pattern = like_pattern(like)
    return tuple(one for one in found if pattern.fullmatch(name_parts(one.name)[-1]))


def require_one_way(*, or_replace: bool, if_not_exists: bool) -> None:
    """Nothing, or InvalidArgument if an existing object were both replaced and kept."""
    if or_replace and if_not_exists:
        raise InvalidArgument(argument="or_replace", value=True, problem="it contradicts if_not_exists")


def _parts(name: str, argument: str) -> tuple[tuple[str, bool], ...]:
    text = name.strip() if isinstance(name, str) else ""
    if not text or len(text) > _LONGEST or not text.isprintable():
        problem = f"a name has 1 to {_LONGEST} printable characters"
        raise InvalidArgument(argument=argument, value=name, problem=problem)
    found: list[tuple[str, bool]] = []
    at = 0
    while (part := _PART.match(text, at)) is not None:
        plain = part["plain"]
        quoted = (part["double"] or "").replace('""', '"') or (part["back"] or "").replace("``", "`")
        found.append((quoted, True) if plain is None else (plain.strip(), False))
        at = part.end() + 1
        if part.end() == len(text) or text[part.end()] != ".":
            break
    odd = part is None or part.end() != len(text) or len(found) > _MOST_PARTS
    if odd or not all(one.strip(".") for one, _ in found):
        problem = "a name has up to three parts with dots between them; other characters need double quotes"
        raise InvalidArgument(argument=argument, value=name, problem=problem)
    return tuple(found)
