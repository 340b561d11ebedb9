"""The commits in the logs of a change stream's tables that are not captured yet, before a batch is opened."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tidemark.change_streams.model.change_streams import (
    MICROSECOND,
    CaptureBatch,
    ChangeStream,
    TableRange,
    WatchedTable,
)
from tidemark.change_streams.planning.key_texts import rewritten_key
from tidemark.changes.planning import source_schema
from tidemark.errors import (
    LakeError,
    LogIncomplete,
    NotADeltaTable,
    SourceCopied,
    SourceError,
    SourceMoved,
    TableNotFound,
    WatchedTableChanged,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.planning.bounds import Bound, within
from tidemark.streams.worker.sources import Tables, in_order

__all__ = ["Discovery", "at_its_places", "discover", "said_to_follow", "where_it_is", "without_missing_tables"]

log = logging.getLogger(__name__)

_FOLLOWED = "Change stream %s continues at %s: its table %s was renamed or moved, and is %s now."

_RENAMED = "If the table was renamed, give its new name in the watch list: it continues where it is captured. "

REMEDY = (
    "Alter the change stream: restart=[<the table>] watches the table from its newest version on, and does not capture"
    " the commits between. Or remove the table from the watch list (ALTER CHANGE STREAM … SET FOR …)."
)


@dataclass(frozen=True)
class Discovery:
    """The commits that one batch takes, and the time up to which no other commit will appear. `tables`: all that are
    watched, those that were renamed or moved at their new places.
    """

    tables: tuple[WatchedTable, ...]
    ranges: tuple[TableRange, ...]
    safe_until: datetime

    @property
    def is_empty(self) -> bool:
        """Whether no table has anything that is to be captured now."""
        return not self.ranges


def discover(
    stream: ChangeStream, tables: Tables, bound: Bound, *, started: datetime, allowed_skew: timedelta
) -> Discovery:
    """The ranges of those tables that have commits which are not captured, within the bound. `max_commits` counts
    commits of each table, rows those of all. The commits of all tables are taken in the order of time. A table that was
    renamed or moved is followed by its id (R90).

    `started` is before the first log is read; what appears later than that, and the skew, is not promised. If commits
    wait, the promise ends before the first of them, so that it keeps its time. Raises WatchedTableChanged.
    """
    opened = [_opened(stream, watched, tables) for watched in stream.tables]
    logs = [log for _, log in opened]
    heads = [_head(stream, watched, log) for watched, log in opened]
    after = [watched.captured for watched, _ in opened]
    ends = _ends(logs, after, heads, bound)
    waiting = [log.timestamp(end + 1) for log, end, head in zip(logs, ends, heads, strict=True) if end < head]
    safe = max(min([started - allowed_skew, *waiting]), stream.published_until + MICROSECOND)
    taken = [(watched, log, end) for (watched, log), end in zip(opened, ends, strict=True) if end > watched.captured]
    for watched, log, end in taken:
        _require_columns(stream, watched, log, end)
    ranges = tuple(TableRange(watched, watched.captured, end) for watched, _, end in taken)
    return Discovery(tuple(watched for watched, _ in opened), ranges, safe)


def where_it_is(watched: WatchedTable, tables: Tables) -> WatchedTable:
    """The table at the place to which it was renamed or moved; all else of it stays. Raises TableNotFound,
    NotADeltaTable.
    """
    try:
        tables(watched.table)
    except SourceMoved as moved:
        return replace(watched, table=moved.to)
    return watched


def at_its_places(batch: CaptureBatch, tables: Tables) -> CaptureBatch:
    """The batch for its job, with its tables where they are now; the store keeps it as it was opened. A table that
    cannot be opened is left to the job.
    """

    def found(taken: TableRange) -> TableRange:
        try:
            return replace(taken, watched=where_it_is(taken.watched, tables))
        except (SourceError, LakeError, OSError) as error:
            log.debug("Table %s of change stream %s: %s", taken.watched.table.name, batch.stream.name, error)
            return taken

    return replace(batch, ranges=tuple(map(found, batch.ranges)))


def said_to_follow(stream: ChangeStream, old: WatchedTable, now: WatchedTable) -> WatchedTable:
    """`now`, the table `old` at another place, after the log has said so."""
    log.warning(_FOLLOWED, stream.name, now.table.path, old.table.name, now.table.name)
    return now


def without_missing_tables(stream: ChangeStream, tables: Tables) -> ChangeStream:
    """The stream without the tables that were dropped, or recreated: FOR ALL blocks neither. Changes of such a table
    that were not captured are gone with it. Tables that exist elsewhere stay: `discover` follows them, or refuses.
    """
    kept = []
    for watched in stream.tables:
        try:
            if tables(watched.table).state().table_id == watched.table.table_id:
                kept.append(watched)
                continue
            problem = "its path now has another table"
        except (SourceMoved, SourceCopied):
            kept.append(watched)
            continue
        except (TableNotFound, NotADeltaTable) as error:
            problem = str(error)
        log.warning("Change stream %s watches %s no longer. %s", stream.name, watched.table.name, problem)
    return replace(stream, tables=tuple(kept))


def _opened(stream: ChangeStream, watched: WatchedTable, tables: Tables) -> tuple[WatchedTable, DeltaLog]:
    """The table where it is now, and its log."""
    try:
        return watched, tables(watched.table)
    except SourceMoved as moved:
        return _opened(stream, said_to_follow(stream, watched, replace(watched, table=moved.to)), tables)
    except (TableNotFound, NotADeltaTable) as error:
        raise _changed(stream, watched, f"it no longer exists ({error})") from error


def _head(stream: ChangeStream, watched: WatchedTable, log: DeltaLog) -> int:
    """The newest version, if every change up to it can be had."""
    head = log.head()
    try:
        found = log.state(head).table_id
    except LogIncomplete as error:
        raise _changed(stream, watched, str(error)) from error
    if found != watched.table.table_id:
        problem = f"its path now has another table (id {found}, not {watched.table.table_id})"
        raise _changed(stream, watched, problem, _RENAMED + REMEDY)
    if head < watched.captured:
        raise _changed(stream, watched, f"its log was set back to version {head}")
    if head > watched.captured and not log.goes_on_from(watched.captured):
        gone = LogIncomplete(path=log.uri, version=watched.captured + 1, start=watched.captured)
        raise _changed(stream, watched, str(gone))
    return head


def _ends(logs: Sequence[DeltaLog], after: Sequence[int], heads: Sequence[int], bound: Bound) -> list[int]:
    """The last versions that the batch takes. No table takes a commit that is later than the first that waits in
    another, which would lose its time. Times of one log may descend: if that lets nothing in, one commit is taken.
    """
    most = bound.max_commits
    furthest = [head if most is None else min(head, start + most) for start, head in zip(after, heads, strict=True)]
    waiting = [log.timestamp(end + 1) for log, end, head in zip(logs, furthest, heads, strict=True) if end < head]
    if bound.only_commits and (not waiting or len(logs) == 1):
        return furthest
    until = min([*waiting, *([] if bound.until is None else [bound.until])], default=None)
    ends = _taken(replace(bound, max_commits=None, until=until), logs, after, furthest)
    return ends if ends != list(after) else _taken(replace(bound, max_commits=1), logs, after, furthest)


def _taken(bound: Bound, logs: Sequence[DeltaLog], after: Sequence[int], through: Sequence[int]) -> list[int]:
    """The last versions of the commits that the bound lets in."""
    ends = list(after)
    for table, commit in within(bound, in_order(logs, after, through)):
        ends[table] = commit.version
    return ends


def _require_columns(stream: ChangeStream, watched: WatchedTable, log: DeltaLog, end: int) -> None:
    """At the range's end the table still has the listed columns and its keys, as texts that keep their partition."""
    metadata = log.state(end).metadata
    there = {field.name.casefold() for field in source_schema.fields(metadata)}
    gone = [column for column in (*watched.keys, *(watched.columns or ())) if column.casefold() not in there]
    if gone:
        raise _changed(stream, watched, f"by version {end} it has lost {', '.join(gone)}, which the stream needs")
    rewritten = rewritten_key(watched.keys, log.state(max(watched.captured, 0)).metadata, metadata)
    if rewritten is not None:
        problem = f"by version {end} {rewritten}; records of one key would be in two partitions"
        raise _changed(stream, watched, problem)


def _changed(stream: ChangeStream, watched: WatchedTable, problem: str, remedy: str = REMEDY) -> WatchedTableChanged:
    version = watched.captured + 1
    return WatchedTableChanged(
        stream=stream.name, table=watched.table.name, version=version, problem=problem, remedy=remedy
    )
