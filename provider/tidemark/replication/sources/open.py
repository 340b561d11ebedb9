"""A source as a worker sees it, whatever database it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from tidemark.errors import NotYetSupported
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import FoundObject, LogPosition, Replication, SourceProblem

__all__ = ["Source", "open_source"]


class Source(Protocol):
    """What a replication asks its source for. Each call opens a connection of its own, so nothing has to be closed.

    Everything raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled.
    """

    def system_id(self) -> str:
        """Which cluster it is."""
        ...

    def current_position(self) -> LogPosition:
        """Where the log stands now: all that was committed before this call is before it."""
        ...

    def parse_position(self, text: str) -> LogPosition:
        """A position as people of this database write it. Raises InvalidArgument."""
        ...

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """Every table of the catalog, also what is not selected."""
        ...

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """What else the catalog has of these tables now, by source id: by it a later look knows what the log does not
        tell. One that is gone has nothing.
        """
        ...

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """What keeps it from being replicated, each with what mends it; () where nothing does."""
        ...

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Have the log say what becomes of these objects, and of no other; but the tables with the ids to `leave` stay
        as they are. An existing publication is never altered. A second run changes nothing; what did change is answered
        in words. Raises SourceLocked.
        """
        ...

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """The ids of the tables that `publish` would have to lock at this moment, and cannot."""
        ...

    def published(self, replication: Replication) -> frozenset[str]:
        """The ids of the tables of which the log says all that becomes of them, as `publish` has left them."""
        ...

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """From now on the log is kept; every transaction that commits at or after the answer can be read. One that is
        there and is ours is left as it is, and an existing one of the options is never made. Raises SlotBlocked,
        SlotForeign.
        """
        ...

    def require_ours(self, replication: Replication) -> LogPosition:
        """Up to where the slot was moved. Raises SourceIsAnother, SourceSetBack, SlotLost, SlotForeign, SlotAhead,
        SlotBusy.
        """
        ...

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """Up to where the slot was moved, whatever the replication knows; None where there is none, or it is lost.
        Raises SlotForeign.
        """
        ...

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether the slot has anything of the replication before `until`; moves nothing."""
        ...

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """The slot lets go of what is before `to`; one that is there already stays."""
        ...

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """What somebody should look at in the source, in words: its log grows, or is about to be removed."""
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
    raise NotYetSupported(feature=f"A source of kind {address.kind}", instead="PostgreSQL is.")
