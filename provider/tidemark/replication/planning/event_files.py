"""Event files of Datastream, and of Tidemark in its layout, read back into the events of an event log.

A reader gives each JSON line to `event_of_json`, and each record of an Avro file to `event_of_avro`. Files of
Datastream lack the fields that an event log has beyond them. They follow from the others:

- The position is a text that sorts as Datastream documents. MySQL sorts by file number and offset, Oracle by SCN,
  `rs_id` and `ssn`, PostgreSQL and SQL Server by source timestamp and LSN. Backfilled rows of MySQL come first.
- `read_method` is spelled as in the documentation; produced files of PostgreSQL have `postgresql-cdc`.
- An update of MySQL or Oracle is one UPDATE-INSERT. For a row with a key it becomes an UPDATE, and the UPDATE-DELETE of
  a moved key a DELETE. Both halves may have one place in the log; the DELETE is the first of them.
- The key of an Oracle row without a primary key is its `row_id`, and that of SQL Server its `replication_index`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.errors import EventUnreadable
from tidemark.model.foreign_json import parsed
from tidemark.replication.model.replication import TableSchema, UnifiedType
from tidemark.replication.planning.event_file_schemas import EXTENSION, SOURCE_NAME
from tidemark.replication.planning.events import GOES, Change, json_text
from tidemark.replication.planning.file_rotation import CONTROL_KINDS
from tidemark.replication.planning.unified_values import JsonNumber, json_of, text_of_avro, text_of_json

__all__ = ["FileEvent", "event_of_avro", "event_of_json", "event_of_record", "is_backfill"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INVALID = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
_SPELLED = {"postgresql-cdc": "postgres-cdc-wal"}
_OWN_UPDATES = ("mysql", "oracle")  # sources whose updates are UPDATE-INSERT
_NUMBER_OF_FILE = re.compile(r"([0-9]+)$")
_Payload = Mapping[str, "str | None"]


@dataclass(frozen=True)
class FileEvent:
    """An event as the event log has it; the fields are its columns."""

    stream_name: str
    read_method: str
    object: str
    schema_key: str | None
    uuid: str
    read_timestamp: datetime | None
    source_timestamp: datetime | None
    sort_keys: tuple[str | None, ...]
    source_metadata: Mapping[str, Any]
    payload: str
    object_id: str | None
    position: str
    sequence: int
    change: str
    key: str | None = None
    old_key: str | None = None
    unchanged: tuple[str, ...] | None = None
    problem: str | None = None
    batch: int | None = None


def is_backfill(event: FileEvent) -> bool:
    """Whether the row was copied, and not read from the source's log."""
    return "-backfill" in event.read_method


def event_of_json(line: str | bytes, schemas: Mapping[str, TableSchema] | None = None) -> FileEvent:
    """The event of a line. `schemas` by their `schema_key`, such as the SCHEMA events of `_control` have them. With
    them times become canonical texts, else they stay as they are written. Raises EventUnreadable.
    """
    try:
        record = parsed(line, number=JsonNumber)
        schema = (schemas or {}).get(record.get("schema_key") or "")
    except _INVALID as error:
        raise EventUnreadable(problem=f"{type(error).__name__}: {error}") from error
    return event_of_record(record, {} if schema is None else {column.name: column.type for column in schema.columns})


def event_of_record(record: Mapping[str, Any], kinds: Mapping[str, UnifiedType]) -> FileEvent:
    """The event of a line that was parsed with JsonNumber. `kinds`: types of columns. Raises EventUnreadable."""
    try:
        if record["source_metadata"].get("change_type") in CONTROL_KINDS:
            return _event(record, json_of(record["payload"]), {})
        payload = {name: text_of_json(value, kinds.get(name)) for name, value in record["payload"].items()}
        return _event(record, _payload_text(payload), payload)
    except _INVALID as error:
        raise EventUnreadable(problem=f"{type(error).__name__}: {error}") from error


