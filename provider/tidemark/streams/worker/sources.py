"""The findings in the sources' logs before a window is opened (PROTOCOL steps 1 and 5), and the window that follows."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tidemark.changes.planning.sets.folds import KEEPS_ROW_IDS
from tidemark.changes.planning.sets.renumbered import first_change_after_renumbering
from tidemark.control.store import ControlStore
from tidemark.errors import (
    LakeError,
    LogIncomplete,
    SourceError,
    SourceMoved,
    SourceRecreated,
    StreamStale,
    TrackingInterrupted,
    VersionNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import definition
from tidemark.model.streams import BaseOffset, BaseWindow, Stream, StreamMode, StreamWindow, WindowKind
from tidemark.model.table_log import Commit
from tidemark.streams.planning.bounds import Bound, within
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.following import follow
from tidemark.streams.worker.opening import Tables, open_table, wherever

__all__ = [
    "SourceHead",
    "Tables",
    "checked_head",
    "end_time",
    "ends_at",
    "ends_to_read",
    "head_of",
    "in_order",
    "look_at_sources",
    "open_table",
    "schema_of",
    "window_from",
]

_MOVES_ROWS = re.compile(rb'"dataChange"\s*:\s*false')
_KEEPS_IDS = re.compile(rb'"operation"\s*:\s*"(?:%s)' % "|".join(KEEPS_ROW_IDS).encode())


@dataclass(frozen=True)
class SourceHead:
    """The newest versions of the tables that a stream reads, read before begin's transaction (V6).

    `offset`, `head`: as `StreamOffset` counts. `ends`: the version of each base at which a window may end.
    `quiet_until`: up to there from the offset no commit changes data, so nothing is to be delivered; `quiet_time` is
    that version's. `schema`: asks the log for the columns that are read; None if nothing will be, or only Spark knows
    them (views).
    """

    stream_uid: str
    offset: int
    head: int
    ends: tuple[int, ...]
    quiet_until: int | None
    quiet_time: datetime | None
    stream_name: str = ""
    schema: Callable[[], str] | None = field(default=None, compare=False, repr=False)

    def silent(self, window: StreamWindow) -> bool:
        """Whether the window holds no change, so that no job is needed to learn it."""
        quiet = self.quiet_until is not None and self.offset == window.start and window.end <= self.quiet_until
        return window.empty or (quiet and window.kind is WindowKind.CHANGES)


def look_at_sources(
    store: ControlStore, names: Sequence[str], tables: Tables, bound: Bound, *, to_read: bool = False
) -> tuple[SourceHead, ...]:
    """The heads of the streams' sources, in the order of `names`. A stream whose table was moved follows it (R90).

    `to_read`: the windows up to the `ends` are to be read, so those are `ends_to_read`.

    Raises StreamNotFound, SourceRecreated (R82, R91), TrackingInterrupted (R85), StreamStale (R84), TableNotFound,
    RelocationRefused for a table that was moved and cannot be followed.
    """
    found = store.read(lambda connection: [stored_streams.find(connection, name) for name in names])
    return tuple(_head_wherever(store, stream, tables, bound, to_read) for stream in found)


def _head_wherever(store: ControlStore, stream: Stream, tables: Tables, bound: Bound, to_read: bool) -> SourceHead:
    try:
        return head_of(stream, tables, bound, to_read=to_read)
    except SourceMoved as moved:
        return head_of(follow(store, stream, moved, tables), tables, bound, to_read=to_read)


def window_from(stream: Stream, ends: Sequence[int], now: datetime) -> StreamWindow:
    """The window (offset, max(offset, end)] for each base, so nothing if another consumer has got as far (V6). It has
    the rows at the start if they are owed (R10).
    """
    initial = stream.initial_rows_pending
    pairs = zip(stream.bases, ends, strict=True)
    bases = tuple(
        BaseWindow(base.table, base.version, base.version if initial else max(base.version, end)) for base, end in pairs
    )
    return StreamWindow(
        stream_uid=stream.uid,
        stream_name=stream.name,
        source=stream.source,
        mode=stream.mode,
        kind=WindowKind.INITIAL_ROWS if initial else WindowKind.CHANGES,
        start=sum(base.start for base in bases),
        end=sum(base.end for base in bases),
        view=stream.view,
        view_bases=() if stream.view is None else bases,
        read_at=None if stream.view is None else now,
        keys=stream.keys,
    )


def ends_at(
    stream: Stream, tables: Tables, moment: datetime, clock: Callable[[], datetime], known: dict[str, int]
) -> tuple[int, ...]:
    """The version of each base at `moment`, which is past, by the times of the commits (R21). `known`: versions of
    tables, by their paths, that were found before; what is found is added, so that a table has one.

    The writer's clock may differ from ours. A commit that counts as later is left for the next transaction, so no
    change is lost. A table whose newest commit is in the future ends at its head. Raises as `Tables`, LogIncomplete.
    """
    for base in stream.bases:
        if base.table.path not in known:
            log = wherever(tables)(base.table)
            known[base.table.path] = _version_by(log, moment, clock, least=base.version)
    return tuple(known[base.table.path] for base in stream.bases)


def ends_to_read(stream: Stream, ends: Sequence[int], tables: Tables) -> tuple[int, ...]:
    """`ends` of a window, or an earlier one: it ends before rows change again that have other ids by then. An overwrite
    with dataChange=false gives them such ids. That reads all commits. Raises as `Tables`.
    """
    by_ids = stream.mode is StreamMode.STANDARD and stream.view is None and not stream.keys
    if not by_ids or stream.initial_rows_pending:
        return tuple(ends)
    (base,), (end,) = stream.bases, ends
    return (_end_of_ids(wherever(tables)(base.table), base.version, end),)


def _version_by(log: DeltaLog, moment: datetime, clock: Callable[[], datetime], *, least: int) -> int:
    head = log.head()
    committed = log.timestamp(head)
    if committed <= moment or committed > clock():
        return head
    try:
        return log.version_at(moment)
    except VersionNotFound:
        return least


def end_time(window: StreamWindow, tables: Tables) -> datetime | None:
    """When the newest version at the window's end was committed; None if a log or its storage does not say so. It is
    for the lag alone.
    """
    try:
        return max(wherever(tables)(base.table).timestamp(base.end) for base in window.bases)
    except (SourceError, LakeError, OSError):
        return None


def head_of(stream: Stream, tables: Tables, bound: Bound, *, to_read: bool = False) -> SourceHead:
    """The head of one stream's source by its logs; raises as `look_at_sources`, and SourceMoved."""
    logs = [tables(base.table) for base in stream.bases]
    heads = [checked_head(stream, base, log) for base, log in zip(stream.bases, logs, strict=True)]
    ends: Sequence[int] = _ends(stream, logs, heads, bound)
    if to_read:
        ends = ends_to_read(stream, ends, lambda _: logs[0])
    taken = list(zip(stream.bases, logs, ends, strict=True))
    quiet = all([_is_quiet(stream, base, log, end) for base, log, end in taken])
    moved = [log.timestamp(end) for base, log, end in taken if quiet and end > base.version]
    return SourceHead(
        stream_uid=stream.uid,
        offset=stream.offset.version,
        head=sum(heads),
        ends=tuple(ends),
        quiet_until=sum(ends) if quiet else None,
        quiet_time=max(moved, default=None),
        stream_name=stream.name,
        schema=_schema(stream, logs[0], ends[0], quiet=quiet),
    )


