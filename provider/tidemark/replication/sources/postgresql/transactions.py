"""A slot's messages become rows of events, transaction by transaction, with little memory and at little cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tidemark.model.codec import to_json
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.events import Change, Event, EventForm, Half, json_text, schema_key
from tidemark.replication.planning.positions import position_of_lsn
from tidemark.replication.sources.change_log import BatchFacts, ObjectFacts
from tidemark.replication.sources.postgresql import pgoutput
from tidemark.replication.sources.postgresql.hidden_columns import HideOf
from tidemark.replication.sources.postgresql.relations import SchemaOf, form_of

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject
    from tidemark.replication.sources.postgresql.pgoutput import Relation

__all__ = ["HEARTBEAT_PREFIX", "EventRow", "TransactionReader"]

HEARTBEAT_PREFIX = "tidemark"  # of Tidemark's own messages in the log

EventRow: TypeAlias = tuple[
    int, int, "int | None", "int | None", int, int, int, Change, Half, str, "str | None", "str | None",
    "tuple[str, ...] | None", "str | None",
]  # fmt: skip
"""Number of the object's facts (0: of no object), commit position, transaction id, its commit time (microseconds),
place in the log, how many changes were at that place, sequence; then the Event.
"""


_Handler: TypeAlias = Callable[[int, bytes], None]


class _Target(NamedTuple):
    facts: int
    form: EventForm
    name: str


@dataclass
class TransactionReader(BatchFacts):
    """Reads one batch: transactions that commit in [start, end), until it has `max_events` and the last is whole.

    `objects` by their id; `schemas`: the newest of each that the log has, which are kept up to date. A chunk of rows
    has about `chunk_rows`, and `chunk_size` characters of payload; it may end in the middle of a transaction.
    """

    objects: Mapping[str, CapturedObject]
    schemas: dict[str, TableSchema]
    schema_of: SchemaOf
    start: int
    end: int
    max_events: int
    heartbeat: bool = True  # whether one is wanted
    hide: HideOf | None = None  # how columns are hidden, where some are
    chunk_rows: int = 20_000
    chunk_size: int = 8 << 20
    behind: int = 0  # behind the last transaction that was read

    def __post_init__(self) -> None:
        self._rows: list[EventRow] = []
        self._size = 0
        self._relations: dict[int, Relation] = {}
        self._targets: dict[int, _Target | None] = {}
        self._commit, self._xid, self._at = 0, None, None  # type: tuple[int, int | None, int | None]
        self._lsn = self._nth = self._sequence = 0
        self._done = False
        self.behind = self.start
        self._passing: dict[int, _Handler] = {
            pgoutput.BEGIN: self._begin,
            pgoutput.COMMIT: self._end,
            pgoutput.RELATION: self._relation,
        }
        self._reading: dict[int, _Handler] = {
            **self._passing,
            pgoutput.INSERT: self._insert,
            pgoutput.UPDATE: self._update,
            pgoutput.DELETE: self._delete,
            pgoutput.TRUNCATE: self._truncate,
            pgoutput.MESSAGE: self._message,
        }
        self._handlers = self._reading

    @property
    def upto(self) -> LogPosition:
        """Every transaction that commits before it was read."""
        return position_of_lsn(self.end if self.exhausted else self.behind)

    def chunks(self, messages: Iterable[tuple[int, bytes]]) -> Iterator[list[EventRow]]:
        """Rows in the order of (commit position, sequence). Chunks that are taken off before the end are no whole
        batch.

        Raises what `schema_of` does; ValueError, IndexError, struct.error for what is no message.
        """
        for lsn, data in messages:
            handler = self._handlers.get(data[0])
            if handler is not None:
                handler(lsn, data)
                if self._done:
                    break
                if len(self._rows) >= self.chunk_rows or self._size >= self.chunk_size:
                    yield self._taken()
        self.exhausted = self.exhausted or not self._done
        if self._rows:
            yield self._taken()

    def _taken(self) -> list[EventRow]:
        rows, self._rows, self._size = self._rows, [], 0
        return rows

    def _begin(self, lsn: int, data: bytes) -> None:
        begin = pgoutput.decode_begin(data)
        self._done = self.exhausted = begin.commit_lsn >= self.end
        self._handlers = self._passing if begin.commit_lsn < self.start else self._reading
        self._enter(begin)

    def _enter(self, begin: pgoutput.Begin) -> None:
        self._commit, self._at, self._xid = begin
        self._lsn = self._nth = self._sequence = 0

    def _end(self, lsn: int, data: bytes) -> None:
        self.behind = max(self.behind, pgoutput.decode_commit(data).end_lsn)
        self._handlers = self._reading
        if self._sequence:
            self.transactions += 1
            self.newest = self._at
        self._done = self.total >= self.max_events

    def _relation(self, lsn: int, data: bytes) -> None:
        relation = pgoutput.decode_relation(data)
        self._relations[relation.oid] = relation
        self._targets.pop(relation.oid, None)

    def _insert(self, lsn: int, data: bytes) -> None:
        oid, new = pgoutput.decode_insert(data)
        self._count(lsn)
        target = self._target(oid)
        if target is not None:
            self._add(target, target.form.inserted(new))

    def _update(self, lsn: int, data: bytes) -> None:
        oid, old, old_is_whole, new, unchanged = pgoutput.decode_update(data)
        self._count(lsn)
        target = self._target(oid)
        if target is not None:
            for event in target.form.updated(old, old_is_whole, new, unchanged):
                self._add(target, event)

    def _delete(self, lsn: int, data: bytes) -> None:
        oid, old, old_is_whole = pgoutput.decode_delete(data)
        self._count(lsn)
        target = self._target(oid)
        if target is not None:
            self._add(target, target.form.deleted(old, old_is_whole))

    def _truncate(self, lsn: int, data: bytes) -> None:
        self._lsn = lsn
        for oid in pgoutput.decode_truncate(data).oids:
            self._nth = oid  # tells them apart however many are published
            target = self._target(oid)
            if target is not None:
                self._add(target, (Change.TRUNCATE, Half.WHOLE, "{}", None, None, None, None))
        self._nth = 1

    def _message(self, lsn: int, data: bytes) -> None:
        """One outside a transaction has a place of its own in the order, where it was written."""
        message = pgoutput.decode_message(data)
        if not message.transactional:
            if not self.start <= message.lsn < self.end:
                return
            self._enter(pgoutput.Begin(message.lsn, 0, 0))
            self._at = self._xid = None
        self._count(message.lsn)
        ours = message.prefix == HEARTBEAT_PREFIX
        if ours and not self.heartbeat:
            return
        self.heartbeat = self.heartbeat and not ours
        content = message.content.decode("utf-8", "backslashreplace")
        payload = f'{{"prefix":{json_text(message.prefix)},"content":{json_text(content)}}}'
        change = Change.HEARTBEAT if ours else Change.MESSAGE
        self._row(0, (change, Half.WHOLE, payload, None, None, None, None))

    def _count(self, lsn: int) -> None:
        """Rows of one COPY have the same place."""
        if lsn == self._lsn:
            self._nth += 1
        else:
            self._lsn, self._nth = lsn, 1

    def _add(self, target: _Target, event: Event) -> None:
        self._row(target.facts, event)
        self.events[target.name] += 1

    def _row(self, facts: int, event: Event) -> None:
        self._sequence += 1
        self.total += 1
        self._size += len(event[2])
        self._rows.append((facts, self._commit, self._xid, self._at, self._lsn, self._nth, self._sequence, *event))

    def _target(self, oid: int) -> _Target | None:
        try:
            return self._targets[oid]
        except KeyError:
            target = self._targets[oid] = self._made(self._relations[oid])
            return target

    def _made(self, relation: Relation) -> _Target | None:
        """The target of the relation's events from here on; if its schema is new, that is an event itself."""
        captured = self.objects.get(str(relation.oid))
        named = f"{relation.schema}.{relation.table}"
        if captured is None:
            self.unasked.add(named)
            return None
        if named != captured.name.text:
            self.renamed[captured.name.text] = named
        known = self.schemas.get(captured.source_id)
        schema = self.schema_of(relation, captured, known)
        digest = schema_key(schema)
        self.facts.append(
            ObjectFacts(captured.name.folded, captured.source_id, relation.schema, relation.table, digest, schema.keys)
        )
        target = _Target(len(self.facts) - 1, form_of(relation, schema, self.hide), captured.name.text)
        self.events.setdefault(target.name, 0)
        if schema is not known:
            self.schemas[captured.source_id] = schema
            self.changed.add(captured.source_id)
            self._row(target.facts, (Change.SCHEMA, Half.SCHEMA, to_json(schema), None, None, None, None))
        return target
