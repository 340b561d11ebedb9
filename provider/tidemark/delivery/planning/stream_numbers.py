"""The numbers of streams' Delta transactions as a table's log holds them: `tidemark/<uid>/<n>`, `…/replay/<s>/<n>`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemark.delivery.model.marks import Mark, MarkedWindow, MarkKind
from tidemark.model.streams import TableRef
from tidemark.model.table_log import TableState

__all__ = [
    "RETENTION",
    "InspectedTarget",
    "Known",
    "Unordered",
    "delivered_to",
    "inspect_target",
    "is_lost",
    "unordered",
    "writer_of",
]

RETENTION = "delta.setTransactionRetentionDuration"
_APP_ID = re.compile(r"tidemark/([^/]+)/(?:replay/\d+/)?\d+")  # not those of change streams and replications


@dataclass(frozen=True)
class InspectedTarget:
    """A table as its log was read: `numbers` has, by stream uid, the highest number of its entries.

    `forgets`: entries run out in this table, so that its marks have to be asked, too.
    """

    table: TableRef
    version: int
    numbers: Mapping[str, int]
    forgets: bool


@dataclass(frozen=True)
class Known:
    """What a table may hold: `numbers` has, by lead stream, the highest that may stand there.

    `offsets`: of a table that the store does not know, where its live streams stand, by uid. A number may have been
    ordered for another table since, with another window: so no window that was written there ends past these. `own`:
    the numbers of the transaction that is gone on with, whose windows do.
    """

    numbers: Mapping[str, int]
    offsets: Mapping[str, int]
    own: Mapping[str, int]


@dataclass(frozen=True)
class Unordered:
    """Stream uid → up to where the table has the stream by writes that the store never ordered; None: no mark tells."""

    ends: Mapping[str, int | None]


def writer_of(app_id: str) -> str | None:
    """The uid of the stream that led the transaction; None for an application that is not a stream's."""
    found = _APP_ID.fullmatch(app_id)
    return None if found is None else found[1]


def inspect_target(table: TableRef, state: TableState) -> InspectedTarget:
    """What the state at the table's head says of streams."""
    numbers: dict[str, int] = {}
    for app_id, number in state.transactions.items():
        uid = writer_of(app_id)
        if uid is not None:
            numbers[uid] = max(number, numbers.get(uid, 0))
    return InspectedTarget(table, state.version, numbers, RETENTION in state.metadata.configuration)


def unordered(marks: Iterable[Mark], entries: Mapping[str, int], known: Known) -> Unordered:
    """Which streams the table has further than the store ordered: by their marks, and by entries that have none."""
    ends: dict[str, int | None] = {}
    marked: dict[str, int] = {}
    for mark in marks:
        lead = writer_of(mark.app_id)
        if lead is not None:
            marked[lead] = max(mark.txn_version, marked.get(lead, 0))
        for window in _lost_windows(mark, known):
            before = ends.setdefault(window.stream_uid, None)
            if mark.kind is MarkKind.WRITE:
                ends[window.stream_uid] = window.end if before is None else max(before, window.end)
    for uid, number in entries.items():
        if number > max(known.numbers.get(uid, 0), marked.get(uid, 0)):
            ends.setdefault(uid, None)
    return Unordered(ends)


def is_lost(mark: Mark, known: Known) -> bool:
    """Whether the mark is of a stream's write or fence that the store never ordered."""
    return _is_higher(mark, known) or bool(_lost_windows(mark, known))


def _is_higher(mark: Mark, known: Known) -> bool:
    lead = writer_of(mark.app_id)
    return lead is not None and mark.txn_version > known.numbers.get(lead, 0)


def _lost_windows(mark: Mark, known: Known) -> tuple[MarkedWindow, ...]:
    """All windows of a mark with a number that was never ordered, else those that end past where their stream is."""
    lead = writer_of(mark.app_id)
    if lead is None or _is_higher(mark, known):
        return () if lead is None else mark.windows
    if not _went_on(mark) or mark.txn_version == known.own.get(lead):
        return ()
    offsets = known.offsets
    return tuple(one for one in mark.windows if one.end > offsets.get(one.stream_uid, one.end))


def _went_on(mark: Mark) -> bool:
    """Whether it is of a window that was written as its streams went on: no fence, no replay."""
    return mark.kind is MarkKind.WRITE and "/replay/" not in mark.app_id


def delivered_to(marks: Iterable[Mark], uid: str) -> tuple[bool, int | None]:
    """Whether any of the marks has a window of the stream, and the end of the furthest that was written as it went on;
    None: fences and replays alone.
    """
    touched, end = False, None
    for mark in marks:
        for window in mark.windows:
            if window.stream_uid != uid:
                continue
            touched = True
            if _went_on(mark):
                end = window.end if end is None else max(end, window.end)
    return touched, end
