"""The next window of a stream as it is planned now, and why a past one was taken. The store and earlier looks at logs
have all of it. No log is read, and no Spark is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.delivery.model.transactions import TransactionState
from tidemark.model.streams import Stream, StreamMode, StreamWindow, WindowKind
from tidemark.streams.store import streams
from tidemark.streams.store.run_transactions import open_windows
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.object_needs import Known, still_holds
from tidemark.streams.worker.questions import stream_question
from tidemark.streams.worker.statistics import changes_of
from tidemark.streams.worker.status import StreamStatus

__all__ = ["NextWindow", "next_windows", "why_taken"]

_MOST_SAID = 3  # windows of one stream

_READ_AS = {
    StreamMode.STANDARD: "as the net change of each row",
    StreamMode.APPEND_ONLY: "as inserted rows alone",
    StreamMode.INSERT_ONLY: "as new files alone",
    StreamMode.EVERY_CHANGE: "with every change of each commit",
}


@dataclass(frozen=True)
class NextWindow:
    """The window that the next run of a consumer would take. More commits make it larger, bounds of its task smaller.

    `state`: `ready`, or `nothing` is new; `open`: the window that is open is finished first. Else `unreadable`, or
    `unknown` until a look has read the log. `to_version`, `versions`: None if they are unknown. `rows`, `bytes`:
    estimates by the rows and bytes of a version in `sample` windows of these tasks, None without such a window.
    """

    uid: str
    stream: str
    state: str
    from_version: int
    to_version: int | None = None
    versions: int | None = None
    initial_rows: bool = False
    rows: int | None = None
    bytes: int | None = None
    sample: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class _Sample:
    """Windows with changes that these tasks took from a stream. None: nothing counted it."""

    windows: int
    rows_each: float | None
    bytes_each: float | None

    def rows(self, versions: int) -> int | None:
        return None if self.rows_each is None else round(self.rows_each * versions)

    def bytes(self, versions: int) -> int | None:
        return None if self.bytes_each is None else round(self.bytes_each * versions)


def next_windows(
    connection: sa.Connection, uids: Sequence[str], known: Known, taken: Sequence[StoredTransaction]
) -> tuple[NextWindow, ...]:
    """The next window of each live stream among `uids`. `taken`: transactions by which rows and bytes are estimated.
    Two queries, and two more for every further 500 streams.
    """
    found = streams.with_uids(connection, uids)
    held = open_windows(connection, [stream.uid for stream in found])
    return tuple(
        _held(stream, held[stream.uid]) if stream.uid in held else _planned(stream, known, taken) for stream in found
    )


def why_taken(taken: Sequence[StoredTransaction]) -> Mapping[str, str]:
    """Uid of a stream → the reasons of the windows that these transactions took from it, the newest first."""
    said: dict[str, list[str]] = {}
    for stored in taken:
        for window in stored.transaction.windows:
            said.setdefault(window.stream_uid, []).append(_why(stored, window))
    return {uid: _together(reasons) for uid, reasons in said.items()}


def _together(reasons: Sequence[str]) -> str:
    more = len(reasons) - _MOST_SAID
    return "; ".join(reasons[:_MOST_SAID]) + (f"; and {more} more" if more > 0 else "")


def _why(stored: StoredTransaction, window: StreamWindow) -> str:
    return f"{_span(window)}, {_outcome(stored, window)}"


def _span(window: StreamWindow) -> str:
    if window.kind is WindowKind.INITIAL_ROWS:
        return f"the rows at version {window.start}, not delivered since the stream was created"
    again = " again, as a replay that moves no offset" if window.replayed else ""
    if window.empty:
        return f"no version after {window.start}"
    keys = f", compared by {', '.join(window.keys)}" if window.keys else ""
    return f"versions ({window.start}, {window.end}]{again} {_READ_AS[window.mode]}{keys}"


def _outcome(stored: StoredTransaction, window: StreamWindow) -> str:
    transaction, evidence = stored.transaction, stored.all_evidence
    if transaction.state is TransactionState.OPEN:
        return "whose job was submitted and has not been seen to end" if transaction.submitted else "without a job yet"
    if transaction.state is TransactionState.SUPERSEDED:
        return "which another run has finished"
    if not evidence:
        return "so no job was run" if window.empty else "in which no commit changes data, so no job was run"
    already = sum(one.found for one in evidence.values())
    if already:
        return f"after an earlier attempt had written {already} of {len(evidence)} targets"
    return f"written to {len(evidence)} {'target' if len(evidence) == 1 else 'targets'}"


def _held(stream: Stream, window: StreamWindow) -> NextWindow:
    return NextWindow(
        uid=stream.uid,
        stream=stream.name,
        state="open",
        from_version=window.start,
        to_version=window.end,
        versions=window.end - window.start,
        initial_rows=window.kind is WindowKind.INITIAL_ROWS,
    )


def _planned(stream: Stream, known: Known, taken: Sequence[StoredTransaction]) -> NextWindow:
    start, uid, name = stream.offset.version, stream.uid, stream.name
    if stream.initial_rows_pending:
        return NextWindow(uid, name, "ready", start, start, 0, initial_rows=True)
    seen = still_holds(known.seen.get(("stream", uid)), stream_question(stream))
    if not isinstance(seen, StreamStatus):
        state = "unknown" if seen is None else "unreadable"
        return NextWindow(uid, name, state, start, problem=seen)
    if seen.problem is not None:
        return NextWindow(uid, name, "unreadable", start, problem=str(seen.problem))
    if seen.behind == 0:
        return NextWindow(uid, name, "nothing", start, start, 0)
    sample = _sample(stream, taken)
    return NextWindow(
        uid,
        name,
        "ready",
        start,
        start + seen.behind,
        seen.behind,
        rows=sample.rows(seen.behind),
        bytes=sample.bytes(seen.behind),
        sample=sample.windows,
    )


def _sample(stream: Stream, taken: Sequence[StoredTransaction]) -> _Sample:
    pairs = [
        (stored, window)
        for stored in taken
        for window in stored.transaction.windows
        if window.stream_uid == stream.uid and window.kind is WindowKind.CHANGES and not window.empty
        if stored.transaction.result is not None
    ]
    return _Sample(len(pairs), _each(pairs, _rows), _each(pairs, _bytes))


_Pair = tuple[StoredTransaction, StreamWindow]


def _each(pairs: Sequence[_Pair], count: Callable[[_Pair], int | None]) -> float | None:
    """The mean for one version, over the windows in which it is counted."""
    counted = [(found, window.end - window.start) for stored, window in pairs if (found := count((stored, window)))]
    versions = sum(size for _, size in counted)
    return sum(found for found, _ in counted) / versions if versions else None


def _rows(pair: _Pair) -> int | None:
    stored, window = pair
    return changes_of(window, stored.transaction.plan.statements, tuple(stored.all_evidence.values()))


def _bytes(pair: _Pair) -> int | None:
    """Of all targets of the transaction, if it took from this stream alone."""
    stored, _ = pair
    sizes = [one.bytes for one in stored.all_evidence.values() if one.bytes is not None]
    return sum(sizes) if sizes and len(stored.transaction.windows) == 1 else None
