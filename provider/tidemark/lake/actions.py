"""Actions from the lines of a commit or checkpoint. Unknown actions and fields are skipped, as Delta's protocol
demands. Malformed ones are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from tidemark.errors import CorruptLog
from tidemark.lake import fields
from tidemark.model.foreign_json import parsed
from tidemark.model.table_log import AddFile, ChangeFile, DeletionVector, Metadata, Protocol, RemoveFile

__all__ = [
    "ROW_TRACKING_DOMAIN",
    "add_file",
    "change_file",
    "changes_data",
    "domain",
    "is_of_vector",
    "metadata",
    "parse_lines",
    "protocol",
    "remove_file",
    "row_id_mark",
    "transaction",
]

ROW_TRACKING_DOMAIN = "delta.rowTracking"
_KIND = re.compile(rb'\s*\{\s*"(\w+)"')
_ANOTHER = re.compile(rb'\{"(?:add|remove|cdc|metaData|protocol|domainMetadata|txn)":')
_VECTOR_TYPES = ("u", "p", "i")
_VECTOR_FILE = re.compile(r"(?:^|/)deletion_vector_[0-9a-f-]+\.bin$")
_TOMBSTONES = "DELETIONVECTORTOMBSTONES"  # an operation, without its spaces


def parse_lines(data: bytes, wanted: frozenset[bytes], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, body) of each wanted action; a line of another kind is parsed only if it looks broken. Raises CorruptLog.

    A file without a line is corrupt: no writer makes an empty commit.
    """
    if not data or data.isspace():
        raise CorruptLog(file=file, problem="it is empty")
    for ended in BytesIO(data):  # one line at a time: a commit may have millions
        line = ended.rstrip(b"\r\n")
        found = _KIND.match(line)
        if found is None:
            if line.strip():
                raise CorruptLog(file=file, problem=f"not an action: {line[:60]!r}")
            continue
        if found[1] in wanted:
            yield _parsed(line, file)
        elif not ended.endswith(b"\n") or not line.endswith(b"}") or _ANOTHER.search(line, found.end()):
            _parsed(line, file)


def _parsed(line: bytes, file: str) -> tuple[str, dict[str, Any]]:
    try:
        ((kind, body),) = parsed(line.decode()).items()
    except (ValueError, AttributeError) as error:
        raise CorruptLog(file=file, problem=f"not an action: {error}") from error
    if not isinstance(body, dict):
        raise CorruptLog(file=file, problem=f"the action {kind} has no body")
    return kind, body


def changes_data(body: Mapping[str, Any]) -> bool:
    """Whether an `add` or `remove` changed rows. Raises ValueError if `dataChange` is missing."""
    return fields.truth(body, "dataChange")


def add_file(body: Mapping[str, Any]) -> AddFile:
    """An `add`. Raises ValueError if a field is missing or of a wrong type."""
    return AddFile(
        path=fields.path(body),
        size=fields.whole(body, "size"),
        partition_values=_partition(body),
        modification_time=fields.optional_whole(body, "modificationTime", least=-(2**63)) or 0,
        data_change=changes_data(body),
        stats=fields.said_text(body, "stats"),
        deletion_vector=_vector(body),
        base_row_id=fields.optional_whole(body, "baseRowId"),
        default_row_commit_version=fields.optional_whole(body, "defaultRowCommitVersion"),
    )


def remove_file(body: Mapping[str, Any]) -> RemoveFile:
    """A `remove`. Raises ValueError if a field is missing or of a wrong type."""
    return RemoveFile(
        path=fields.path(body),
        data_change=changes_data(body),
        deletion_timestamp=fields.optional_whole(body, "deletionTimestamp", least=-(2**63)),
        size=fields.optional_whole(body, "size"),
        partition_values=fields.partition_values(body),
        stats=fields.said_text(body, "stats"),
        deletion_vector=_vector(body),
        base_row_id=fields.optional_whole(body, "baseRowId"),
        default_row_commit_version=fields.optional_whole(body, "defaultRowCommitVersion"),
    )


