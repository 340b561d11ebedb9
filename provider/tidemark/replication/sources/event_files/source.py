"""Event files as a worker sees them: the tables that they show, and how far they were read.

There is no catalog, no publication and no slot. Nothing is made in the folder, and nothing is deleted there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tidemark.errors import EventFilesOutOfOrder, InvalidArgument, SlotLost, SourceIsAnother
from tidemark.lake.storage import canonical_uri
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
from tidemark.replication.planning.event_file_records import KEY_UNKNOWN
from tidemark.replication.planning.positions import NOW, position_text
from tidemark.replication.planning.selection import selects
from tidemark.replication.sources.event_files.inputs import EventFolder
from tidemark.replication.sources.event_files.opening import open_folder
from tidemark.replication.sources.event_files.seen import tables_in
from tidemark.replication.sources.event_files.settings import settings_of

__all__ = ["EventFileSource"]


class EventFileSource:
    """The `Source` of event files."""

    def __init__(self, address: SourceAddress) -> None:
        self._settings = settings_of(address)
        self._place = canonical_uri(self._settings.location)

    def system_id(self) -> str:
        """The canonical URI of the folder."""
        return self._place

    def names(self) -> SourceNames:
        """The folder, and the schemas of its first events."""
        schemas = sorted({one.name.schema for one in self._tables({}, None)})
        return SourceNames(self._settings.location, (self._settings.location,), tuple(schemas))

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """A look at the folder, with its time. A clock that was set back delays events, and loses none."""
        return position_at(datetime.now(UTC), self._folder().ends())

    def parse_position(self, text: str, replication: Replication | None = None) -> LogPosition:
        """`beginning`, or a position in full. Raises InvalidArgument."""
        asked = text.strip()
        if asked.lower() == BEGINNING:
            return Mark().position
        try:
            return mark_of(LogPosition(asked)).position
        except InvalidArgument as error:
            problem = f"give {NOW} or {BEGINNING}: other positions of event files cannot be written by hand"
            raise InvalidArgument(argument="position", value=text, problem=problem) from error

    def discover(self, replication: Replication) -> tuple[FoundObject, ...]:
        """The tables of the folders with events that were not captured yet. Before the start all events are meant."""
        return self._tables(mark_of(replication.captured or START).lanes, replication.options.numeric_as)

    def seen(self, replication: Replication, found: Sequence[FoundObject]) -> Mapping[str, SeenTable]:
        """Nothing: events tell the changes of a table themselves."""
        return {}

    def problems(self, replication: Replication, selected: Sequence[FoundObject]) -> tuple[SourceProblem, ...]:
        """A table whose key nobody has told stops everything: its events must not be passed over. So do options that
        name a slot or a publication.
        """
        options = replication.options
        found = [
            SourceProblem(f"{one.name.text}: {KEY_UNKNOWN}", Hinders.REPLICATION, (one.source_id,))
            for one in selected
            if one.unsupported == f"{KEY_UNKNOWN}." and selects(replication.selection, one.name)
        ]
        if options.slot is not None or options.publication is not None:
            text = "The options slot and publication are of a PostgreSQL: leave them out for event files."
            found.append(SourceProblem(text, Hinders.REPLICATION))
        return tuple(found)

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Nothing: the stream's list of objects says which tables there are."""
        return ()

    def locked(self, replication: Replication, selected: Sequence[FoundObject]) -> frozenset[str]:
        """None."""
        return frozenset()

    def published(self, replication: Replication) -> frozenset[str]:
        """Nothing is: tables are in the files, or are not."""
        return frozenset()

    def make_slot(self, replication: Replication, *, patience: timedelta) -> LogPosition:
        """The beginning, or now, as the connection says. A replication that is recovered begins at the current end."""
        if replication.captured is None and self._settings.begin == BEGINNING:
            return Mark().position
        return self.current_position()

    def require_ours(self, replication: Replication) -> LogPosition:
        """Raises SourceIsAnother, SlotLost, EventFilesOutOfOrder."""
        if replication.system_id not in (None, self._place):
            raise SourceIsAnother(source=self._place, found=self._place, expected=replication.system_id)
        captured = replication.captured or START
        self._folder().require_kept(mark_of(captured).lanes, position_text(captured))
        return captured

    def slot_position(self, replication: Replication) -> LogPosition | None:
        """The beginning: everything that exists can be read again."""
        return Mark().position

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether the folder has something behind the captured position."""
        captured = replication.captured or START
        return self._folder().is_behind(mark_of(captured).lanes, mark_of(until).lanes)

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """None: the files belong to one source."""
        return ""

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """Nothing: files are not ours to delete."""

    def alerts(self, replication: Replication) -> tuple[str, ...]:
        """Findings of files that were lost, or came unseen."""
        if replication.captured is None:
            return ()
        try:
            self.require_ours(replication)
        except (SlotLost, EventFilesOutOfOrder, SourceIsAnother) as error:
            return (str(error),)
        return ()

    def drop_slot(self, replication: Replication) -> bool:
        """There is none."""
        return False

    def drop(self, replication: Replication) -> tuple[str, ...]:
        """Nothing was made."""
        return ()

    def _folder(self) -> EventFolder:
        return open_folder(self._settings)

    def _tables(self, start: Lanes, numeric_as: str | None) -> tuple[FoundObject, ...]:
        folder = open_folder(self._settings, numeric_as)
        return tables_in(folder, start, folder.ends(), self._settings.key_of)
