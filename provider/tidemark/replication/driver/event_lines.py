"""Events of the event log as JSON lines and Avro records of Datastream, and as the bytes of a file."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import parsed
from tidemark.replication.model.jobs import FileFormat
from tidemark.replication.model.replication import TableSchema
from tidemark.replication.planning.event_file_schemas import EXTENSION, avro_names, event_schema
from tidemark.replication.planning.events import json_text
from tidemark.replication.planning.unified_values import avro_value, json_token

__all__ = ["AvroEvents", "ControlLines", "EventEncoder", "JsonLines", "encoder_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARKER_BYTES = 16


class EventEncoder(Protocol):
    """Encodes the events of one schema."""

    def encode(self, event: Any) -> tuple[Any, int]:
        """An item for `file_of`, and its size in bytes before packing."""

    def file_of(self, items: Sequence[Any], name: str) -> bytes:
        """The content of the file; the same for the same items and name."""


def encoder_of(kind: FileFormat, schema: TableSchema) -> EventEncoder:
    """For change events of that schema. Raises InvalidArgument if Avro's package is not installed."""
    return AvroEvents(schema) if kind is FileFormat.AVRO else JsonLines(schema)


class _Lines:
    """JSON lines; a subclass has the form of the payload."""

    def encode(self, event: Any) -> tuple[bytes, int]:
        """A line with its end."""
        head = json.dumps(_head(event, iso=True) | {EXTENSION: _extension(event)}, ensure_ascii=False)
        line = f'{head[:-1]}, "payload": {self.payload(event)}}}\n'.encode(errors="surrogatepass")
        return line, len(line)

    def payload(self, event: Any) -> str:
        """As JSON text."""
        raise NotImplementedError

    def file_of(self, items: Sequence[bytes], name: str) -> bytes:
        """Packed without a time, so that the bytes depend on the events alone."""
        return gzip.compress(b"".join(items), compresslevel=6, mtime=0)


class ControlLines(_Lines):
    """Events that change no row: their payload is a JSON object already."""

    def payload(self, event: Any) -> str:
        """As the event log has it."""
        return str(event["payload"])


class JsonLines(_Lines):
    """Columns that the event does not have are not in the payload."""

    def __init__(self, schema: TableSchema) -> None:
        self._tokens: Mapping[str, Callable[[str], str]] = {
            column.name: json_token(column.type) for column in schema.columns
        }

    def payload(self, event: Any) -> str:
        """Columns in the order of the event log."""
        parts = []
        for name, text in parsed(event["payload"]).items():
            value = "null" if text is None else self._tokens.get(name, json_text)(text)
            parts.append(f"{json_text(name)}: {value}")
        return "{" + ", ".join(parts) + "}"


class AvroEvents:
    """Records of one Avro schema."""

    def __init__(self, schema: TableSchema) -> None:
        try:
            import fastavro
        except ModuleNotFoundError as error:
            problem = "Avro needs the package fastavro: pip install 'airflow-provider-tidemark[files]'"
            raise InvalidArgument(argument="format", value="avro", problem=problem) from error
        self._fastavro = fastavro
        self._schema = fastavro.parse_schema(event_schema(schema))
        names = avro_names(schema)
        self._columns = [(column.name, names[column.name], avro_value(column.type)) for column in schema.columns]

    def encode(self, event: Any) -> tuple[dict[str, Any], int]:
        """A record; values that its types cannot hold are null, and their texts are in `invalid`."""
        texts = parsed(event["payload"])
        payload: dict[str, Any] = {}
        invalid: dict[str, str] = {}
        for name, field, value in self._columns:
            text = texts.get(name)
            try:
                payload[field] = None if text is None else value(text)
            except (ValueError, OverflowError):
                payload[field], invalid[name] = None, text
        absent = [name for name, _, _ in self._columns if name not in texts]
        record = _head(event, iso=False) | {
            "payload": payload,
            EXTENSION: _extension(event) | {"absent": absent or None, "invalid": invalid or None},
        }
        sink = io.BytesIO()
        self._fastavro.schemaless_writer(sink, self._schema, record)
        return record, sink.tell()

    def file_of(self, items: Sequence[dict[str, Any]], name: str) -> bytes:
        """With a marker between blocks that the name gives, so that the bytes depend on the events alone."""
        sink = io.BytesIO()
        marker = hashlib.sha1(name.encode(), usedforsecurity=False).digest()[:_MARKER_BYTES]
        self._fastavro.writer(sink, self._schema, items, codec="deflate", sync_marker=marker)
        return sink.getvalue()


def _head(event: Any, *, iso: bool) -> dict[str, Any]:
    """The fields of Datastream without the payload."""
    moment = _iso if iso else _moment
    return {
        "stream_name": event["stream_name"],
        "read_method": event["read_method"],
        "object": event["object"],
        "schema_key": event["schema_key"],
        "uuid": event["uuid"],
        "read_timestamp": moment(event["read_micros"]),
        "source_timestamp": moment(event["source_micros"]),
        "sort_keys": [_sort_key(place, text) for place, text in enumerate(event["sort_keys"])],
        "source_metadata": event["source_metadata"].asDict(),
    }


def _sort_key(place: int, text: str | None) -> int | str | None:
    """The timestamp and the sequence are numbers, a place in the source's log between them is text."""
    is_number = text is not None and place != 1 and text.isascii() and text.isdecimal() and text == str(int(text))
    return int(text or 0) if is_number else text


def _extension(event: Any) -> dict[str, Any]:
    names = ("object_id", "position", "sequence", "batch", "key", "old_key", "unchanged", "problem")
    return {name: event[name] for name in names}


def _moment(micros: int | None) -> datetime | None:
    """In whole milliseconds, as Datastream has times."""
    return None if micros is None else _EPOCH + timedelta(milliseconds=micros // 1000)


def _iso(micros: int | None) -> str | None:
    at = _moment(micros)
    return None if at is None else at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
