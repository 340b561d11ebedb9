"""The numbers of streams' Delta transactions in a table's log: `tidemark/<uid>/<n>`, `…/replay/<s>/<n>`."""

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
    "view_ends",
    "writer_of",
]

RETENTION = "delta.setTransactionRetentionDuration"
_APP_ID = re.compile(r"tidemark/([^/]+)/(?:replay/\d+/)?\d+")  # not those of change streams and replications


@dataclass(frozen=True)
class InspectedTarget:
    """A table as its log was read. `numbers`: stream uid → the highest number of its entries.

    `forgets`: entries expire in this table, so its marks must be read, too.
    """

    table: TableRef
    version: int
    numbers: Mapping[str, int]
    forgets: bool


@dataclass(frozen=True)
class Known:
    """The numbers that a table may have. `numbers`: lead stream → the highest number.

    `offsets`: the offsets of live streams by uid, for a table that the store does not know. The store may have given a
    number to another table since, with another window. So no window that was written there ends after these. `own`: the
    numbers of the continued transaction, whose windows do.
    """

    numbers: Mapping[str, int]
    offsets: Mapping[str, int]
    own: Mapping[str, int]


@dataclass(frozen=True)
class Unordered:
    """Stream uid → the end of its windows that the store never ordered, in this table; None if no mark has it."""

    ends: Mapping[str, int | None]


def writer_of(app_id: str) -> str | None:
    """The uid of the transaction's lead stream; None for an application that is not a stream's."""
    found = _APP_ID.fullmatch(app_id)
    return None if found is None else found[1]


def inspect_target(table: TableRef, state: TableState) -> InspectedTarget:
    """The streams' numbers in the state at the table's head."""
    numbers: dict[str, int] = {}
    for app_id, number in state.transactions.items():
        uid = writer_of(app_id)
        if uid is not None:
            numbers[uid] = max(number, numbers.get(uid, 0))
    return InspectedTarget(table, state.version, numbers, RETENTION in state.metadata.configuration)


def unordered(marks: Iterable[Mark], entries: Mapping[str, int], known: Known) -> Unordered:
    """The streams whose writes in the table are beyond the store's, by their marks and by entries without a mark."""
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
    """All windows of a mark if its number was never ordered, else those that end after their stream's offset."""
    lead = writer_of(mark.app_id)
    if lead is None or _is_higher(mark, known):
        return () if lead is None else mark.windows
    if not _went_on(mark) or mark.txn_version == known.own.get(lead):
        return ()
    offsets = known.offsets
    return tuple(one for one in mark.windows if one.end > offsets.get(one.stream_uid, one.end))


def _went_on(mark: Mark) -> bool:
    """Whether it marks a regular window: no fence, no replay."""
    return mark.kind is MarkKind.WRITE and "/replay/" not in mark.app_id


def delivered_to(marks: Iterable[Mark], uid: str) -> tuple[bool, int | None]:
    """Whether any mark has a window of the stream, and the end of the last regular one (None if there is none)."""
    touched, end = False, None
    for mark in marks:
        for window in mark.windows:
            if window.stream_uid != uid:
                continue
            touched = True
            if _went_on(mark):
                end = window.end if end is None else max(end, window.end)
    return touched, end


def view_ends(
    marks: Iterable[Mark], ends: Iterable[Mapping[str, tuple[int, ...]]], uid: str
) -> frozenset[tuple[int, ...]]:
    """The ends of regular windows of a stream on a view, in each of its tables, as the marks' commits have them."""
    return frozenset(found[uid] for mark, found in zip(marks, ends, strict=True) if _went_on(mark) and uid in found)
