"""Debezium's messages: envelopes of changes, and the messages beside them, by their documented forms.

A landed record is a JSON document. It is the value alone, or an object with `key`, `value` and `headers`. Value and key
are what Kafka Connect writes, with their schema (`{"schema": …, "payload": …}`) or without.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from tidemark.model.foreign_json import exact_number, parsed_line
from tidemark.replication.model.replication import ObjectName

__all__ = [
    "CONNECTORS",
    "Envelope",
    "Landed",
    "NamedTable",
    "Notice",
    "NoticeKind",
    "form_required",
    "landed",
    "landed_document",
    "landed_value",
    "message_of",
    "message_text",
    "read_method",
    "table_of",
]

CONNECTORS = ("postgresql", "mysql", "mariadb", "oracle", "sqlserver")
_OPS = frozenset("crudtm")
_MOST_MICROS = 253_402_300_800_000_000  # of the year 10000
_SNAPSHOT = frozenset(
    {"true", "first", "last", "first_in_data_collection", "last_in_data_collection", "incremental", "initial"}
)
_CDC = {
    "postgresql": "postgres-cdc-wal",
    "mysql": "mysql-cdc-binlog",
    "mariadb": "mariadb-cdc-binlog",
    "oracle": "oracle-cdc-logminer",
    "sqlserver": "sqlserver-cdc",
}
_BACKFILL = {
    "postgresql": "postgresql-backfill",
    "mysql": "mysql-backfill-fulldump",
    "mariadb": "mariadb-backfill-fulldump",
    "oracle": "oracle-backfill",
    "sqlserver": "sqlserver-backfill",
}


class NoticeKind(StrEnum):
    """Messages that are no change of a row."""

    TOMBSTONE = "tombstone"
    HEARTBEAT = "heartbeat"
    TRANSACTION = "transaction"  # BEGIN and END of a transaction
    DDL = "ddl"


@dataclass(frozen=True)
class Notice:
    """Such a message. `text`: of a DDL the statement."""

    kind: NoticeKind
    text: str = ""


class Landed(NamedTuple):
    """A record as it was landed, parsed. `with_key`: whether its form has a place for a key."""

    value: Any
    key: Any = None
    headers: Mapping[str, Any] = MappingProxyType({})
    with_key: bool = False


class NamedTable(NamedTuple):
    """A table as a record names it. `source_id`: its identity."""

    source_id: str
    name: ObjectName


class Envelope(NamedTuple):
    """A change of a row, a TRUNCATE or a logical message. `row_schema`: what the value's schema says of a row, None for
    a bare value. `key`: the columns of the record's key with their values; None where it has none.
    """

    op: str
    source: Mapping[str, Any]
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    row_schema: Mapping[str, Any] | None
    key: Mapping[str, Any] | None
    with_key: bool
    old_key: bool  # a header says that the row had another key before
    new_key: bool  # a header says that the row has another key next
    transaction: str | None
    message: Mapping[str, Any]

    @property
    def connector(self) -> str:
        """The kind of database, in Debezium's words."""
        return str(self.source["connector"])

    @property
    def name(self) -> ObjectName:
        """Of the table; MySQL and MariaDB have databases for schemas."""
        return _table_of(self.source).name

    @property
    def source_id(self) -> str:
        """The identity of the table: the connector's own name, database, schema and table."""
        return _table_of(self.source).source_id

    @property
    def row(self) -> Mapping[str, Any] | None:
        """The row that is, or else the one that was."""
        return self.after if self.after is not None else self.before

    @property
    def at(self) -> int | None:
        """Microseconds since 1970 of the commit in the source; None for no time of this era."""
        micros, millis = self.source.get("ts_us"), self.source.get("ts_ms")
        at = micros if isinstance(micros, int) else millis * 1000 if isinstance(millis, int) else None
        return at if at is None or abs(at) < _MOST_MICROS else None


def landed(text: str | bytes) -> Landed:
    """A record of a line. Raises ValueError for what is no JSON object."""
    return landed_document(parsed_line(text, fraction=exact_number))


def landed_value(text: str | bytes | None) -> Any:
    """A key or a value of a Kafka record; None for none. Raises ValueError."""
    return parsed_line(text, fraction=exact_number) if text else None


def landed_document(document: Any) -> Landed:
    """A record with key and value, or a value alone. Raises ValueError."""
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    if "op" in document or "schema" in document:
        return Landed(document)
    if "value" in document:
        return _pair(document, "value")
    if "topic" in document and "payload" in document:  # as kcat writes a record
        return _pair(document, "payload")
    return Landed(document)


def _pair(document: Mapping[str, Any], value: str) -> Landed:
    """Some sinks write records without their keys."""
    key, headers = _document(document.get("key")), _headers(document.get("headers"))
    return Landed(_document(document[value]), key, headers, "key" in document)


def _document(value: Any) -> Any:
    """A document, even if it was landed as a text."""
    return parsed_line(value, fraction=exact_number) if isinstance(value, str) and value.strip() else value or None


def _headers(said: Any) -> Mapping[str, Any]:
    """Of an object, of a list of objects with key and value, or of a flat list of names and values."""
    if isinstance(said, Mapping):
        return said
    if not isinstance(said, list):
        return {}
    if all(isinstance(one, Mapping) for one in said):
        return {str(one.get("key")): one.get("value") for one in said}
    return dict(zip(map(str, said[::2]), said[1::2], strict=False))


