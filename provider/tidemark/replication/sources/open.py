"""A source as a worker sees it, for any kind of database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from tidemark.errors import NotYetSupported
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import FoundObject, LogPosition, Replication, SourceProblem
from tidemark.replication.model.source_discovery import SourceNames

__all__ = ["Source", "open_source"]


class Source(Protocol):
    """The requests of a replication to its source. Each call opens a connection of its own, so nothing has to be
    closed.

    Everything raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled.
    """

    def system_id(self) -> str:
        """Which cluster it is."""
        ...

    def names(self) -> SourceNames:
        """The databases and schemas that the user sees."""
        ...

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """The current end of the log: all that was committed before this call is before it. `replication`: whose
        positions it continues.
        """
        ...

    def parse_position(self, text: str, replication: Replication | None = None) -> LogPosition:
        """A position as people of this database write it. Raises InvalidArgument."""
        ...

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """Every table of the catalog, also what is not selected."""
        ...

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """The other facts that the catalog has of these tables now, by source id. By them a later look knows the
        changes that the log does not have. A table that is gone has none.
        """
        ...

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """The problems that keep it from being replicated, each with its fix; () if there are none."""
        ...

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Have the log say what becomes of these objects, and of no other. The tables with the ids to `leave` stay as
        they are. An existing publication is never altered. A second run changes nothing; what did change is answered in
        words. Raises SourceLocked.
        """
        ...

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """The ids of the tables that `publish` would have to lock at this moment, and cannot."""
        ...

    def published(self, replication: Replication) -> frozenset[str]:
        """The ids of the tables whose every change is in the log, as `publish` has left them."""
        ...

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """From now on the log is kept; every transaction that commits at or after the answer can be read. An existing
        slot of ours is left as it is, and an existing slot of the options is never made. Raises SlotBlocked,
        SlotForeign.
        """
        ...

    def require_ours(self, replication: Replication) -> LogPosition:
        """Up to where the slot was moved. Raises SourceIsAnother, SourceSetBack, SlotLost, SlotForeign, SlotAhead,
        SlotBusy.
        """
        ...

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """The slot's position as the source has it, not the replication; None if there is no slot, or it is lost.
        Raises SlotForeign.
        """
        ...

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether the slot has anything of the replication before `until`; moves nothing."""
        ...

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """The GTIDs of all transactions before `until`, if `has_changes` has found nothing before it; "" of a source
        without.
        """
        ...

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """The slot releases the log before `to`; a slot that is at `to` or past it stays."""
        ...

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """Findings that somebody should look at in the source, in words: its log grows, or is about to be removed."""
        ...

    def drop_slot(self, replication: Replication) -> bool:
        """The log is kept no longer, but by an existing slot of the options. Whether there was one. Raises SlotBusy,
        SlotForeign.
        """
        ...

    def drop(self, replication: Replication) -> tuple[str, ...]:
        """Take away all that was made for it, and no more; what there was, in words. A second run finds nothing."""
        ...


def open_source(address: SourceAddress) -> Source:
    """The source at that address; nothing is connected yet. Raises NotYetSupported."""
    if address.kind is SourceKind.POSTGRESQL:
        from tidemark.replication.sources.postgresql.source import PostgresSource

        return PostgresSource(address)
    if address.kind.logs_by_file:
        from tidemark.replication.sources.mysql.source import BinlogSource

        return BinlogSource(address)
    if address.kind is SourceKind.DEBEZIUM:
        from tidemark.replication.sources.debezium.source import DebeziumSource

        return DebeziumSource(address)
    if address.kind is SourceKind.EVENT_FILES:
        from tidemark.replication.sources.event_files.source import EventFileSource

        return EventFileSource(address)
    raise NotYetSupported(feature=f"A source of kind {address.kind}", instead="PostgreSQL is.")
