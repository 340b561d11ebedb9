"""Event files in a folder, and the events that are read from it without Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro

from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.driver.log_forms import form_of_kind
from tidemark.replication.model.jobs import CapturedObject
from tidemark.replication.model.replication import FoundObject, Selection, TableSchema
from tidemark.replication.planning.debezium_marks import Mark
from tidemark.replication.planning.debezium_rows import RowRules
from tidemark.replication.planning.event_file_rows import LeftOut
from tidemark.replication.sources.event_files.opening import open_folder
from tidemark.replication.sources.event_files.reader import EventFileReader
from tidemark.replication.sources.event_files.seen import tables_in
from tidemark.replication.sources.event_files.settings import settings_of

__all__ = ["address_of", "captured", "drop", "drop_avro", "event", "read_events", "reader_of", "require_kept", "tables"]

ROW = ("facts", *form_of_kind(SourceKind.EVENT_FILES).row, "sequence")
EVENT = ("change", "half", "payload", "key", "old_key", "unchanged", "problem")


def address_of(directory: Path, **parameters: Any) -> SourceAddress:
    """As a connection would have it; files are read at once."""
    said = {"wait_seconds": "0", **parameters}
    texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in said.items()}
    return SourceAddress(SourceKind.EVENT_FILES, "", 0, str(directory), "", parameters=texts, conn_id="files")


def drop(directory: Path, name: str, lines: Sequence[Any]) -> Path:
    """A file of JSON lines, whole at once."""
    text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines)
    return _drop(directory / name, text.encode())


def drop_avro(directory: Path, name: str, schema: Any, records: Sequence[Any]) -> Path:
    """A file of Avro; decimals are texts in the records."""
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records)
    return _drop(directory / name, sink.getvalue())


def event(
    number: int, key: int, *, table: str = "t", payload: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Of a MySQL: an insert, at a place that grows with the number. `more`: facts of its `source_metadata`."""
    said = {"log_file": "b.000001", "log_position": number, "database": "d", "table": table}
    facts = {"primary_keys": ["id"], "is_deleted": False, "change_type": "INSERT"} | more
    return {
        "stream_name": "s",
        "read_method": "mysql-cdc-binlog",
        "object": f"d_{table}",
        "uuid": f"{table}{number}",
        "read_timestamp": "2024-05-01T10:00:00.000Z",
        "source_timestamp": "2024-05-01T10:00:00.000Z",
        "sort_keys": [1, "b.000001", number],
        "source_metadata": said | facts,
        "payload": payload or {"id": key, "v": f"v{number}"},
    }


def require_kept(address: SourceAddress, mark: Mark) -> None:
    """That a run can continue there."""
    open_folder(settings_of(address)).require_kept(mark.lanes, "there")


def _drop(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_name(f".{file.name}")
    hidden.write_bytes(content)
    hidden.rename(file)
    return file


def tables(address: SourceAddress) -> dict[str, FoundObject]:
    """The tables that a look finds, by `schema.table`."""
    settings = settings_of(address)
    folder = open_folder(settings)
    return {one.name.text: one for one in tables_in(folder, {}, folder.ends(), settings.key_of)}


def captured(found: FoundObject, **more: Any) -> CapturedObject:
    """As an object that was registered from it."""
    return CapturedObject(found.name, found.source_id, found.schema.keys, registered=found.schema, **more)


def reader_of(
    address: SourceAddress,
    *,
    max_events: int = 10_000,
    start: Mark | None = None,
    at: int = 1,
    schemas: Mapping[str, TableSchema] | None = None,
) -> EventFileReader:
    """Of all tables, up to the present end."""
    settings = settings_of(address)
    folder = open_folder(settings)
    found = tables(address).values()
    return EventFileReader(
        objects={one.source_id: captured(one) for one in found if one.unsupported is None},
        schemas=dict(schemas or {}),
        selection=Selection(),
        left_out=frozenset(),
        keys=settings.key_of,
        rules=RowRules(None, None, LeftOut()),
        start=start or Mark(),
        end=Mark(at, None, folder.ends()),
        place=folder.place,
        max_events=max_events,
        in_order=folder.in_order,
    )


def read_events(address: SourceAddress, reader: EventFileReader | None = None) -> list[Mapping[str, Any]]:
    """Rows of a batch by their names, with the table, and the payload parsed."""
    reader = reader or reader_of(address)
    folder = open_folder(settings_of(address))
    reads = folder.records(reader.start.lanes, reader.end.lanes)
    told = []
    for row in [row for chunk in reader.chunks(reads) for row in chunk]:
        one = dict(zip((*ROW, *EVENT), row, strict=True))
        one["table"] = reader.facts[one.pop("facts")].table
        one["payload"] = json.loads(one["payload"])
        told.append({name: list(value) if isinstance(value, tuple) else value for name, value in one.items()})
    return told
