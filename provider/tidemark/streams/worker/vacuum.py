"""The needs of a store's streams in a table that is to be vacuumed (R88); asked of store and logs, moving nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from tidemark.changes.planning.removals import removals
from tidemark.control.store import ControlStore
from tidemark.errors import LogIncomplete, SourceError, VersionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset, Stream, StreamMode, TableRef
from tidemark.model.table_log import TableState
from tidemark.streams.planning.retention import Need, TableFacts, VacuumPlan, plan_vacuum
from tidemark.streams.planning.staleness import DEFAULT_EXTENSION, EXTENSION, Retention, retention_of
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.unread_commits import shortest_retention

__all__ = ["plan_table_vacuum"]


def plan_table_vacuum(
    store: ControlStore, table: TableRef, tables: Tables, *, extension: timedelta | None = None, stretch: bool = True
) -> VacuumPlan:
    """Plan by all live streams of the store that read `table`, views over it included.

    `extension`: how long an unread stream may hold files back. None: the table's own setting, or without one fourteen
    days, if it has streams. An open transaction that holds a stream keeps it going until its lease and its job have
    ended. Raises TableNotFound, NotADeltaTable, CorruptLog, StoreError.
    """
    log = tables(table)
    head = log.state()
    found, held = store.read(lambda c: (stored_streams.live(c), stored_streams.held_until(c)))
    reading = [(stream, base) for stream in found for base in stream.bases if base.table.table_id == head.table_id]
    reading = [(stream, base) for stream, base in reading if stream.mode is not StreamMode.INSERT_ONLY]
    if extension is None and reading and EXTENSION not in head.metadata.configuration:
        extension = DEFAULT_EXTENSION
    lowest = min((base.version for _, base in reading), default=head.version)
    own = retention_of(head.metadata.configuration)
    looking = _Needs(log, own if extension is None else replace(own, extension=extension), tables, held)
    needs = [looking.of(stream, base) for stream, base in reading]
    return plan_vacuum(_facts_of(table, log, head, lowest), needs, store.clock(), extension=extension, stretch=stretch)


def _facts_of(table: TableRef, log: DeltaLog, head: TableState, lowest: int) -> TableFacts:
    """Commits that the log no longer has cannot be read by a stream either: what is left of them is looked at."""
    after = max(lowest, log.earliest() - 1)
    commits = tuple(log.commits(after, head.version))
    try:
        shortest = shortest_retention(log.state(after), commits)
    except (LogIncomplete, VersionNotFound):
        shortest = timedelta()
    return TableFacts(
        table=replace(table, path=log.uri, table_id=head.table_id),
        configuration=head.metadata.configuration,
        removed=removals(commits),
        shortest=shortest,
    )


class _Needs:
    """The needs of streams in one table; the other tables of views are looked at once."""

    def __init__(self, log: DeltaLog, here: Retention, tables: Tables, held: Mapping[str, datetime]) -> None:
        self.log, self.here, self.tables, self.held = log, here, tables, held
        self.others: dict[TableRef, Retention | None] = {}

    def of(self, stream: Stream, base: BaseOffset) -> Need:
        others = [self._other(other.table) for other in stream.bases if other.table != base.table]
        limits = [self.here, *(one for one in others if one is not None)]
        until = min(one.stale_after(stream.anchor) for one in limits)  # R80: what all its tables keep
        until = max(until, self.held.get(stream.uid, until))
        return Need(stream.name, base.version, until, self._committed_at(base.version))

    def _other(self, table: TableRef) -> Retention | None:
        """The retention of another table. None if it is gone: it may come back (R92), so this one still holds files for
        the stream.
        """
        if table not in self.others:
            try:
                self.others[table] = retention_of(self.tables(table).state().metadata.configuration)
            except SourceError:
                self.others[table] = None
        return self.others[table]

    def _committed_at(self, version: int) -> datetime | None:
        try:
            return self.log.timestamp(version)
        except (LogIncomplete, VersionNotFound, FileNotFoundError):
            return None
