"""Event files that a test wrote, read as a reader of a lake does, and the event log that they are to be the same as."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import fastavro
from pyspark.sql import functions as F

from tests.engine.replication.capturing import CaptureWorld
from tidemark.model.codec import from_json
from tidemark.replication.model.replication import TableSchema
from tidemark.replication.planning.event_files import FileEvent, event_of_avro, event_of_json
from tidemark.replication.planning.events import schema_key

__all__ = ["contents", "of_files", "of_log", "read_back"]


def contents(world: CaptureWorld) -> dict[str, bytes]:
    """The files with events, without the lists of ranges."""
    root = world.home / "files"
    files = [one for one in sorted(root.rglob("*")) if one.is_file() and one.parent.name != "_ranges"]
    return {str(one.relative_to(root)): one.read_bytes() for one in files}


def schemas_in(files: Mapping[str, bytes]) -> dict[str, TableSchema]:
    """As a reader finds them: by the SCHEMA events of `_control`."""
    found = {}
    for name, content in files.items():
        if name.startswith("_control/"):
            for line in gzip.decompress(content).splitlines():
                event = event_of_json(line)
                if event.change == "SCHEMA":
                    schema = from_json(TableSchema, event.payload)
                    found[schema_key(schema)] = schema
    return found


def read_back(files: Mapping[str, bytes]) -> list[FileEvent]:
    schemas, events = schemas_in(files), []
    for name, content in files.items():
        if name.endswith(".avro"):
            reader = fastavro.reader(io.BytesIO(content))
            events += [event_of_avro(record, reader.writer_schema) for record in reader]
        else:
            assert name.endswith(".jsonl.gz")
            events += [event_of_json(line, schemas) for line in gzip.decompress(content).splitlines()]
    return sorted(events, key=lambda one: (one.position, one.sequence))


def of_log(world: CaptureWorld) -> list[dict[str, Any]]:
    """The log's events, with times in milliseconds."""
    millis = {name: F.date_trunc("millisecond", name) for name in ("read_timestamp", "source_timestamp")}
    rows = world.rows.where("change <> 'HEARTBEAT'").withColumns(millis).orderBy("position", "sequence").collect()
    return [comparable(row.asDict(recursive=True)) for row in rows]


def comparable(event: Mapping[str, Any]) -> dict[str, Any]:
    """Times as local ones, as PySpark gives them; the payload as a value; a list as a list."""
    found = {name: list(value) if isinstance(value, tuple) else value for name, value in event.items()}
    for name in ("read_timestamp", "source_timestamp"):
        at = found[name]
        found[name] = at.astimezone().replace(tzinfo=None) if isinstance(at, datetime) and at.tzinfo else at
    payload = json.loads(found["payload"])
    if payload.get("plain"):  # JSON of any layout
        payload["plain"] = json.loads(payload["plain"])
    return {**found, "payload": payload}


def of_files(world: CaptureWorld) -> list[dict[str, Any]]:
    """`read_back` of all files, as `of_log` has the events."""
    return [comparable(asdict(one)) for one in read_back(contents(world))]
