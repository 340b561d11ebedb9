"""Event files for a run of capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidemark.errors import SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.debezium_marks import mark_of, position_at
from tidemark.replication.planning.debezium_rows import RowRules
from tidemark.replication.planning.event_file_rows import LeftOut
from tidemark.replication.planning.events import TextOf
from tidemark.replication.planning.positions import position_text
from tidemark.replication.sources.change_log import ONE_SERVER, LogBatch, Origin
from tidemark.replication.sources.event_files.inputs import EventFolder
from tidemark.replication.sources.event_files.opening import open_folder
from tidemark.replication.sources.event_files.reader import EventFileReader
from tidemark.replication.sources.event_files.settings import EventFileSettings, settings_of

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CaptureEvents

__all__ = ["EventFileLog", "event_file_log"]


@contextmanager
def event_file_log(request: CaptureEvents, address: SourceAddress, hashed: TextOf | None) -> Iterator[EventFileLog]:
    """The `ChangeLog` of the folder. Raises SourceIsAnother, and what the folder does."""
    settings = settings_of(address)
    folder = open_folder(settings, request.options.numeric_as)
    if folder.place != request.system_id:
        raise SourceIsAnother(source=folder.place, found=folder.place, expected=request.system_id)
    yield EventFileLog(request, settings, folder, hashed)


@dataclass
class EventFileLog:
    """The `ChangeLog` of event files. Its methods raise SlotLost, EventFilesOutOfOrder and EventFileInvalid, too."""

    request: CaptureEvents
    settings: EventFileSettings
    folder: EventFolder
    hashed: TextOf | None
    protocol: str = "event files"

    def end(self, until: LogPosition | None = None) -> LogPosition:
        """A look at the folder."""
        if until is not None:
            return until
        return position_at(datetime.now(UTC), self.folder.ends())

    def resume(self, position: LogPosition, origin: Origin = ONE_SERVER) -> None:
        """Raises SlotLost, EventFilesOutOfOrder."""
        self.folder.require_kept(mark_of(position).lanes, position_text(position))

    def batch(
        self, start: LogPosition, end: LogPosition, schemas: Mapping[str, TableSchema], *, heartbeat: bool
    ) -> LogBatch:
        """Nothing is read before the rows are taken. `heartbeat` is of no use here: an idle folder keeps no log."""
        begun, until = mark_of(start), mark_of(end)
        options = self.request.options
        reader = EventFileReader(
            objects={one.source_id: one for one in self.request.objects},
            schemas=dict(schemas),
            selection=self.request.selection,
            left_out=frozenset(self.request.left_out),
            keys=self.settings.key_of,
            rules=RowRules(options.numeric_as, self.hashed, LeftOut()),
            start=begun,
            end=until,
            place=self.folder.place,
            max_events=options.max_events,
            in_order=self.folder.in_order,
            heartbeat=heartbeat,
        )

        @contextmanager
        def rows() -> Iterator[Iterator[list[tuple[Any, ...]]]]:
            yield reader.chunks(self.folder.records(begun.lanes, until.lanes))

        return LogBatch(reader, rows)

    def release(self, position: LogPosition) -> None:
        """Files are not ours to delete."""

    def lag(self, position: LogPosition) -> int:
        """Bytes of files of Datastream, or events of Tidemark, that were not read."""
        return self.folder.amount(mark_of(position).lanes, self.folder.ends())
