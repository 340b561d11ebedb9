"""A record of an event file, as a replication reads it: the event, and the facts of its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from tidemark.errors import EventUnreadable
from tidemark.model.codec import from_json
from tidemark.model.foreign_json import parsed
from tidemark.replication.model.replication import Column, ObjectName, TableSchema, UnifiedType
from tidemark.replication.planning.event_file_columns import bare_columns, with_keys
from tidemark.replication.planning.event_file_schemas import EXTENSION
from tidemark.replication.planning.event_files import FileEvent, event_of_avro, event_of_record
from tidemark.replication.planning.events import Change

__all__ = ["KEY_UNKNOWN", "EventFacts", "FileRecord", "TableKeys", "avro_record", "json_record"]

KEY_UNKNOWN = (
    "its events do not say what its key is. Name the columns of its key in the extra keys of the connection, [] for"
    " none"
)
TableKeys: TypeAlias = Callable[[ObjectName], "tuple[str, ...] | None"]
"""The columns of a table's key that somebody has named; None: nobody has."""

_INVALID = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
_WITHOUT_TABLE = (Change.MESSAGE.value,)
_schema_of = lru_cache(maxsize=64)(lambda text: from_json(TableSchema, text))


class EventFacts(NamedTuple):
    """Fields of `source_metadata` as texts, None where the source has no such thing."""

    connector: str | None = None
    database: str | None = None
    lsn: str | None = None
    log_file: str | None = None
    log_position: str | None = None
    scn: str | None = None
    rs_id: str | None = None
    ssn: str | None = None
    row_id: str | None = None


@dataclass(frozen=True)
class FileRecord:
    """`own`: Tidemark wrote it. `name`: of the table, None for an event without one. `keys`: the columns of the key
    that the event says, None if it does not. `columns`: those that its file says; None for JSON without a schema, whose
    values are in `bare`.
    """

    event: FileEvent
    own: bool
    name: ObjectName | None
    keys: tuple[str, ...] | None
    columns: tuple[Column, ...] | None
    bare: Mapping[str, Any]
    facts: EventFacts

    @property
    def source_id(self) -> str:
        """The identity of the table."""
        return self.event.object_id or ""

    @property
    def order(self) -> tuple[str, int]:
        """The place in the log of the source."""
        return self.event.position, self.event.sequence

    @property
    def schema(self) -> TableSchema | None:
        """Of a SCHEMA event. Raises ValueError."""
        if self.event.change != Change.SCHEMA:
            return None
        found: TableSchema = _schema_of(self.event.payload)
        return found

    def change(self, *, keyed: bool) -> Change:
        """The kind of the event. Datastream calls an update of MySQL and Oracle UPDATE-INSERT. A row without a key has
        these words, too.
        """
        said = str(self.event.change if self.own else self.event.source_metadata["change_type"] or self.event.change)
        if keyed and not self.own:
            said = {"UPDATE-INSERT": "UPDATE", "UPDATE-DELETE": "DELETE"}.get(said, said)
        return Change(said)

    def texts(self) -> dict[str, str | None]:
        """Canonical texts by column."""
        found: dict[str, str | None] = parsed(self.event.payload)
        return found

    def columns_after(self, known: TableSchema | None, keys: tuple[str, ...]) -> tuple[Column, ...]:
        """The columns of its table. `known`: before it. Raises ValueError."""
        return with_keys(bare_columns(self.bare, known) if self.columns is None else self.columns, keys)


def json_record(document: Any, columns: Callable[[str | None], tuple[Column, ...] | None]) -> FileRecord:
    """Of a line that was parsed with JsonNumber. `columns`: by a `schema_key`. Raises EventUnreadable."""
    if not isinstance(document, Mapping):
        raise EventUnreadable(problem="it is not a JSON object")
    told = columns(document.get("schema_key"))
    event = event_of_record(document, _kinds(told))
    return _record(event, document, told, document["payload"])


def avro_record(document: Mapping[str, Any], header: Mapping[str, Any], columns: tuple[Column, ...]) -> FileRecord:
    """Of a record as a reader with logical types gives it. Raises EventUnreadable."""
    return _record(event_of_avro(document, header), document, columns, {})


@lru_cache(maxsize=64)
def _kinds(columns: tuple[Column, ...] | None) -> Mapping[str, UnifiedType]:
    return {} if columns is None else {one.name: one.type for one in columns}


def _record(
    event: FileEvent, document: Mapping[str, Any], columns: tuple[Column, ...] | None, bare: Mapping[str, Any]
) -> FileRecord:
    try:
        said = document["source_metadata"]
        own = document.get(EXTENSION) is not None
        name = None
        if event.change not in _WITHOUT_TABLE:
            name = ObjectName(str(event.source_metadata["schema"] or ""), str(event.source_metadata["table"] or ""))
            if not name.table:
                raise EventUnreadable(problem="its source_metadata names no table")
        Change(str(event.change))
        keys = None if columns is None else tuple(one.name for one in columns if one.key)
        told = said.get("primary_keys") if said.get("primary_keys") is not None else said.get("replication_index")
        if not own or columns is None:
            keys = None if told is None else tuple(str(one) for one in told)
        return FileRecord(event, own, name, keys, columns, bare, _facts(event, said))
    except _INVALID as error:
        raise EventUnreadable(problem=f"{type(error).__name__}: {error}") from error


def _facts(event: FileEvent, said: Mapping[str, Any]) -> EventFacts:
    found = {name: _text(said.get(name)) for name in EventFacts._fields}
    if found["connector"] is None:
        source = event.read_method.split("-", 1)[0]
        found["connector"] = {"postgres": "postgresql"}.get(source, source)
    return EventFacts(**found)


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)
