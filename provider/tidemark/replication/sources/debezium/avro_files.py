"""Records of an Avro object container whose values are envelopes of Debezium."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from tidemark.replication.planning.debezium import Landed
from tidemark.replication.sources.avro_containers import avro_container

__all__ = ["avro_records"]


def avro_records(opened: IO[bytes]) -> Iterator[tuple[Landed | None, Mapping[str, Any] | None]]:
    """Each record, and what its file says of a row. The value is the record itself, or its field `value`, beside which
    there may be `key` and `headers`.

    Raises ValueError for a file that is no Avro container, or one of another schema; SourceDriverNotInstalled.
    """
    schema, found = avro_container(opened)
    named = _named(schema)
    paired = _field(schema, "value", named)
    envelope = schema if paired is None else paired
    row = _field(envelope, "after", named) or _field(envelope, "before", named)
    if row is None or _field(envelope, "source", named) is None or not _has(envelope, "op"):
        name = schema.get("name") if isinstance(schema, Mapping) else schema
        raise ValueError(f"its schema {name} has no before, after, source and op")
    of_row = {"avro": row, "named": named}
    for record in found:
        if paired is None:
            yield Landed(record), of_row
        else:
            yield Landed(record.get("value"), record.get("key"), record.get("headers") or {}, "key" in record), of_row


def _named(schema: Any) -> dict[str, Mapping[str, Any]]:
    """The named types in a schema."""
    found: dict[str, Mapping[str, Any]] = {}
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, Mapping):
            if one.get("type") in ("record", "enum", "fixed") and "name" in one:
                space = one.get("namespace")
                found[str(one["name"])] = one
                found[f"{space}.{one['name']}" if space else str(one["name"])] = one
            waiting.extend(one[part] for part in ("fields", "type", "items", "values") if part in one)
    return found


def _field(record: Any, name: str, named: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The record that a field has; None if there is no such field."""
    for one in record.get("fields", ()) if isinstance(record, Mapping) else ():
        if one["name"] == name:
            branches = one["type"] if isinstance(one["type"], list) else [one["type"]]
            for branch in branches:
                kind = named.get(branch) if isinstance(branch, str) else branch
                if isinstance(kind, Mapping) and kind.get("type") == "record":
                    return kind
    return None


def _has(record: Any, name: str) -> bool:
    return isinstance(record, Mapping) and any(one["name"] == name for one in record.get("fields", ()))
