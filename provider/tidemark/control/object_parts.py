"""Parts of a list of objects in memory, as logs have judged them. A list has the orders of a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tidemark.control.cursors import Key, Kind, Part, cursor_after, key_of
from tidemark.control.object_kinds import Severity
from tidemark.control.object_list import ObjectOrder, ShownObject

__all__ = ["part_of_objects"]

_WORST = tuple(Severity)
_KINDS: dict[ObjectOrder, Kind] = {
    ObjectOrder.STATE: int,
    ObjectOrder.KIND: str,
    ObjectOrder.NAME: str,
    ObjectOrder.SINCE: datetime | None,
}


def part_of_objects(
    found: Sequence[ShownObject], sort: ObjectOrder, part: Part, *, descending: bool
) -> tuple[tuple[ShownObject, ...], str | None]:
    """That part, and the cursor for what follows; None on the last one. Kind and name decide between equals. A time
    that is not known is last in either direction. Raises CursorInvalid.
    """
    order = f"judged objects {sort} {descending}"
    rows = sorted(found, key=_between_equals)
    known = [one for one in rows if _first(one, sort) is not None]
    known.sort(key=lambda one: _first(one, sort), reverse=descending)
    rows = known + [one for one in rows if _first(one, sort) is None]
    if part.cursor is not None:
        after = key_of(part.cursor, order, (_KINDS[sort], str, str, str))
        rows = [one for one in rows if _follows(_key(one, sort), after, descending=descending)]
    end = part.offset + part.limit
    return tuple(rows[part.offset : end]), (cursor_after(order, _key(rows[end - 1], sort)) if len(rows) > end else None)


def _first(one: ShownObject, sort: ObjectOrder) -> Any:
    if sort is ObjectOrder.STATE:
        return _WORST.index(one.severity)
    return {ObjectOrder.KIND: one.kind, ObjectOrder.NAME: one.name.casefold(), ObjectOrder.SINCE: one.since}[sort]


def _between_equals(one: ShownObject) -> tuple[str, str, str]:
    return one.kind, one.name.casefold(), one.uid


def _key(one: ShownObject, sort: ObjectOrder) -> Key:
    return (_first(one, sort), *_between_equals(one))


def _follows(key: Key, after: Key, *, descending: bool) -> bool:
    (first, *rest), (before, *equals) = key, after
    if first == before:
        return rest > equals
    if first is None or before is None:
        return first is None
    return bool(first < before if descending else first > before)
