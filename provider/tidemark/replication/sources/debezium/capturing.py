"""Landed envelopes for a run of capture."""

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
from tidemark.replication.planning.debezium_rows import RowRules, Unavailable
from tidemark.replication.planning.events import TextOf
from tidemark.replication.planning.positions import position_text
from tidemark.replication.sources.change_log import ONE_SERVER, LogBatch, Origin
from tidemark.replication.sources.debezium.inputs import EnvelopeInput
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.reader import EnvelopeReader
from tidemark.replication.sources.debezium.settings import DebeziumSettings, settings_of

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CaptureEvents

__all__ = ["DebeziumLog", "debezium_log"]


@contextmanager
def debezium_log(request: CaptureEvents, address: SourceAddress, hashed: TextOf | None) -> Iterator[DebeziumLog]:
    """The `ChangeLog` of the place. Raises SourceIsAnother, and what the place does."""
    settings = settings_of(address)
    landed = open_input(settings)
    found = landed.identity()
    if found != request.system_id:
        raise SourceIsAnother(source=landed.place, found=found, expected=request.system_id)
    yield DebeziumLog(request, settings, landed, hashed)


@dataclass
class DebeziumLog:
    """The `ChangeLog` of landed envelopes. Its methods raise SlotLost, EnvelopesOutOfOrder and EnvelopeInvalid, too."""

    request: CaptureEvents
    settings: DebeziumSettings
    landed: EnvelopeInput
    hashed: TextOf | None
    protocol: str = "envelopes"

    def end(self, until: LogPosition | None = None) -> LogPosition:
        """A look at all lanes."""
        if until is not None:
            return until
        return position_at(datetime.now(UTC), self.landed.ends())

    def resume(self, position: LogPosition, origin: Origin = ONE_SERVER) -> None:
        """Raises SlotLost, EnvelopesOutOfOrder."""
        self.landed.require_kept(mark_of(position).lanes, position_text(position))

    def batch(
        self, start: LogPosition, end: LogPosition, schemas: Mapping[str, TableSchema], *, heartbeat: bool
    ) -> LogBatch:
        """Nothing is read before the rows are taken. `heartbeat` is of no use here: an idle place keeps no log."""
        begun, until = mark_of(start), mark_of(end)
        options = self.request.options
        reader = EnvelopeReader(
            objects={one.source_id: one for one in self.request.objects},
            schemas=dict(schemas),
            selection=self.request.selection,
            left_out=frozenset(self.request.left_out),
            keys=self.settings.key_of,
            rules=RowRules(options.numeric_as, self.hashed, Unavailable(self.settings.unavailable)),
            start=begun,
            end=until,
            has_siblings=lambda lane: self.landed.has_siblings(lane, until.lanes),
            place=self.landed.place,
            remedy=self.landed.remedy,
            max_events=options.max_events,
            heartbeat=heartbeat,
        )

        @contextmanager
        def rows() -> Iterator[Iterator[list[tuple[Any, ...]]]]:
            yield reader.chunks(self.landed.records(begun.lanes, until.lanes))

        return LogBatch(reader, rows)

    def release(self, position: LogPosition) -> None:
        """Files and records are not ours to delete."""

    def lag(self, position: LogPosition) -> int:
        """Bytes of files, or records of topics, that were not read."""
        return self.landed.amount(mark_of(position).lanes, self.landed.ends())
