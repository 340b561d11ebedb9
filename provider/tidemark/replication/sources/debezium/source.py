"""Landed envelopes as a worker sees them: the tables that they show, and how far they were read.

There is no catalog, no publication and no slot. Nothing is made in the place, and nothing is deleted there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tidemark.errors import EnvelopesOutOfOrder, InvalidArgument, SlotLost, SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import (
    START,
    FoundObject,
    Hinders,
    LogPosition,
    Replication,
    SourceProblem,
)
from tidemark.replication.model.source_discovery import SourceNames
from tidemark.replication.planning.debezium_marks import BEGINNING, Lanes, Mark, mark_of, position_at
from tidemark.replication.planning.debezium_rows import RowRules, Unavailable
from tidemark.replication.planning.positions import NOW, position_text
from tidemark.replication.planning.selection import selects
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.seen import KEY_UNKNOWN, tables_in
from tidemark.replication.sources.debezium.settings import settings_of

__all__ = ["DebeziumSource"]


class DebeziumSource:
    """The `Source` of landed envelopes."""

    def __init__(self, address: SourceAddress) -> None:
        self._settings = settings_of(address)
        self._input = open_input(self._settings)

    def system_id(self) -> str:
        """Which place it is."""
        return self._input.identity()

    def names(self) -> SourceNames:
        """The place, and the schemas of the first envelopes that it has."""
        schemas = sorted({one.name.schema for one in self._tables({}, None)})
        return SourceNames(self._settings.location, (self._settings.location,), tuple(schemas))

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """A look at all lanes, with its time. A clock that was set back delays events, and loses none."""
        return position_at(datetime.now(UTC), self._input.ends())

    def parse_position(self, text: str, replication: Replication | None = None) -> LogPosition:
        """`beginning`, or a position in full. Raises InvalidArgument."""
        asked = text.strip()
        if asked.lower() == BEGINNING:
            return Mark().position
        try:
            return mark_of(LogPosition(asked)).position
        except InvalidArgument as error:
            problem = f"give {NOW} or {BEGINNING}: other positions of landed envelopes cannot be written by hand"
            raise InvalidArgument(argument="position", value=text, problem=problem) from error

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """The tables of the envelopes that were not captured yet, as a bounded look shows them: by the first envelope
        of each. Before the start all envelopes are meant.
        """
        return self._tables(mark_of(replication.captured or START).lanes, replication.options.numeric_as)

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """Nothing: envelopes tell the changes of a table themselves."""
        return {}

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """A table whose key nobody has told stops everything: its events must not be passed over. So do options that
        name a slot or a publication.
        """
        options = replication.options
        found = [
            SourceProblem(f"{one.name.text}: {KEY_UNKNOWN}", Hinders.REPLICATION, (one.source_id,))
            for one in selected
            if one.unsupported == KEY_UNKNOWN and selects(replication.selection, one.name)
        ]
        if options.slot is not None or options.publication is not None:
            text = "The options slot and publication are of a PostgreSQL: leave them out for landed envelopes."
            found.append(SourceProblem(text, Hinders.REPLICATION))
        return tuple(found)

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Nothing: Debezium's table.include.list says which tables there are."""
        return ()

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """None."""
        return frozenset()

    def published(self, replication: Replication) -> frozenset[str]:
        """Nothing is: tables are in the envelopes, or are not."""
        return frozenset()

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """The beginning, or now, as the connection says. A replication that is recovered begins at the current end."""
        if replication.captured is None and self._settings.begin == BEGINNING:
            return Mark().position
        return self.current_position()

    def require_ours(self, replication: Replication) -> LogPosition:
        """Raises SourceIsAnother, SlotLost, EnvelopesOutOfOrder."""
        found = self.system_id()
        if replication.system_id not in (None, found):
            raise SourceIsAnother(source=self._input.place, found=found, expected=replication.system_id)
        captured = replication.captured or START
        self._input.require_kept(mark_of(captured).lanes, position_text(captured))
        return captured

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """The beginning: everything that exists can be read again."""
        return Mark().position

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether a lane has something behind the captured position."""
        captured = replication.captured or START
        return self._input.is_behind(mark_of(captured).lanes, mark_of(until).lanes)

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """None: the log belongs to one server."""
        return ""

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """Nothing: files and records are not ours to delete."""

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """Findings of files and records that were lost, or came too late."""
        if replication.captured is None:
            return ()
        try:
            self.require_ours(replication)
        except (SlotLost, EnvelopesOutOfOrder, SourceIsAnother) as error:
            return (str(error),)
        return ()

    def drop_slot(self, replication: Replication) -> bool:
        """There is none."""
        return False

    def drop(self, replication: Replication) -> tuple[str, ...]:
        """Nothing was made."""
        return ()

    def _tables(self, start: Lanes, numeric_as: str | None) -> tuple[FoundObject, ...]:
        rules = RowRules(numeric_as, None, Unavailable(self._settings.unavailable))
        return tables_in(self._input, start, self._input.ends(), self._settings.key_of, rules)
