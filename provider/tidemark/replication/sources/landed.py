"""Events that somebody else lands, as a worker sees them: the tables that they show, and how far they were read.

There is no catalog, no publication and no slot. Nothing is made in the place, and nothing is deleted there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Protocol

from tidemark.errors import EnvelopesOutOfOrder, EventFilesOutOfOrder, InvalidArgument, SlotLost, SourceIsAnother
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import (
    START,
    FoundObject,
    Hinders,
    LogPosition,
    Replication,
    Selection,
    SourceProblem,
)
from tidemark.replication.model.source_discovery import SourceNames
from tidemark.replication.planning.debezium_marks import BEGINNING, Lanes, Mark, mark_of, position_at
from tidemark.replication.planning.positions import NOW, position_text
from tidemark.replication.planning.selection import selects

__all__ = ["Landed", "LandedSource"]


class Landed(Protocol):
    """The lanes of a place."""

    def ends(self) -> Lanes:
        """The current end of each lane."""
        ...

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """Say nothing if all behind `lanes` can be read, and nothing came before them."""
        ...

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """Whether there is something between the two."""
        ...


class LandedSource(ABC):
    """The part of a `Source` that all landed events share.

    `what`: the events, in words. `key_unknown`: why a table without a known key is not read. `unsupported`: the same in
    the words of its `FoundObject`. `location` and `begin`: of the connection. `place`: for people.
    """

    what: ClassVar[str]
    key_unknown: ClassVar[str]
    unsupported: ClassVar[str]

    def __init__(self, location: str, begin: str, place: str) -> None:
        self._location, self._begin, self._place = location, begin, place

    @abstractmethod
    def system_id(self) -> str:
        """Which place it is."""

    @abstractmethod
    def _landed(self) -> Landed: ...

    @abstractmethod
    def _tables(
        self, start: Lanes, numeric_as: str | None, selection: Selection | None = None
    ) -> tuple[FoundObject, ...]: ...

    def names(self) -> SourceNames:
        """The place, and the schemas of the first events that it has."""
        schemas = sorted({one.name.schema for one in self._tables({}, None)})
        return SourceNames(self._location, (self._location,), tuple(schemas))

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """A look at all lanes, with its time. A clock that was set back delays events, and loses none."""
        return position_at(datetime.now(UTC), self._landed().ends())

    def parse_position(self, text: str, replication: Replication | None = None) -> LogPosition:
        """`beginning`, or a position in full. Raises InvalidArgument."""
        asked = text.strip()
        if asked.lower() == BEGINNING:
            return Mark().position
        try:
            return mark_of(LogPosition(asked)).position
        except InvalidArgument as error:
            problem = f"give {NOW} or {BEGINNING}: other positions of {self.what} cannot be written by hand"
            raise InvalidArgument(argument="position", value=text, problem=problem) from error

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """The tables of the events that were not captured yet, as a bounded look shows them. Before the start all
        events are meant.
        """
        start, options = mark_of(replication.captured or START).lanes, replication.options
        return self._tables(start, options.numeric_as, replication.selection)

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """Nothing: events tell the changes of a table themselves."""
        return {}

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """A table whose key nobody has told stops everything: its events must not be passed over. So do options that
        name a slot or a publication.
        """
        options = replication.options
        found = [
            SourceProblem(f"{one.name.text}: {self.key_unknown}", Hinders.REPLICATION, (one.source_id,))
            for one in selected
            if one.unsupported == self.unsupported and selects(replication.selection, one.name)
        ]
        if options.slot is not None or options.publication is not None:
            text = f"The options slot and publication are of a PostgreSQL: leave them out for {self.what}."
            found.append(SourceProblem(text, Hinders.REPLICATION))
        return tuple(found)

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Nothing: the writer of the events says which tables there are."""
        return ()

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """None."""
        return frozenset()

    def published(self, replication: Replication) -> frozenset[str]:
        """Nothing is: tables are in the events, or are not."""
        return frozenset()

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """The beginning, or now, as the connection says. A replication that is recovered begins at the current end."""
        if replication.captured is None and self._begin == BEGINNING:
            return Mark().position
        return self.current_position()

    def require_ours(self, replication: Replication) -> LogPosition:
        """Raises SourceIsAnother, SlotLost, EnvelopesOutOfOrder, EventFilesOutOfOrder."""
        found = self.system_id()
        if replication.system_id not in (None, found):
            raise SourceIsAnother(source=self._place, found=found, expected=replication.system_id)
        captured = replication.captured or START
        self._landed().require_kept(mark_of(captured).lanes, position_text(captured))
        return captured

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """The beginning: everything that exists can be read again."""
        return Mark().position

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether a lane has something behind the captured position."""
        captured = replication.captured or START
        return self._landed().is_behind(mark_of(captured).lanes, mark_of(until).lanes)

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """None: the events belong to one source."""
        return ""

    def advance(self, replication: Replication, to: LogPosition) -> None:  # noqa: B027 - no slot is to be moved
        """Nothing: files and records are not ours to delete."""

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """Findings of events that were lost, or came too late."""
        if replication.captured is None:
            return ()
        try:
            self.require_ours(replication)
        except (SlotLost, EnvelopesOutOfOrder, EventFilesOutOfOrder, SourceIsAnother) as error:
            return (str(error),)
        return ()

    def drop_slot(self, replication: Replication) -> bool:
        """There is none."""
        return False

    def drop(self, replication: Replication) -> tuple[str, ...]:
        """Nothing was made."""
        return ()
