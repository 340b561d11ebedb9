"""Parts of lists: at most this many rows that follow a cursor, which is the key of a row as a word.

A row that comes, goes or moves between two parts moves no other row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from tidemark.control.words import value_of, word_of
from tidemark.errors import CursorInvalid

__all__ = ["FIRST_PART", "Key", "Kind", "ListOrder", "Listed", "Ordered", "Part", "cursor_after", "key_of", "list_of"]

Key = tuple[Any, ...]
"""The values by which a row has its place in a list: times, integers, texts, and None."""

Kind = type | UnionType
"""The type of a value of a key, such as `datetime | None`."""

Item = TypeVar("Item")

_MOST = 1 << 62  # far beyond all numbers of a store, which has room for their neighbours, too


@dataclass(frozen=True)
class Part:
    """A part of a list: at most `limit` rows that follow the cursor, without the first `offset` of them."""

    limit: int = 50
    offset: int = 0
    cursor: str | None = None


FIRST_PART = Part()


@dataclass(frozen=True)
class Ordered:
    """A column of an order. NULL is last in either direction."""

    column: sa.ColumnElement[Any]
    kind: Kind
    descending: bool = False


@dataclass(frozen=True)
class ListOrder:
    """An order that decides about every row of a list. `name`: of the list and the order, which a cursor names."""

    name: str
    columns: tuple[Ordered, ...]

    @property
    def ordering(self) -> list[sa.ColumnElement[Any]]:
        """The order as a query has it."""
        return [(one.column.desc() if one.descending else one.column.asc()).nulls_last() for one in self.columns]

    @property
    def key(self) -> list[sa.Label[Any]]:
        """The columns of the key. `cursor` needs them in its rows."""
        return [one.column.label(f"key_{number}") for number, one in enumerate(self.columns)]

    def taken(self, query: sa.Select[Any], part: Part) -> sa.Select[Any]:
        """The query for that part, and for one row more, which exists if others follow. Raises CursorInvalid."""
        if part.cursor is not None:
            query = query.where(self._beyond(key_of(part.cursor, self.name, [one.kind for one in self.columns])))
        return query.order_by(*self.ordering).limit(part.limit + 1).offset(part.offset)

    def cursor(self, rows: Sequence[sa.RowMapping], limit: int) -> str | None:
        """The cursor for what follows the first `limit` of these rows; None if they are all."""
        if len(rows) <= limit:
            return None
        return cursor_after(self.name, tuple(rows[limit - 1][f"key_{number}"] for number in range(len(self.columns))))

    def _beyond(self, key: Key) -> sa.ColumnElement[bool]:
        same: list[sa.ColumnElement[bool]] = []
        found: list[sa.ColumnElement[bool]] = []
        for one, value in zip(self.columns, key, strict=True):
            found.append(sa.and_(*same, _follows(one, value)))
            same.append(one.column.is_(None) if value is None else one.column == _literal(one, value))
        return sa.or_(*found)


@dataclass(frozen=True)
class Listed(Generic[Item]):
    """A list in memory. `name`: of the list and its order. `place`: the key of an item, which has no None. `kinds`: the
    types of its values.
    """

    name: str
    kinds: tuple[type, ...]
    place: Callable[[Item], Key]

    def taken(self, items: Iterable[Item], part: Part) -> tuple[tuple[Item, ...], str | None]:
        """That part of the items by their places, and the cursor for what follows. Raises CursorInvalid."""
        after = () if part.cursor is None else key_of(part.cursor, self.name, self.kinds)
        found = sorted((item for item in items if self.place(item) > after), key=self.place)
        end = part.offset + part.limit
        return tuple(found[part.offset : end]), (
            cursor_after(self.name, self.place(found[end - 1])) if len(found) > end else None
        )


def cursor_after(of: str, key: Key) -> str:
    """The cursor for what follows the row with this key in the list `of`, whose name includes its order."""
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in key]
    return word_of(json.dumps([of, *plain]))


def list_of(cursor: str) -> str:
    """The name of the list that gave the cursor. Raises CursorInvalid for a text that no list has given."""
    try:
        name, *_ = value_of(cursor)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise CursorInvalid(cursor=cursor) from error
    return str(name)


def key_of(cursor: str, of: str, kinds: Sequence[Kind]) -> Key:
    """The key in a cursor of the list `of`. Raises CursorInvalid for a text that this list has not given."""
    try:
        name, *plain = value_of(cursor)
        if name != of or len(plain) != len(kinds):
            raise ValueError("it is one of another list")
        return tuple(_typed(kind, value) for kind, value in zip(kinds, plain, strict=True))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise CursorInvalid(cursor=cursor) from error


def _follows(one: Ordered, value: Any) -> sa.ColumnElement[bool]:
    if value is None:
        return sa.false()
    known = _literal(one, value)
    further = one.column < known if one.descending else one.column > known
    return further | one.column.is_(None) if isinstance(None, one.kind) else further


def _literal(one: Ordered, value: Any) -> sa.BindParameter[Any]:
    """PostgreSQL refuses an integer that is beyond those of the column."""
    return sa.literal(value, sa.BigInteger() if isinstance(value, int) else one.column.type)


def _typed(kind: Kind, value: Any) -> Any:
    if value is None or type(value) is int:
        if not isinstance(value, kind) or not -_MOST <= (value or 0) < _MOST:
            raise ValueError("it has a value of another type")
        return value
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("it has a value of another type")
    found = value if isinstance(value, kind) else datetime.fromisoformat(value)
    if not isinstance(found, kind) or (isinstance(found, datetime) and found.tzinfo is None):
        raise ValueError("it has a value of another type")
    return found.astimezone(UTC) if isinstance(found, datetime) else found