def event_of_avro(record: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> FileEvent:
    """The event of a record, as a reader with logical types gives it. `schema`: of the file's header, which has the
    names of columns that Avro does not take. Raises EventUnreadable.
    """
    try:
        fields = _payload_fields(schema)
        extension = record.get(EXTENSION) or {}
        absent, invalid = set(extension.get("absent") or ()), extension.get("invalid") or {}
        payload: dict[str, str | None] = {}
        for field, value in record["payload"].items():
            name, single = fields.get(field, (field, False))
            if name not in absent:
                payload[name] = invalid.get(name, text_of_avro(value, single=single))
        return _event(record, _payload_text(payload), payload)
    except _INVALID as error:
        raise EventUnreadable(problem=f"{type(error).__name__}: {error}") from error


def _payload_fields(schema: Mapping[str, Any] | None) -> dict[str, tuple[str, bool]]:
    """Column and whether it is a float of 32 bits, by the name of its field."""
    outer = () if schema is None else schema["fields"]
    kind = next((field["type"] for field in outer if field["name"] == "payload"), {"fields": ()})
    found = {}
    for field in _record_of(kind).get("fields", ()):
        types = field["type"] if isinstance(field["type"], list) else [field["type"]]
        found[field["name"]] = (field.get(SOURCE_NAME, field["name"]), "float" in types)
    return found


def _record_of(kind: Any) -> Mapping[str, Any]:
    kinds = kind if isinstance(kind, list) else [kind]
    return next((one for one in kinds if isinstance(one, Mapping)), {})


def _payload_text(payload: _Payload) -> str:
    parts = (f"{json_text(name)}:{'null' if text is None else json_text(text)}" for name, text in payload.items())
    return "{" + ",".join(parts) + "}"


def _event(record: Mapping[str, Any], payload: str, values: _Payload) -> FileEvent:
    metadata, read_method = record["source_metadata"], str(record["read_method"])
    own = record.get(EXTENSION)
    sort_keys = tuple(None if one is None else str(one) for one in record.get("sort_keys") or ())
    at = _moment_of(record.get("source_timestamp"))
    return FileEvent(
        stream_name=str(record["stream_name"]),
        read_method=_SPELLED.get(read_method, read_method),
        object=str(record["object"]),
        schema_key=record.get("schema_key"),
        uuid=str(record["uuid"]),
        read_timestamp=_moment_of(record.get("read_timestamp")),
        source_timestamp=at,
        sort_keys=sort_keys,
        source_metadata=_metadata_of(metadata),
        payload=payload,
        **(_datastreams(read_method, metadata, values, sort_keys, at) if own is None else _own(own, metadata)),
    )


def _own(own: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Of an event that Tidemark wrote."""
    unchanged = own.get("unchanged")
    return {
        "object_id": own["object_id"],
        "position": own["position"],
        "sequence": int(own["sequence"]),
        "change": metadata["change_type"],
        "key": own.get("key"),
        "old_key": own.get("old_key"),
        "unchanged": None if unchanged is None else tuple(unchanged),
        "problem": own.get("problem"),
        "batch": int(own["batch"]),
    }


def _datastreams(
    read_method: str,
    metadata: Mapping[str, Any],
    values: _Payload,
    sort_keys: Sequence[str | None],
    at: datetime | None,
) -> dict[str, Any]:
    """Of an event that Datastream wrote."""
    keys = metadata.get("primary_keys") or metadata.get("replication_index") or ()
    texts = [values.get(name) for name in keys] or [metadata[name] for name in ("row_id",) if metadata.get(name)]
    key = None if not texts else "[" + ",".join("null" if one is None else json_text(str(one)) for one in texts) + "]"
    source = read_method.split("-", 1)[0]
    change = str(metadata.get("change_type") or (Change.DELETE if metadata.get("is_deleted") else Change.INSERT))
    if source in _OWN_UPDATES and key is not None:
        change = {"UPDATE-INSERT": "UPDATE", "UPDATE-DELETE": "DELETE"}.get(change, change)
    parts = (metadata.get("database"), metadata.get("schema"), metadata.get("table"))
    first = metadata.get("change_type") in GOES
    return {
        "object_id": ".".join(str(one) for one in parts if one is not None),
        "position": _position(source, metadata, sort_keys, at),
        "sequence": 1 if first else 2,
        "change": change,
        "key": key,
    }


def _position(source: str, metadata: Mapping[str, Any], sort_keys: Sequence[str | None], at: datetime | None) -> str:
    """A text that sorts as the events of the source do."""
    if source == "mysql":
        file = _NUMBER_OF_FILE.search(str(metadata.get("log_file") or ""))
        return f"{int(file[1]) if file else 0:010d}{int(metadata.get('log_position') or 0):020d}"
    if source == "oracle":
        scn, ssn = int(metadata.get("scn") or 0), int(metadata.get("ssn") or 0)
        return f"{scn:020d}{metadata.get('rs_id') or '':<32}{ssn:010d}"
    milliseconds = 0 if at is None else (at - _EPOCH) // timedelta(milliseconds=1)
    lsn = str(metadata.get("lsn") or (sort_keys[1] if len(sort_keys) > 1 else "") or "")
    halves = "".join(f"{int(part, 16):08X}" for part in re.split("[/:]", lsn) if part)
    return f"{milliseconds:016d}{halves}"


def _metadata_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """As the event log has it. The place in the log of MySQL and Oracle is in `lsn`."""
    keys = metadata.get("primary_keys") or metadata.get("replication_index") or ()
    schema = metadata.get("schema")
    lsn = metadata.get("lsn") or metadata.get("scn")
    if lsn is None and metadata.get("log_file"):
        lsn = f"{metadata['log_file']}:{metadata.get('log_position')}"
    tx_id = metadata.get("tx_id")
    return {
        "schema": metadata.get("database") if schema is None else schema,
        "table": metadata.get("table"),
        "is_deleted": metadata.get("is_deleted"),
        "change_type": metadata.get("change_type"),
        "tx_id": None if tx_id is None else str(tx_id),
        "lsn": None if lsn is None else str(lsn),
        "primary_keys": [str(name) for name in keys],
    }


def _moment_of(value: Any) -> datetime | None:
    """ISO 8601, of no zone in some files of Datastream; milliseconds; or what a reader of Avro makes of them."""
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(value, int | JsonNumber):
        return _EPOCH + timedelta(milliseconds=int(value))
    at = datetime.fromisoformat(str(value))
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
