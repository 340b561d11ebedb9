"""The history of a stream: its offset over the table's commits, its consumptions, and every move of its offset."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_histories import (
    AT,
    Chart,
    Field,
    HistoryPart,
    Point,
    Portion,
    Shape,
    Unit,
    seconds_between,
)
from tidemark.delivery.model.transactions import QUARANTINED
from tidemark.model.streams import StreamWindow, WindowKind
from tidemark.streams.store.consumptions import Consumption, consumptions
from tidemark.streams.store.overview import moves_in
from tidemark.streams.worker.statistics import changes_of
from tidemark.streams.worker.version_history import VERSIONS

__all__ = ["STREAM_HISTORY"]


def _consumptions(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    return [_consumed(one) for one in consumptions(connection, uid, portion)]


def _consumed(one: Consumption) -> Point:
    window, aside = one.window, sum(proof.rows.get(QUARANTINED, 0) for proof in one.evidence)
    sizes = [proof.bytes for proof in one.evidence if proof.bytes is not None]
    closed = one.closed_at
    values = {
        "at": closed or one.opened_at,
        "run": str(one.key),
        "state": one.state.value,
        "what": _what(window),
        "from_version": window.start,
        "to_version": window.end,
        "rows": changes_of(window, one.statements, one.evidence),
        "written": sum(sum(proof.rows.values()) for proof in one.evidence) - aside,
        "quarantined": aside,
        "bytes": sum(sizes) if sizes else None,
        "seconds": seconds_between(one.opened_at, closed),
        "lag_seconds": one.lag_seconds,
        "targets": sorted({statement.target.name for statement in one.statements}),
    }
    return Point((one.opened_at, one.id), values)


def _what(window: StreamWindow) -> str:
    if window.replayed:
        return "replay"
    return "rows at the start" if window.kind is WindowKind.INITIAL_ROWS else "changes"


def _moves(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    return [
        Point(
            (one.number,),
            {
                "at": one.move.moved_at,
                "from_version": one.move.from_version,
                "to_version": one.move.to_version,
                "why": one.move.why,
                "by": one.move.run or one.move.who,
            },
        )
        for one in moves_in(connection, uid, portion)
    ]


_FROM, _TO = Field("from_version", "From", Unit.VERSION), Field("to_version", "To", Unit.VERSION)

_MOVES = HistoryPart(
    "moves",
    "Moves of the offset, the newest first",
    (AT, _FROM, _TO, Field("why", "Why", Unit.TEXT, owned=True), Field("by", "Who", Unit.RUN, owned=True)),
    (),
    (int,),
    _moves,
)
_CONSUMPTIONS = HistoryPart(
    "consumptions",
    "Consumptions, the newest first",
    (
        AT,
        Field("run", "Run", Unit.RUN),
        Field("state", "State", Unit.TEXT),
        Field("what", "What", Unit.TEXT),
        _FROM,
        _TO,
        Field("rows", "Rows of the change set", Unit.ROWS),
        Field("written", "Rows written", Unit.ROWS),
        Field("quarantined", "Rows in quarantine", Unit.ROWS),
        Field("bytes", "Bytes written", Unit.BYTES),
        Field("seconds", "Seconds", Unit.SECONDS),
        Field("lag_seconds", "Lag at its end", Unit.SECONDS),
        Field("targets", "Targets", Unit.TEXTS),
    ),
    (
        Chart(
            "lag",
            "Lag over time",
            "The age of the newest version that each consumption took, when it ended.",
            ("lag_seconds",),
        ),
        Chart(
            "rows",
            "Rows of consumptions",
            "The rows that each consumption read, and those that it wrote to all targets.",
            ("rows", "written"),
            Shape.BARS,
        ),
        Chart(
            "bytes", "Bytes of consumptions", "The bytes that each one wrote to all targets.", ("bytes",), Shape.BARS
        ),
        Chart(
            "seconds", "Seconds of consumptions", "How long each one took, waits included.", ("seconds",), Shape.BARS
        ),
    ),
    (datetime, str),
    _consumptions,
)

STREAM_HISTORY = (VERSIONS, _CONSUMPTIONS, _MOVES)