def is_of_vector(file: RemoveFile, operation: str | None) -> bool:
    """Whether a `remove` names a file of deletion vectors. Delta writes such when the table gives the feature up, for
    the VACUUM of older clients. No data file has gone then.
    """
    of_operation = (operation or "").upper().replace(" ", "") == _TOMBSTONES
    return not file.data_change and (of_operation or _VECTOR_FILE.search(file.path) is not None)


def change_file(body: Mapping[str, Any]) -> ChangeFile:
    """A `cdc`. Raises ValueError if a field is missing or of a wrong type."""
    return ChangeFile(fields.path(body), fields.whole(body, "size"), _partition(body))


def metadata(body: Mapping[str, Any]) -> Metadata:
    """A `metaData`. Raises ValueError if a field is missing or of a wrong type."""
    form = body.get("format")
    if form is not None and not isinstance(form, dict):
        raise ValueError("format is not an object")
    schema_json, partition_columns = fields.schema(body)
    return Metadata(
        table_id=fields.text(body, "id"),
        schema_json=schema_json,
        partition_columns=partition_columns,
        configuration=fields.configuration(body),
        provider=fields.optional_text(form or {}, "provider") or "parquet",
    )


def protocol(body: Mapping[str, Any]) -> Protocol:
    """A `protocol`. Raises ValueError if a field is missing or of a wrong type."""
    return Protocol(
        min_reader_version=fields.whole(body, "minReaderVersion"),
        min_writer_version=fields.whole(body, "minWriterVersion"),
        reader_features=fields.texts(body, "readerFeatures"),
        writer_features=fields.texts(body, "writerFeatures"),
    )


def transaction(body: Mapping[str, Any]) -> tuple[str, int]:
    """The application and the version of a `txn`. Raises ValueError if one is missing or of a wrong type."""
    return fields.text(body, "appId"), fields.whole(body, "version", least=-(2**63))


def domain(body: Mapping[str, Any]) -> tuple[str, str | None]:
    """The name of a `domainMetadata` action, and its value; None if the domain was removed.

    Raises ValueError if a field is missing or of a wrong type.
    """
    removed = fields.truth(body, "removed", default=False)
    return fields.text(body, "domain"), None if removed else fields.text(body, "configuration")


def row_id_mark(body: Mapping[str, Any]) -> int | None:
    """The row-id high-water mark of a `domainMetadata` action, None for another or a removed domain.

    Raises ValueError if a field is missing or of a wrong type.
    """
    if fields.text(body, "domain") != ROW_TRACKING_DOMAIN or fields.truth(body, "removed", default=False):
        return None
    said = parsed(fields.text(body, "configuration"))
    if not isinstance(said, dict):
        raise ValueError("configuration is not an object")
    return fields.whole(said, "rowIdHighWaterMark", least=-1)


def _partition(body: Mapping[str, Any]) -> dict[str, str | None]:
    values = fields.partition_values(body)
    if values is None:
        raise ValueError("it has no partitionValues")
    return values


def _vector(body: Mapping[str, Any]) -> DeletionVector | None:
    vector = body.get("deletionVector")
    if vector is None:
        return None
    if not isinstance(vector, dict):
        raise ValueError("deletionVector is not an object")
    kind = fields.text(vector, "storageType")
    if kind not in _VECTOR_TYPES:
        raise ValueError(f"storageType is {kind!r}, not one of {', '.join(_VECTOR_TYPES)}")
    return DeletionVector(
        storage_type=kind,
        path_or_inline=(fields.path if kind == "p" else fields.text)(vector, "pathOrInlineDv"),
        size_in_bytes=fields.whole(vector, "sizeInBytes"),
        cardinality=fields.whole(vector, "cardinality"),
        offset=fields.optional_whole(vector, "offset"),
    )
