"""The commits in the logs of a change stream's tables that are not captured yet, before a batch is opened."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tidemark.change_streams.model.change_streams import MICROSECOND, ChangeStream, TableRange, WatchedTable
from tidemark.change_streams.planning.key_texts import rewritten_key
from tidemark.changes.planning import source_schema
from tidemark.errors import LogIncomplete, NotADeltaTable, TableNotFound, WatchedTableChanged
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.planning.bounds import Bound, within
from tidemark.streams.worker.sources import Tables, in_order

__all__ = ["Discovery", "discover", "without_missing_tables"]

log = logging.getLogger(__name__)

REMEDY = (
    "Alter the change stream: restart=[<the table>] watches the table from its newest version on, and does not capture"
    " the commits between. Or remove the table from the watch list (ALTER CHANGE STREAM … SET FOR …)."
)


@dataclass(frozen=True)
class Discovery:
    """The commits that one batch takes, and the time up to which no other commit will appear."""

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
    commits of each table, rows those of all.

    `started` is before the first log is read; what appears later than that, and the skew, is not promised. If commits
    wait, the promise ends before the first of them, so that it keeps its time. Raises WatchedTableChanged.
    """
    logs = [_opened(stream, watched, tables) for watched in stream.tables]
    heads = [_head(stream, watched, log) for watched, log in zip(stream.tables, logs, strict=True)]
    after = [watched.captured for watched in stream.tables]
    ends = _ends(logs, after, heads, bound)
    waiting = [log.timestamp(end + 1) for log, end, head in zip(logs, ends, heads, strict=True) if end < head]
    safe = max(min([started - allowed_skew, *waiting]), stream.published_until + MICROSECOND)
    taken = list(zip(stream.tables, logs, ends, strict=True))
    for watched, log, end in taken:
        if end > watched.captured:
            _require_columns(stream, watched, log, end)
    return Discovery(
        tuple(TableRange(watched, watched.captured, end) for watched, _, end in taken if end > watched.captured), safe
    )


def without_missing_tables(stream: ChangeStream, tables: Tables) -> ChangeStream:
    """The stream without the tables that were dropped, or recreated: FOR ALL blocks neither. Changes of such a table
    that were not captured are gone with it.
    """
    kept = []
    for watched in stream.tables:
        try:
            if tables(watched.table).state().table_id == watched.table.table_id:
                kept.append(watched)
                continue
            problem = "it was recreated"
        except (TableNotFound, NotADeltaTable) as error:
            problem = str(error)
        log.warning("Change stream %s watches %s no longer. %s", stream.name, watched.table.name, problem)
    return replace(stream, tables=tuple(kept))


def _opened(stream: ChangeStream, watched: WatchedTable, tables: Tables) -> DeltaLog:
    try:
        return tables(watched.table)
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
        raise _changed(stream, watched, f"its path now has another table (id {found}, not {watched.table.table_id})")
    if head < watched.captured:
        raise _changed(stream, watched, f"its log was set back to version {head}")
    if head > watched.captured and not log.goes_on_from(watched.captured):
        gone = LogIncomplete(path=log.uri, version=watched.captured + 1, start=watched.captured)
        raise _changed(stream, watched, str(gone))
    return head


def _ends(logs: Sequence[DeltaLog], after: Sequence[int], heads: Sequence[int], bound: Bound) -> list[int]:
    most = bound.max_commits
    furthest = [head if most is None else min(head, start + most) for start, head in zip(after, heads, strict=True)]
    if bound.only_commits:
        return furthest
    ends = list(after)
    for table, commit in within(replace(bound, max_commits=None), in_order(logs, after, furthest)):
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


def _changed(stream: ChangeStream, watched: WatchedTable, problem: str) -> WatchedTableChanged:
    version = watched.captured + 1
    return WatchedTableChanged(
        stream=stream.name, table=watched.table.name, version=version, problem=problem, remedy=REMEDY
    )
