"""The lines of a commit or checkpoint, parsed at the edge: unknown actions are skipped, malformed ones are named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidemark.errors import CorruptLog
from tidemark.model.table_log import AddFile, ChangeFile, DeletionVector, Metadata, Protocol, RemoveFile

__all__ = [
    "ROW_TRACKING_DOMAIN",
    "add_file",
    "change_file",
    "metadata",
    "parse_lines",
    "protocol",
    "remove_file",
    "row_id_mark",
]

ROW_TRACKING_DOMAIN = "delta.rowTracking"
_KIND = re.compile(rb'\s*\{\s*"(\w+)"')


def parse_lines(data: bytes, wanted: frozenset[bytes], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, body) of each wanted action; a line of another kind is not parsed at all. Raises CorruptLog."""
    for line in data.splitlines():
        found = _KIND.match(line)
        if found is None:
            if line.strip():
                raise CorruptLog(file=file, problem=f"not an action: {line[:60]!r}")
            continue
        if found[1] not in wanted:
            continue
        try:
            ((kind, body),) = json.loads(line).items()
        except (ValueError, AttributeError) as error:
            raise CorruptLog(file=file, problem=f"not an action: {error}") from error
        if not isinstance(body, dict):
            raise CorruptLog(file=file, problem=f"the action {kind} has no body")
        yield kind, body


def add_file(body: Mapping[str, Any]) -> AddFile:
    """An `add`. Raises KeyError where a required field is missing."""
    return AddFile(
        path=body["path"],
        size=body["size"],
        partition_values=_mapping(body.get("partitionValues")),
        modification_time=body.get("modificationTime", 0),
        data_change=body["dataChange"],
        stats=body.get("stats"),
        deletion_vector=_vector(body.get("deletionVector")),
        base_row_id=body.get("baseRowId"),
        default_row_commit_version=body.get("defaultRowCommitVersion"),
    )


def remove_file(body: Mapping[str, Any]) -> RemoveFile:
    """A `remove`. Raises KeyError where a required field is missing."""
    values = body.get("partitionValues")
    return RemoveFile(
        path=body["path"],
        data_change=body["dataChange"],
        deletion_timestamp=body.get("deletionTimestamp"),
        size=body.get("size"),
        partition_values=None if values is None else _mapping(values),
        stats=body.get("stats"),
        deletion_vector=_vector(body.get("deletionVector")),
        base_row_id=body.get("baseRowId"),
        default_row_commit_version=body.get("defaultRowCommitVersion"),
    )


def change_file(body: Mapping[str, Any]) -> ChangeFile:
    """A `cdc`. Raises KeyError where a required field is missing."""
    return ChangeFile(body["path"], body["size"], _mapping(body.get("partitionValues")))


def metadata(body: Mapping[str, Any]) -> Metadata:
    """A `metaData`. Raises KeyError where a required field is missing."""
    return Metadata(
        table_id=body["id"],
        schema_json=body["schemaString"],
        partition_columns=tuple(body.get("partitionColumns") or ()),
        configuration=_mapping(body.get("configuration")),
        provider=(body.get("format") or {}).get("provider") or "parquet",
    )


def protocol(body: Mapping[str, Any]) -> Protocol:
    """A `protocol`. Raises KeyError where a required field is missing."""
    return Protocol(
        min_reader_version=body["minReaderVersion"],
        min_writer_version=body["minWriterVersion"],
        reader_features=tuple(body.get("readerFeatures") or ()),
        writer_features=tuple(body.get("writerFeatures") or ()),
    )


def row_id_mark(body: Mapping[str, Any]) -> int | None:
    """The row-id high-water mark of a `domainMetadata` action, None for another or a removed domain."""
    if body.get("domain") != ROW_TRACKING_DOMAIN or body.get("removed"):
        return None
    mark: int = json.loads(body["configuration"])["rowIdHighWaterMark"]
    return mark


def _vector(body: Mapping[str, Any] | None) -> DeletionVector | None:
    if body is None or body.get("storageType") is None:
        return None
    return DeletionVector(
        storage_type=body["storageType"],
        path_or_inline=body["pathOrInlineDv"],
        size_in_bytes=body["sizeInBytes"],
        cardinality=body["cardinality"],
        offset=body.get("offset"),
    )


def _mapping(value: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> dict[str, Any]:
    """JSON has an object, Parquet a list of pairs."""
    return dict(value or {})
