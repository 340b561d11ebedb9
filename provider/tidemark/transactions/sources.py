"""What the logs of the sources say before a window is opened (PROTOCOL steps 1 and 5), and the window that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemark.control import streams as stored_streams
from tidemark.control.store import ControlStore
from tidemark.errors import LogIncomplete, SourceError, SourceRecreated, StreamStale, TrackingInterrupted
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import Stream, StreamWindow, TableRef, WindowKind

__all__ = ["SourceHead", "Tables", "end_time", "look_at_sources", "open_table", "window_from"]

Tables = Callable[[TableRef | str], DeltaLog]
"""Opens the log of a registered table, or of a table by the name that the user gave. Raises TableNotFound,
NotADeltaTable."""


def open_table(table: TableRef | str) -> DeltaLog:
    """`Tables` for paths without storage options."""
    return DeltaLog.open(table.path if isinstance(table, TableRef) else table)


@dataclass(frozen=True)
class SourceHead:
    """The newest version of a stream's source, read before begin's transaction (V6).

    `quiet_until`: from the offset up to this version no commit changes data, so nothing is to be delivered;
    `quiet_time` is that version's.
    """

    stream_uid: str
    offset: int
    head: int
    quiet_until: int | None
    quiet_time: datetime | None

    def silent(self, window: StreamWindow) -> bool:
        """Whether the window holds no change, so that no job is needed to learn it."""
        quiet = self.quiet_until is not None and self.offset == window.start and window.end <= self.quiet_until
        return window.empty or (quiet and window.kind is WindowKind.CHANGES)


def look_at_sources(
    store: ControlStore, names: Sequence[str], tables: Tables, max_commits: int | None
) -> tuple[SourceHead, ...]:
    """The heads of the streams' sources, in the order of `names`.

    Raises StreamNotFound, SourceRecreated (R82, R91), TrackingInterrupted (R85), StreamStale (R84), TableNotFound.
    """
    found = store.read(lambda connection: [stored_streams.find(connection, name) for name in names])
    return tuple(_look(stream, tables(stream.source), max_commits) for stream in found)


def window_from(stream: Stream, head: int, max_commits: int | None) -> StreamWindow:
    """(offset, max(offset, head)], at most `max_commits` versions; the rows at the start if they are owed (R10)."""
    start = stream.offset.version
    initial = stream.initial_rows_pending
    return StreamWindow(
        stream_uid=stream.uid,
        stream_name=stream.name,
        source=stream.source,
        mode=stream.mode,
        kind=WindowKind.INITIAL_ROWS if initial else WindowKind.CHANGES,
        start=start,
        end=start if initial else _end(start, head, max_commits),
    )


def end_time(window: StreamWindow, tables: Tables) -> datetime | None:
    """When the version at the window's end was committed; None where its log can no longer tell."""
    try:
        return tables(window.source).timestamp(window.end)
    except (SourceError, OSError):
        return None


def _end(offset: int, head: int, max_commits: int | None) -> int:
    furthest = max(offset, head)
    return furthest if max_commits is None else min(furthest, offset + max_commits)


def _look(stream: Stream, log: DeltaLog, max_commits: int | None) -> SourceHead:
    offset = stream.offset.version
    head = log.head()
    state = log.state(head)
    table = stream.source.name
    if state.table_id != stream.source.table_id:
        raise SourceRecreated(
            table=table, stream=stream.name, path=log.uri, found=state.table_id, expected=stream.source.table_id
        )
    if not state.row_tracking:
        raise TrackingInterrupted(table=table, stream=stream.name, problem="row tracking is off now")
    end = _end(offset, head, max_commits)
    try:
        if end > offset and log.earliest() > offset + 1:
            raise LogIncomplete(path=log.uri, version=offset + 1, start=offset)
        quiet = end == offset or not log.has_changes(offset, end)
    except LogIncomplete as error:
        raise StreamStale(stream=stream.name, version=offset, table=table, reason=str(error)) from error
    time = log.timestamp(end) if quiet and end > offset else None
    return SourceHead(stream.uid, offset, head, quiet_until=end if quiet else None, quiet_time=time)
