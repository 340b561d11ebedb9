"""Events of files become rows of events of the event log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidemark.errors import EventFileInvalid
from tidemark.model.codec import to_json
from tidemark.replication.model.replication import LogPosition, Selection, TableSchema
from tidemark.replication.planning.debezium_marks import Mark, event_position
from tidemark.replication.planning.debezium_rows import RowRules
from tidemark.replication.planning.event_file_records import FileRecord, TableKeys
from tidemark.replication.planning.event_file_rows import FileForms, events_of
from tidemark.replication.planning.events import Change, Event, Half, schema_key
from tidemark.replication.planning.selection import selects
from tidemark.replication.sources.change_log import BatchFacts, ObjectFacts
from tidemark.replication.sources.event_files.inputs import FOLDER, Read

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject

__all__ = ["MOST_AT_ONCE", "EventFileReader"]

MOST_AT_ONCE = 100_000  # events, which are sorted in memory
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REMEDY = "Correct the file, or exclude its table."


@dataclass
class EventFileReader(BatchFacts):
    """Reads one batch: events behind the lanes of `start`, until there are `max_events`. They are sorted by their
    places in the source's log.

    `objects` by their id; `schemas`: the newest of each that the log has, which are kept up to date. It stops before
    the first event of a table that is selected and not registered. The next look takes it up. `left_out`: ids of
    registered tables that are not captured. `late` afterwards: some events have older places than earlier batches have
    of their tables. `in_order`: there are none such.
    """

    objects: Mapping[str, CapturedObject]
    schemas: dict[str, TableSchema]
    selection: Selection
    left_out: frozenset[str]
    keys: TableKeys
    rules: RowRules
    start: Mark
    end: Mark
    place: str
    max_events: int
    in_order: bool
    heartbeat: bool = False
    chunk_rows: int = 20_000

    def __post_init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._lanes = dict(self.start.lanes)
        self._nth = self.start.nth or 0 if self.start.at == self.end.at else 0
        self._sequence = 0
        self._own_position: str | None = None
        self._transaction: str | None = None
        self._numbers: dict[str, tuple[TableSchema, int]] = {}
        self._forms = FileForms(self.keys, self.rules)

    @property
    def upto(self) -> LogPosition:
        """Every event before it was read."""
        number = None if self.exhausted else self._nth
        return Mark(self.end.at, number, self._lanes).position

    def chunks(self, reads: Iterable[Read]) -> Iterator[list[tuple[Any, ...]]]:
        """Rows in the order of (position, sequence). Raises EventFileInvalid."""
        newest = {name: tuple(place) for name, place in self._lanes.items() if name != FOLDER}
        for read in self._sorted(reads):
            record = read.record
            assert record is not None
            is_late = record.order <= newest.get(record.source_id, ("", -1)) and not self.in_order
            self.late = self.late or is_late
            try:
                self._emit(record, read, late=is_late)
            except ValueError as error:
                raise self._invalid(read, str(error)) from error
            if not self.in_order:
                self._lanes[record.source_id] = max(self._lanes.get(record.source_id, ("", -1)), record.order)
            if len(self._rows) >= self.chunk_rows:
                rows, self._rows = self._rows, []
                yield rows
        if self._rows:
            yield self._rows

    def _sorted(self, reads: Iterable[Read]) -> list[Read]:
        """The events of the batch, each once. Events that have one position in order are in one batch."""
        found: dict[str, Read] = {}
        most, last, self.exhausted = min(self.max_events, MOST_AT_ONCE), "", True
        for read in reads:
            record = read.record
            together = self.in_order and record is not None and record.event.position == last
            if len(found) >= most and not together:
                self.exhausted = False
                break
            if record is not None and not self._is_asked(record):
                if self._stops(record):
                    self.exhausted = False
                    break
            elif record is not None:
                found[record.event.uuid], last = read, record.event.position
            self._lanes[FOLDER] = read.mark
        return sorted(found.values(), key=lambda one: one.record.order if one.record else ("", 0))

    def _is_asked(self, record: FileRecord) -> bool:
        return record.name is None or record.source_id in self.objects

    def _stops(self, record: FileRecord) -> bool:
        """Whether the table is still to be registered. A TRUNCATE before its first event changes nothing, and shows
        no columns to register.
        """
        assert record.name is not None
        if record.event.change == Change.TRUNCATE:
            return False
        if record.source_id not in self.left_out and selects(self.selection, record.name):
            return True
        self.unasked.add(record.name.text)
        return False

    def _emit(self, record: FileRecord, read: Read, *, late: bool) -> None:
        at, event = _micros(record.event.source_timestamp), record.event
        if not self.in_order or event.position != self._own_position:
            self._nth, self._sequence, self._own_position = self._nth + 1, 0, event.position
        position = event_position(self.end.at, self._nth)
        told = _told(record, read, at)
        self._count(record, at)
        if record.name is None:
            message: Event = (Change(event.change), Half.WHOLE, event.payload, None, None, None, None)
            self._row(0, position, told, message)
            return
        captured = self.objects[record.source_id]
        known = self.schemas.get(captured.source_id)
        form = self._forms.form(record, captured, known, late=late)
        number = self._number(captured, record, form.schema)
        said = record.schema
        replaced = said is not None and said.replaced
        if form.schema is not known or replaced:
            self.schemas[captured.source_id] = form.schema
            self.changed.add(captured.source_id)
            payload = to_json(replace(form.schema, replaced=replaced))
            named = (*told[:2], None, *told[3:]) if said is None else told
            self._row(number, position, named, (Change.SCHEMA, Half.SCHEMA, payload, None, None, None, None))
        self.events.setdefault(captured.name.text, 0)
        if said is not None:
            return
        for one in events_of(form, record):
            self._row(number, position, told, one)
            self.events[captured.name.text] += 1

    def _row(self, number: int, position: str, told: tuple[Any, ...], event: Event) -> None:
        self.total += 1
        self._sequence += 1
        self._rows.append((number, position, *told, self._sequence, *event))

    def _count(self, record: FileRecord, at: int | None) -> None:
        """Events of one transaction that come one after another are one."""
        transaction = record.event.source_metadata["tx_id"]
        if transaction is None or transaction != self._transaction:
            self.transactions += 1
        self._transaction = transaction
        self.newest = at if at is not None else self.newest

    def _number(self, captured: CapturedObject, record: FileRecord, schema: TableSchema) -> int:
        known, name = self._numbers.get(captured.source_id), record.name
        assert name is not None
        if known is not None and known[0] is schema:
            told = self.facts[known[1]]
            if (told.schema, told.table) == (name.schema, name.table):
                return known[1]
        if name != captured.name:
            self.renamed[captured.name.text] = name.text
        self.facts.append(
            ObjectFacts(
                captured.name.folded, captured.source_id, name.schema, name.table, schema_key(schema), schema.keys
            )
        )
        self._numbers[captured.source_id] = schema, len(self.facts) - 1
        return len(self.facts) - 1

    def _invalid(self, read: Read, problem: str) -> EventFileInvalid:
        file, number = read.place
        return EventFileInvalid(place=f"{self.place}: {file}, {number}", problem=problem, remedy=_REMEDY)


def _micros(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // timedelta(microseconds=1)


def _told(record: FileRecord, read: Read, at: int | None) -> tuple[Any, ...]:
    """The columns of a row that do not depend on its table."""
    event, (file, number) = record.event, read.place
    return (
        f"{file}@{number}",
        at,
        event.uuid,
        event.source_metadata["tx_id"],
        event.read_method,
        list(event.sort_keys),
        event.position,
        event.sequence,
        *record.facts,
    )
