"""A stream's offset over the commits of its table: the moves of the offset, and the versions that looks have seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_histories import AT, Chart, Field, HistoryPart, Point, Portion, Shape, Unit
from tidemark.streams.store.heads import HeadSeen, heads_in
from tidemark.streams.store.overview import NumberedMove, moves_in
from tidemark.streams.store.streams import lineage

__all__ = ["VERSIONS"]

_END = 1 << 62  # after all numbers
_LOOK, _MOVE = 0, 1

_Event = HeadSeen | NumberedMove


@dataclass(frozen=True)
class _Place:
    """The place of an event by numbers. No event is left out by them, even if a clock was wrong for a while.

    `move`, `look`: moves and looks with such a number or a higher one are the event itself, or are newer.
    """

    event: _Event
    move: int
    look: int

    @property
    def key(self) -> tuple[int, int, int]:
        """The last number says which of both the event is."""
        return self.move, self.look, _MOVE if isinstance(self.event, NumberedMove) else _LOOK


def _points(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    """Two queries with those that find the stream's earlier uids, and twice as many for newer ones."""
    uids = lineage(connection, uid)
    if not portion.newer:
        return _told(list(_older(connection, uid, uids, portion)), portion.limit)
    found = list(_newer(connection, uid, uids, portion))
    if not found:
        return []
    below = list(_older(connection, uid, uids, Portion(found[-1].key, 1)))
    return _told([*found, *below], len(found))


def _older(connection: sa.Connection, uid: str, uids: Sequence[str], portion: Portion) -> Iterator[_Place]:
    """The events before the place, newest first: `limit` of each kind, so the last ones are not in the portion."""
    last_move, last_look, _ = (_END, _END, _MOVE) if portion.after is None else portion.after
    moves = list(moves_in(connection, uid, Portion((last_move,), portion.limit)))
    looks = heads_in(connection, uids, Portion((last_look,), portion.limit))
    while moves or looks:
        if moves and (not looks or moves[0].move.moved_at >= looks[0].at):
            move = moves.pop(0)
            yield _Place(move, move.number, looks[0].number + 1 if looks else 0)
        else:
            look = looks.pop(0)
            yield _Place(look, moves[0].number + 1 if moves else 0, look.number)


def _newer(connection: sa.Connection, uid: str, uids: Sequence[str], portion: Portion) -> Sequence[_Place]:
    """The nearest events after the place, newest first."""
    move, look, which = portion.after or (_END, _END, _MOVE)
    above = (move if which == _MOVE else move - 1, look if which == _LOOK else look - 1)
    moves = list(moves_in(connection, uid, Portion(above[:1], portion.limit, newer=True)))
    looks = heads_in(connection, uids, Portion(above[1:], portion.limit, newer=True))
    found: list[_Place] = []
    move, look = above[0] + 1, above[1] + 1
    while (moves or looks) and len(found) < portion.limit:
        if moves and (not looks or moves[-1].move.moved_at < looks[-1].at):
            event: _Event = moves.pop()
            found.append(_Place(event, event.number, look))
            move = event.number + 1
        else:
            event = looks.pop()
            found.append(_Place(event, move, event.number))
            look = event.number + 1
    return found[::-1]


def _told(places: Sequence[_Place], limit: int) -> list[Point]:
    """The first ones with what held at their times, by those that are older."""
    offset: NumberedMove | None = None
    seen: HeadSeen | None = None
    found: list[Point] = []
    for place in reversed(places):
        if isinstance(place.event, NumberedMove):
            offset = place.event
        else:
            seen = place.event
        found.append(Point(place.key, _values(_at(place.event), offset, seen)))
    return found[::-1][:limit]


def _values(at: datetime, offset: NumberedMove | None, seen: HeadSeen | None) -> dict[str, object]:
    """A version that was seen for an earlier uid of the stream is one of another table."""
    if offset is None:
        return {"at": at, "offset": None, "head": None if seen is None else seen.head, "behind": None}
    version = offset.move.to_version
    head = max(version, seen.head) if seen is not None and seen.uid == offset.move.stream_uid else version
    return {"at": at, "offset": version, "head": head, "behind": head - version}


def _at(event: _Event) -> datetime:
    return event.move.moved_at if isinstance(event, NumberedMove) else event.at


VERSIONS = HistoryPart(
    "versions",
    "Offset and commits of the table, the newest first",
    (
        AT,
        Field("offset", "Offset", Unit.VERSION),
        Field("head", "Newest commit of the table that was seen", Unit.VERSION),
        Field("behind", "Versions behind", Unit.NUMBER),
    ),
    (
        Chart(
            "offset",
            "Offset over commits of the table",
            "The version up to which the stream has been consumed, and the newest one of its table that was seen.",
            ("offset", "head"),
            Shape.STEPS,
        ),
    ),
    (int, int, int),
    _points,
)