@contextmanager
def form_required() -> Iterator[None]:
    """A part of a record in another form than its writer's is a ValueError, as any other fault."""
    try:
        yield
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise ValueError(f"a part of it has another form than Debezium writes ({type(error).__name__})") from error


@form_required()
def message_of(record: Landed, *, avro: Mapping[str, Any] | None = None) -> Envelope | Notice:
    """The message in a record. `avro`: the row's schema, of a record that was Avro.

    Raises ValueError, with the reason, for what is none of Debezium's.
    """
    if record.value is None:
        return Notice(NoticeKind.TOMBSTONE)
    schema, payload = _unwrapped(record.value)
    if payload is None:
        return Notice(NoticeKind.TOMBSTONE)
    if not isinstance(payload, Mapping):
        raise ValueError("its payload is not an object")
    if "op" not in payload or "source" not in payload:
        return _notice(payload)
    return _envelope(record, payload, avro if avro is not None else _row_schema(schema))


def table_of(record: Landed) -> NamedTable | None:
    """The table that the `source` of a record names, although the rest of it may not be readable; None for none."""
    _, payload = _unwrapped(record.value)
    source = payload.get("source") if isinstance(payload, Mapping) else None
    if not isinstance(source, Mapping) or source.get("connector") not in CONNECTORS or not source.get("table"):
        return None
    return _table_of(source)


def _table_of(said: Mapping[str, Any]) -> NamedTable:
    path = f"{said.get('name') or ''}/{said.get('db') or ''}/{said.get('schema') or ''}/{said['table']}"
    return NamedTable(path, ObjectName(str(said.get("schema") or said.get("db") or ""), str(said["table"])))


def _envelope(record: Landed, payload: Mapping[str, Any], row_schema: Mapping[str, Any] | None) -> Envelope:
    op, source = payload["op"], payload["source"]
    if not isinstance(op, str) or op not in _OPS:
        raise ValueError(f"its op is {op!r}, and Debezium knows c, u, d, r, t and m")
    if not isinstance(source, Mapping) or source.get("connector") not in CONNECTORS:
        said = source.get("connector") if isinstance(source, Mapping) else source
        raise ValueError(f"its connector is {said!r}; read are {', '.join(CONNECTORS)}")
    if op != "m" and not source.get("table"):
        raise ValueError("its source names no table")
    before, after = _row(payload, "before"), _row(payload, "after")
    if (op in "cur" and after is None) or (op == "d" and before is None and record.key is None):
        raise ValueError(f"its op is {op!r}, and it has no row")
    _, key = _unwrapped(record.key)
    if key is not None and not isinstance(key, Mapping):
        raise ValueError("its key is not an object with the columns of the key")
    transaction, message = payload.get("transaction"), payload.get("message") or {}
    if not isinstance(message, Mapping):
        raise ValueError("its message is not an object with prefix and content")
    return Envelope(
        op=op,
        source=source,
        before=before,
        after=after,
        row_schema=row_schema,
        key=key or None,
        with_key=record.with_key,
        old_key="__debezium.oldkey" in record.headers,
        new_key="__debezium.newkey" in record.headers,
        transaction=str(transaction["id"]) if isinstance(transaction, Mapping) and "id" in transaction else None,
        message=message,
    )


def _unwrapped(value: Any) -> tuple[Mapping[str, Any] | None, Any]:
    """Schema and payload; no schema for a bare value."""
    if isinstance(value, Mapping) and set(value) == {"schema", "payload"}:
        return value["schema"], value["payload"]
    return None, value


def _row(payload: Mapping[str, Any], side: str) -> Mapping[str, Any] | None:
    row = payload.get(side)
    if row is not None and not isinstance(row, Mapping):
        raise ValueError(f"its {side} is not a row")
    return row


def _row_schema(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if schema is None:
        return None
    for side in ("after", "before"):
        for one in schema.get("fields") or ():
            if one.get("field") == side:
                return dict(one)
    return None


def _notice(payload: Mapping[str, Any]) -> Notice:
    if payload.get("status") in ("BEGIN", "END") and "id" in payload:
        return Notice(NoticeKind.TRANSACTION)
    if "ddl" in payload and ("tableChanges" in payload or "databaseName" in payload or "position" in payload):
        return Notice(NoticeKind.DDL, str(payload["ddl"] or ""))
    if set(payload) <= {"ts_ms", "ts_us", "ts_ns"} and payload:
        return Notice(NoticeKind.HEARTBEAT)
    raise ValueError(
        "it has no op and no source, so it is not a Debezium envelope. Rows that ExtractNewRecordState has unwrapped"
        " cannot be read, since they do not show their operation"
    )


def read_method(envelope: Envelope) -> str:
    """How the row was read: from the database's log, or by a snapshot."""
    snapshot = str(envelope.source.get("snapshot") or "false").lower()
    if envelope.op != "r" and snapshot not in _SNAPSHOT:
        return _CDC[envelope.connector]
    if snapshot == "incremental" and envelope.connector in ("mysql", "mariadb"):
        return f"{envelope.connector}-backfill-incremental"
    return _BACKFILL[envelope.connector]


def message_text(envelope: Envelope) -> str:
    """The content of a logical message, which comes in base64."""
    content = envelope.message.get("content") or ""
    try:
        raw = content if isinstance(content, bytes) else base64.b64decode(str(content), validate=True)
    except binascii.Error:
        return str(content)
    return raw.decode("utf-8", "backslashreplace")
