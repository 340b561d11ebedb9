"""A binary log's events become rows of events, transaction by transaction, with little memory and at little cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tidemark.errors import SourceRefused, SourceSetBack, SourceUnreachable
from tidemark.model.codec import to_json
from tidemark.replication.model.replication import LogPosition, ObjectName, TableSchema
from tidemark.replication.planning.events import Change, Event, EventForm, Half, schema_key
from tidemark.replication.planning.gtids import Gtids, Pending
from tidemark.replication.planning.positions import FilePlace, position_text
from tidemark.replication.sources.change_log import BatchFacts, ObjectFacts, Origin
from tidemark.replication.sources.mysql import binlog
from tidemark.replication.sources.mysql.binlog import Kind
from tidemark.replication.sources.mysql.columns import Reader
from tidemark.replication.sources.mysql.names import source_id_of
from tidemark.replication.sources.mysql.refusals import REFUSED
from tidemark.replication.sources.mysql.rows import rows_of_event
from tidemark.replication.sources.mysql.statements import Act, Effect, effects_of, is_change_of_rows, words_of

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject
    from tidemark.replication.sources.mysql.alterations import Alteration
    from tidemark.replication.sources.mysql.log_stream import LoggedEvent
    from tidemark.replication.sources.mysql.schemas import LoggedTable

__all__ = ["EventRow", "TransactionReader"]

EventRow: TypeAlias = tuple[
    int, str, "str | None", "int | None", int, str, int, int, int, int, Change, Half, str, "str | None", "str | None",
    "tuple[str, ...] | None", "str | None",
]  # fmt: skip
"""Number of the object's facts, commit position, GTID, commit time (microseconds), id of the server that committed it
first, file and place of the event, its number among those with rows in its transaction, the row in it, sequence; then
the Event.
"""

TableOf: TypeAlias = "Callable[[binlog.TableMap, CapturedObject, TableSchema | None], LoggedTable]"
Altered: TypeAlias = "Callable[[Alteration, CapturedObject, TableSchema], TableSchema]"
CreatedAt: TypeAlias = Callable[[ObjectName], datetime | None]
"""The time from which on the server has a table of that name, as it is now."""

_SECOND = 1_000_000
_BEGINNINGS = frozenset({("START", "TRANSACTION"), ("XA", "START"), ("XA", "BEGIN"), ("XA", "END")})


class _Target(NamedTuple):
    facts: int
    form: EventForm
    readers: tuple[Reader, ...]
    name: str


@dataclass
class TransactionReader(BatchFacts):
    """Reads one batch: transactions that begin in [start, end) of the log, until it has `max_events` and the last is
    whole.

    The place of a transaction is where its first event begins. `objects` by their id; `schemas`: the newest of each
    that the log has, which are kept up to date. A chunk of rows has about `chunk_rows`, and `chunk_size` characters of
    payload; it may end in the middle of a transaction. `source`: for errors. `server`: whose log it is. `gtids`: of all
    transactions before `start`, or None if they are not known; they grow with the batch. `again`: transactions behind
    `start` that another server's log had, which are left out. The batch has all of them.
    """

    objects: Mapping[str, CapturedObject]
    schemas: dict[str, TableSchema]
    table_of: TableOf
    altered: Altered
    created_at: CreatedAt
    start: FilePlace
    end: FilePlace
    max_events: int
    source: str
    mariadb: bool = False
    any_case: bool = False  # names in statements may be in another case than those of tables (lower_case_table_names)
    chunk_rows: int = 20_000
    chunk_size: int = 8 << 20
    heartbeat: bool = False  # these logs keep nothing for a reader
    server: str = ""
    gtids: Gtids | None = None
    again: Pending | None = None

    def __post_init__(self) -> None:
        self._rows: list[EventRow] = []
        self._size = 0
        self._maps: dict[int, bytes] = {}
        self._targets: dict[bytes, _Target | None] = {}
        self._current: dict[str, bytes] = {}  # the newest form of each table, by its id
        self._left: set[str] = set()  # ids whose table left its name
        self._dropped: dict[str, set[str]] = {}  # columns that went since the newest form, by id
        self._commit, self._gtid, self._at, self._server = "", None, 0, 0  # type: tuple[str, str | None, int, int]
        self._nth = self._sequence = 0
        self._inside = self._done = self._left_out = False
        self._single = self._two_phase = False  # `_single`: the transaction is one statement
        self._behind = self.start
        self._handlers: dict[int, Callable[[LoggedEvent], None]] = {
            Kind.GTID: self._begin,
            Kind.ANONYMOUS_GTID: self._begin,
            Kind.TAGGED_GTID: self._begin,
            Kind.MARIADB_GTID: self._begin,
            **dict.fromkeys(binlog.QUERIES, self._query),
            Kind.XID: self._end,
            Kind.XA_PREPARE: self._prepared,
            Kind.TABLE_MAP: self._table_map,
            **dict.fromkeys(REFUSED, self._refuse),
            **dict.fromkeys(binlog.ROWS, self._changed_rows),
        }

    @property
    def upto(self) -> LogPosition:
        """Every transaction that begins before it was read."""
        return (self.end if self.exhausted else self._behind).position

    @property
    def origin(self) -> Origin:
        """Of `upto`."""
        return Origin(self.server, "" if self.gtids is None else self.gtids.text)

    def took_over(self, before: str) -> None:
        """Begin the batch with an event that says so: this server continues the log of the server `before`."""
        place = self.start
        payload = to_json({"failover": {"from": before, "to": self.server, "gtids": self.origin.gtids}})
        self.total += 1
        self._rows.append(
            (0, place.position.commit, None, None, 0, place.file, place.offset, 0, 0, 0,
             Change.HEARTBEAT, Half.WHOLE, payload, None, None, None, None)
        )  # fmt: skip

    def chunks(self, events: Iterable[LoggedEvent]) -> Iterator[list[EventRow]]:
        """Rows in the order of (commit position, sequence). Chunks that are taken off before the end are no whole
        batch. Raises SourceRefused for a transaction that cannot be read, and SourceSetBack for one that was captured.
        Raises what `table_of` does.
        """
        for event in events:
            handler = self._handlers.get(event.header.kind)
            if handler is not None and not (self._left_out and event.header.kind not in binlog.GTIDS):
                if not self._commit:
                    self._require_beginning(event)
                handler(event)
                if self._done:
                    break
                if len(self._rows) >= self.chunk_rows or self._size >= self.chunk_size:
                    yield self._taken()
        if self._inside and not self._done:
            raise SourceUnreachable(source=self.source, problem=f"its log ends within a transaction ({self._commit})")
        self.exhausted = self.exhausted or not self._done
        if self._rows:
            yield self._taken()

    def _taken(self) -> list[EventRow]:
        rows, self._rows, self._size = self._rows, [], 0
        return rows

    def _require_beginning(self, event: LoggedEvent) -> None:
        """The first transaction is whole. Rows of one whose beginning was not read would have no position."""
        if event.header.kind not in (*binlog.GTIDS, Kind.INCIDENT):
            raise SourceRefused(
                source=self.source,
                what=f"its log from {self.start.text} on",
                problem="the position is inside a transaction, not where one begins",
                remedy="Recover the replication from where a transaction begins, or from now.",
            )

    def _begin(self, event: LoggedEvent) -> None:
        place = FilePlace.of_file(event.file, event.start, self.start.epoch)
        self._done = self.exhausted = place.position >= self.end.position
        if self._done:
            return
        kind, header = event.header.kind, event.header
        gtid = binlog.gtid_of(header, event.data)
        self._left_out = self.again is not None and self.again.take(gtid.text)
        self._inside = not self._left_out
        if self._left_out:
            return
        if self.gtids is not None and gtid.text:
            if self.gtids.had(gtid.text):
                raise SourceSetBack(source=self.source, found=gtid.text, expected=self.gtids.text)
            self.gtids.add(gtid.text)
        self._commit, self._gtid, self._server = place.position.commit, gtid.text or None, header.server_id
        self._at = gtid.at or header.at * _SECOND
        self._nth = self._sequence = 0
        self._two_phase = gtid.two_phase
        self._single = kind != Kind.MARIADB_GTID or gtid.standalone
        self._maps.clear()

    def _end(self, event: LoggedEvent) -> None:
        if self._two_phase and self._sequence:
            raise self._refused("it is a two-phase transaction (XA), whose outcome comes later")
        self._inside = self._two_phase = False
        self._behind = FilePlace.of_file(event.file, event.end, self.start.epoch)
        if self._sequence:
            self.transactions += 1
            self.newest = self._at
        self._done = self.total >= self.max_events and not self.again

    def _query(self, event: LoggedEvent) -> None:
        query = binlog.decode_query(event.data, event.header.kind)
        first, second, *_ = (*words_of(query.statement, 2), "", "")
        if first == "BEGIN" or (first, second) in _BEGINNINGS:
            self._single = False
        elif first == "COMMIT":
            self._end(event)
        elif first == "ROLLBACK":
            self._rolled_back(event, whole=second != "TO")
        elif first not in ("SAVEPOINT", "RELEASE"):
            self._statement(event, query)
            if query.statement.rstrip().upper().endswith("START TRANSACTION"):  # CREATE TABLE … SELECT
                self._single = False
            elif self._single:
                self._end(event)

    def _rolled_back(self, event: LoggedEvent, *, whole: bool) -> None:
        """It is in the log because tables without transactions were changed, too."""
        if self._sequence:
            raise self._refused("it was rolled back, and has changes of tables whose engine has no transactions")
        if whole:
            self._end(event)

    def _statement(self, event: LoggedEvent, query: binlog.Query) -> None:
        if is_change_of_rows(query.statement) and self._mentions(query):
            raise self._refused(
                "it is in STATEMENT format, without the rows that it changes",
                "Run SET GLOBAL binlog_format = ROW, also for open sessions, then recover the replication from a"
                " position behind it, and backfill its tables.",
            )
        for effect in effects_of(query.statement, query.schema):
            captured = self._named(source_id_of(effect.name))
            if captured is not None:
                self._effect(event, effect, captured)

    def _named(self, source_id: str) -> CapturedObject | None:
        if not self.any_case:
            return self.objects.get(source_id)
        return next((one for one in self.objects.values() if one.source_id.lower() == source_id.lower()), None)

    def _mentions(self, query: binlog.Query) -> bool:
        """A statement of rows in the schema of an object, or with its table's name in it. A function may change any
        table of its schema.
        """
        names = [one.name for one in self.objects.values()]
        by_function = words_of(query.statement, 1) == ("SELECT",)
        return any(
            query.schema == one.schema
            or one.table in query.statement
            or (by_function and one.schema in query.statement)
            for one in names
        )

    def _effect(self, event: LoggedEvent, effect: Effect, captured: CapturedObject) -> None:
        source_id, act = captured.source_id, effect.act
        if act is Act.LEFT:
            self._left.add(source_id)
        elif act is Act.TRUNCATED:
            self._truncated(event, captured)
        elif act is Act.ALTERED:
            self._altered(event, effect.alteration, captured)
        elif act is not Act.CAME_IF_ABSENT or source_id in self._left or self._is_newer(captured.name):
            self._replace(event, captured)

    def _truncated(self, event: LoggedEvent, captured: CapturedObject) -> None:
        """The log has a schema of each object before its first event."""
        known, self._nth = self.schemas.get(captured.source_id), self._nth + 1
        schema = known or captured.registered or TableSchema(())
        facts = self._facts_of(captured, schema) if known else self._new_schema(event, captured, schema)
        self._row(event, facts, 0, (Change.TRUNCATE, Half.WHOLE, "{}", None, None, None, None))
        self.events[captured.name.text] = self.events.get(captured.name.text, 0) + 1

    def _altered(self, event: LoggedEvent, by: Alteration, captured: CapturedObject) -> None:
        """The log tells at once that columns went, and which values rows have in those that came. So a later batch
        knows it, and does not ask the catalog of its time.
        """
        known = self.schemas.get(captured.source_id) or captured.registered
        if known is None:
            return
        names = {column.name.lower() for column in known.columns}
        dropped = self._dropped.setdefault(captured.source_id, set())
        came = by.come | (by.if_absent & dropped)
        if came & (names | dropped) or by.dropped & {name.lower() for name in known.keys}:
            self._replace(event, captured)
            return
        dropped |= by.dropped & names
        schema = self.altered(by, captured, known)
        if schema is not known:
            self._nth += 1
            self._new_schema(event, captured, schema)
            self._current.pop(captured.source_id, None)

    def _is_newer(self, name: ObjectName) -> bool:
        """Whether the table of now may have come with this transaction, or later."""
        created = self.created_at(name)
        return created is None or created.timestamp() * _SECOND >= self._at - _SECOND

    def _replace(self, event: LoggedEvent, captured: CapturedObject) -> None:
        """The object is another table from here on: no event has the rows that it came with."""
        self._left.discard(captured.source_id)
        self._dropped.pop(captured.source_id, None)
        known = self.schemas.get(captured.source_id) or captured.registered
        if known is not None:
            self._nth += 1
            self._new_schema(event, captured, replace(known, replaced=True))
            self._current.pop(captured.source_id, None)

    def _table_map(self, event: LoggedEvent) -> None:
        data = event.data[binlog.HEADER :]
        self._maps[int.from_bytes(data[:6], "little")] = data

    def _changed_rows(self, event: LoggedEvent) -> None:
        kind = event.header.kind
        head = binlog.decode_rows_head(event.data, kind)
        self._nth += 1
        if head.columns == 0:  # the end of a statement whose rows are in the events before
            return
        target = self._target(event, self._maps[head.table_id])
        if target is None:
            return
        if not head.whole:
            raise self._refused(
                "its rows lack columns (binlog_row_image)",
                "Run SET GLOBAL binlog_row_image = FULL, also for open sessions, then recover the replication from a"
                " position behind it, and backfill its tables.",
            )
        row = -1
        for row, events in enumerate(rows_of_event(event.data, head, kind, target.readers, target.form)):
            for one in events:
                self._row(event, target.facts, row, one)
            self.events[target.name] += len(events)

    def _row(self, event: LoggedEvent, facts: int, row: int, one: Event) -> None:
        self._sequence += 1
        self.total += 1
        self._size += len(one[2])
        self._rows.append(
            (facts, self._commit, self._gtid, self._at, self._server, event.file, event.start, self._nth, row,
             self._sequence, *one)
        )  # fmt: skip

    def _target(self, event: LoggedEvent, data: bytes) -> _Target | None:
        try:
            return self._targets[data]
        except KeyError:
            table = binlog.decode_table_map(bytes(binlog.HEADER) + data, mariadb=self.mariadb)
            source_id = source_id_of(ObjectName(table.schema, table.table))
            self._targets.pop(self._current.get(source_id, b""), None)  # the table may become again what it was
            self._current[source_id] = data
            target = self._targets[data] = self._made(event, table, source_id)
            return target

    def _made(self, event: LoggedEvent, table: binlog.TableMap, source_id: str) -> _Target | None:
        """The target of the table's events from here on; if its schema is new, that is an event itself."""
        captured = self.objects.get(source_id)
        if captured is None:
            return None
        self._dropped.pop(source_id, None)
        known = self.schemas.get(source_id)
        logged = self.table_of(table, captured, known)
        self.events.setdefault(captured.name.text, 0)
        if logged.schema is not known:
            facts = self._new_schema(event, captured, logged.schema)
        else:
            facts = self._facts_of(captured, logged.schema)
        return _Target(facts, logged.form, logged.readers, captured.name.text)

    def _new_schema(self, event: LoggedEvent, captured: CapturedObject, schema: TableSchema) -> int:
        facts = self._facts_of(captured, schema)
        self.schemas[captured.source_id] = schema
        self.changed.add(captured.source_id)
        self._row(event, facts, 0, (Change.SCHEMA, Half.SCHEMA, to_json(schema), None, None, None, None))
        return facts

    def _facts_of(self, captured: CapturedObject, schema: TableSchema) -> int:
        name = captured.name
        facts = ObjectFacts(name.folded, captured.source_id, name.schema, name.table, schema_key(schema), schema.keys)
        self.facts.append(facts)
        return len(self.facts) - 1

    def _prepared(self, event: LoggedEvent) -> None:
        """The end of an XA transaction: committed if it has one phase, else its outcome comes later."""
        self._two_phase = not event.data[binlog.HEADER]
        self._end(event)

    def _refuse(self, event: LoggedEvent) -> None:
        raise self._refused(*REFUSED[event.header.kind])

    def _refused(self, problem: str, remedy: str | None = None) -> SourceRefused:
        position = position_text(LogPosition(self._commit))
        what = f"the transaction at {position}"
        remedy = remedy or "Recover the replication from a position behind it, and backfill its tables."
        return SourceRefused(source=self.source, what=what, problem=problem, remedy=remedy)