def _schema(stream: Stream, log: DeltaLog, end: int, *, quiet: bool) -> Callable[[], str] | None:
    idle = quiet and not stream.initial_rows_pending
    if idle or stream.view is not None:
        return None
    version = stream.offset.version if stream.initial_rows_pending else end
    return lambda: schema_of(log, version, stream.mode)


def schema_of(log: DeltaLog, version: int, mode: StreamMode) -> str:
    """The columns that a stream reads there; of an external table those of its files. Raises LogIncomplete,
    ExternalTableNotFound.
    """
    if mode is StreamMode.INSERT_ONLY:
        return definition(log).schema_json
    return log.state(version).metadata.schema_json


def checked_head(stream: Stream, base: BaseOffset, log: DeltaLog) -> int:
    """The newest version of a base table from which the stream can continue; raises as `look_at_sources`."""
    head = log.head()
    state = log.state(head)
    table = base.table.name
    if state.table_id != base.table.table_id:
        raise SourceRecreated(
            table=table, stream=stream.name, path=log.uri, found=state.table_id, expected=base.table.table_id
        )
    if not stream.keys and not state.row_tracking:
        raise TrackingInterrupted(table=table, stream=stream.name, problem="row tracking is off now")
    if head > base.version and not log.goes_on_from(base.version):
        gone = LogIncomplete(path=log.uri, version=base.version + 1, start=base.version)
        raise StreamStale(stream=stream.name, version=base.version, table=table, reason=str(gone))
    return head


def _ends(stream: Stream, logs: Sequence[DeltaLog], heads: Sequence[int], bound: Bound) -> list[int]:
    """The versions at which a window may end: the heads, or the last that the bound lets in. Commits of several tables
    count in their order.
    """
    known = zip(stream.bases, heads, strict=True)
    furthest = [max(base.version, min(head, bound.ends.get(base.table.path, head))) for base, head in known]
    most = bound.max_commits
    if bound.only_commits and (most is None or sum(furthest) - stream.offset.version <= most):
        return furthest
    if bound.only_commits and most is not None and len(furthest) == 1:
        return [stream.offset.version + most]
    ends = [base.version for base in stream.bases]
    for table, commit in within(bound, in_order(logs, ends, furthest)):
        ends[table] = commit.version
    return ends


def _end_of_ids(log: DeltaLog, after: int, end: int) -> int:
    """`end`, or an earlier version if a later one may change rows again that have other ids by then."""
    try:
        texts = (data for _, data in log.commit_files(after, end))
        if not any(_MOVES_ROWS.search(data) and not _KEEPS_IDS.search(data) for data in texts):
            return end
        again = first_change_after_renumbering(log.commits(after, end))
    except LogIncomplete:  # a lost range is named by whoever needs it
        return end
    return end if again is None else again - 1


def in_order(logs: Sequence[DeltaLog], after: Sequence[int], through: Sequence[int]) -> Iterator[tuple[int, Commit]]:
    """The commits of all tables, each with the number of its table, in the order of time."""

    def of_table(number: int) -> Iterator[tuple[int, Commit]]:
        for commit in logs[number].commits(after[number], through[number], listed=True):
            yield number, commit

    return heapq.merge(*map(of_table, range(len(logs))), key=lambda one: one[1].timestamp)


def _is_quiet(stream: Stream, base: BaseOffset, log: DeltaLog, end: int) -> bool:
    """Whether no commit in (offset, end] changes data. Raises StreamStale where the log no longer reaches back."""
    try:
        return end == base.version or not log.has_changes(base.version, end)
    except LogIncomplete as error:
        raise StreamStale(stream=stream.name, version=base.version, table=base.table.name, reason=str(error)) from error
