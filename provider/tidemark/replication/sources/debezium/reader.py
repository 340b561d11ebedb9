"""Records become rows of events, envelope by envelope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.errors import EnvelopeInvalid
from tidemark.model.codec import to_json
from tidemark.replication.model.replication import LogPosition, Selection, TableSchema
from tidemark.replication.planning.debezium import (
    Envelope,
    Landed,
    NamedTable,
    Notice,
    NoticeKind,
    message_of,
    message_text,
    read_method,
    table_of,
)
from tidemark.replication.planning.debezium_facts import SourceFacts, facts_of
from tidemark.replication.planning.debezium_marks import Mark, event_position
from tidemark.replication.planning.debezium_rows import RowRules
from tidemark.replication.planning.debezium_tables import EnvelopeKeys, TableForms, events_of
from tidemark.replication.planning.events import Change, Event, Half, json_text, schema_key
from tidemark.replication.planning.selection import selects
from tidemark.replication.sources.change_log import BatchFacts, ObjectFacts
from tidemark.replication.sources.debezium.inputs import Record

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject

__all__ = ["EnvelopeReader"]

_NO_FACTS: tuple[Any, ...] = (None,) * 12
_EXCLUDE = "Or exclude its table."


class _Pending(NamedTuple):
    """A row that went, which the next envelope may say to have moved. `mark`: before it."""

    envelope: Envelope
    record: Record
    mark: tuple[Any, ...] | None


@dataclass
class EnvelopeReader(BatchFacts):
    """Reads one batch: envelopes behind the lanes of `start`, until there are `max_events`.

    `objects` by their id; `schemas`: the newest of each that the log has, which are kept up to date. It stops before
    the first envelope of a table that is selected and not registered. The next look takes it up.
    `left_out`: ids of registered tables that are not captured.
    """

    objects: Mapping[str, CapturedObject]
    schemas: dict[str, TableSchema]
    selection: Selection
    left_out: frozenset[str]
    keys: EnvelopeKeys
    rules: RowRules
    start: Mark
    end: Mark
    has_siblings: Callable[[str], bool]
    place: str
    remedy: Callable[[str], str]
    max_events: int
    heartbeat: bool = False
    chunk_rows: int = 20_000
    chunk_size: int = 8 << 20

    def __post_init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._size = 0
        self._lanes = dict(self.start.lanes)
        self._nth = self.start.nth or 0 if self.start.at == self.end.at else 0
        self._pending: _Pending | None = None
        self._transaction: str | None = None
        self._numbers: dict[str, tuple[TableSchema, int]] = {}
        self._forms = TableForms(self.keys, self.rules)

    @property
    def upto(self) -> LogPosition:
        """Every envelope before it was read."""
        number = None if self.exhausted else self._nth
        return Mark(self.end.at, number, self._lanes).position

    def chunks(self, records: Iterable[Record]) -> Iterator[list[tuple[Any, ...]]]:
        """Rows in the order of (position, sequence). Raises EnvelopeInvalid."""
        stopped = False
        for record in records:
            if self._pending is not None and record.lane != self._pending.record.lane:
                stopped = self._hold_back() or stopped
            if not self._took(record) or (self.total >= self.max_events and self._pending is None):
                stopped = True
                break
            if len(self._rows) >= self.chunk_rows or self._size >= self.chunk_size:
                yield self._taken()
        if not stopped or self._pending is not None:
            stopped = self._hold_back() or stopped
        self.exhausted = not stopped
        if self._rows:
            yield self._taken()

    def _taken(self) -> list[tuple[Any, ...]]:
        rows, self._rows, self._size = self._rows, [], 0
        return rows

    def _hold_back(self) -> bool:
        """At the end of a lane: whether a deleted row waits for the next run, since its other half follows. A header
        says so; without one the row is gone. In a topic of several partitions the other half may be anywhere.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            return False
        if not pending.envelope.new_key or self.has_siblings(pending.record.lane):
            self._emit(pending.envelope, None, pending.record)
            return False
        lane = pending.record.lane
        if pending.mark is None:
            self._lanes.pop(lane, None)
        else:
            self._lanes[lane] = pending.mark
        return True

    def _took(self, record: Record) -> bool:
        """Whether the record was read; False before one of a table that is still to be registered."""
        before = self._lanes.get(record.lane)
        if record.landed is not None:
            try:
                message = message_of(record.landed, avro=record.avro)
                if not self._read(message, record, before):
                    return False
            except ValueError as error:
                if not self._is_of_others(record.landed):
                    raise self._invalid(record, str(error)) from error
        self._lanes[record.lane] = record.mark
        return True

    def _is_of_others(self, landed: Landed) -> bool:
        """Whether it names a table that is not captured, so that its form does not matter."""
        table = table_of(landed)
        return table is not None and table.source_id not in self.objects and self._passes(table)

    def _read(self, message: Envelope | Notice, record: Record, before: tuple[Any, ...] | None) -> bool:
        if isinstance(message, Notice):
            if message.kind is NoticeKind.DDL:
                self._message(record, "debezium.ddl", message.text, None)
            return True
        if message.op == "m":
            self._message(record, str(message.message.get("prefix") or ""), message_text(message), message.at)
            return True
        if self.objects.get(message.source_id) is None:
            return self._is_empty(message, record) or self._passes(message)
        self._pass_on(message, record)
        if message.op == "d":
            self._pending = _Pending(message, record, before)
        return True

    def _is_empty(self, message: Envelope, record: Record) -> bool:
        """A TRUNCATE before the first row of a table changes nothing. It is not registered, as it shows no columns."""
        if message.op != "t" or message.source_id in self.left_out or not selects(self.selection, message.name):
            return False
        self._require_order(message, record)
        return True

    def _passes(self, message: Envelope | NamedTable) -> bool:
        if message.source_id not in self.left_out and selects(self.selection, message.name):
            return False
        self.unasked.add(message.name.text)
        return True

    def _pass_on(self, message: Envelope, record: Record) -> None:
        """Emit it, with the row that went before it if it is the same row under another key."""
        pending, self._pending = self._pending, None
        gone = None if pending is None else pending.envelope
        if pending is not None and gone is not None and not _is_moved(gone, message):
            self._emit(gone, None, pending.record)
            gone = None
        if message.op != "d":
            self._emit(message, gone, record)

    def _emit(self, envelope: Envelope, gone: Envelope | None, record: Record) -> None:
        try:
            self._put(envelope, gone, record)
        except ValueError as error:
            raise self._invalid(record, str(error)) from error

    def _put(self, envelope: Envelope, gone: Envelope | None, record: Record) -> None:
        """Raises ValueError."""
        captured = self.objects[envelope.source_id]
        self._require_order(envelope, record)
        known = self.schemas.get(captured.source_id)
        form = self._forms.form(envelope, captured, known)
        self._nth += 1
        of = facts_of(envelope)
        told = _origin(record), *_told(envelope, of)
        self._count(envelope, envelope.transaction or of.tx_id)
        number = self._number(captured, envelope, form.schema)
        position = event_position(self.end.at, self._nth)
        sequence = 0
        if form.schema is not known:
            self.schemas[captured.source_id] = form.schema
            self.changed.add(captured.source_id)
            schema_event = (Change.SCHEMA, Half.SCHEMA, to_json(form.schema), None, None, None, None)
            sequence = self._row(number, position, told, 0, schema_event)
        self.events.setdefault(captured.name.text, 0)
        for event in events_of(form, envelope, gone):
            sequence = self._row(number, position, told, sequence, event)
            self.events[captured.name.text] += 1

    def _require_order(self, envelope: Envelope, record: Record) -> None:
        """Raises ValueError."""
        if envelope.op == "t" and self.has_siblings(record.lane):
            raise ValueError(
                "a TRUNCATE, in a table whose changes are in several partitions, so that nobody knows which of them"
                " came before it"
            )

    def _message(self, record: Record, prefix: str, content: str, at: int | None) -> None:
        if self._pending is not None:
            self._emit(self._pending.envelope, None, self._pending.record)
            self._pending = None
        self._nth += 1
        payload = f'{{"prefix":{json_text(prefix)},"content":{json_text(content)}}}'
        event: Event = (Change.MESSAGE, Half.WHOLE, payload, None, None, None, None)
        self._row(0, event_position(self.end.at, self._nth), (_origin(record), at, *_NO_FACTS), 0, event)

    def _row(self, number: int, position: str, told: tuple[Any, ...], sequence: int, event: Event) -> int:
        self.total += 1
        self._size += len(event[2])
        self._rows.append((number, position, *told, sequence + 1, *event))
        return sequence + 1

    def _count(self, envelope: Envelope, transaction: str | None) -> None:
        """Envelopes of one transaction that come one after another are one."""
        if transaction is None or transaction != self._transaction:
            self.transactions += 1
        self._transaction = transaction
        self.newest = envelope.at if envelope.at is not None else self.newest

    def _number(self, captured: CapturedObject, envelope: Envelope, schema: TableSchema) -> int:
        known = self._numbers.get(captured.source_id)
        if known is not None and known[0] is schema:
            return known[1]
        name = envelope.name
        self.facts.append(
            ObjectFacts(
                captured.name.folded, captured.source_id, name.schema, name.table, schema_key(schema), schema.keys
            )
        )
        self._numbers[captured.source_id] = schema, len(self.facts) - 1
        return len(self.facts) - 1

    def _invalid(self, record: Record, problem: str) -> EnvelopeInvalid:
        """A table can only be excluded if the record names it."""
        (file, number), remedy = record.place, self.remedy(record.lane)
        named = record.landed is not None and table_of(record.landed) is not None
        remedy = f"{remedy} {_EXCLUDE}" if named else remedy
        return EnvelopeInvalid(place=f"{self.place}: {file}, {number}", problem=problem, remedy=remedy)


def _is_moved(gone: Envelope, message: Envelope) -> bool:
    """Whether an envelope is the second half of a moved key: by its header, or by its place in the database's log."""
    if message.op != "c" or message.source_id != gone.source_id:
        return False
    if message.old_key and gone.new_key:
        return True
    return not (message.with_key and gone.new_key) and facts_of(message).place == facts_of(gone).place != ()


def _origin(record: Record) -> str:
    """The same whenever the record is read."""
    name, number = record.place
    return f"{name}@{number}"


def _told(envelope: Envelope, of: SourceFacts) -> tuple[Any, ...]:
    return (
        envelope.at,
        of.tx_id,
        read_method(envelope),
        list(of.place),
        envelope.connector,
        of.database,
        of.lsn,
        of.log_file,
        of.log_position,
        of.scn,
        of.rs_id,
        of.ssn,
        of.row_id,
    )
