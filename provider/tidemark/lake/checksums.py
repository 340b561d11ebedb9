"""Delta's version checksums (`.crc`): what the writer of a version says that the table is then; most writers leave one.

A log that says otherwise has lost or exchanged files: which of the two is wrong cannot be known from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import CorruptLog
from tidemark.lake import actions
from tidemark.lake.segments import checksum_name, commit_name

if TYPE_CHECKING:
    from tidemark.lake.storage import Storage
    from tidemark.model.table_log import Metadata, Protocol, TableState

__all__ = ["require_same_commit", "require_same_state"]


def require_same_state(storage: Storage, state: TableState) -> None:
    """Say nothing unless the version's checksum is there, can be read, and has another state. Raises CorruptLog."""
    said = _read(storage, state.version)
    try:
        metadata = actions.metadata(said["metadata"]) if "metadata" in said else state.metadata
        protocol = actions.protocol(said["protocol"]) if "protocol" in said else state.protocol
        marks = [actions.row_id_mark(body) for body in said.get("domainMetadata") or ()]
    except (ValueError, TypeError, AttributeError):  # a damaged checksum says nothing
        return
    mark = next((mark for mark in marks if mark is not None), state.row_id_high_water_mark)
    same = _metadata(metadata) == _metadata(state.metadata) and _protocol(protocol) == _protocol(state.protocol)
    if not same or mark != state.row_id_high_water_mark:
        problem = "the metadata, protocol or row ids that it has are not those of the checkpoint and commits before it"
        raise CorruptLog(file=f"{storage.uri}/{checksum_name(state.version)}", problem=problem)


def require_same_commit(storage: Storage, version: int, txn_id: object) -> None:
    """Say nothing unless the version's checksum is there, can be read, and names another commit. Raises CorruptLog."""
    said = _read(storage, version).get("txnId")
    if isinstance(said, str) and isinstance(txn_id, str) and said != txn_id:
        problem = f"it is the commit {txn_id}, but {checksum_name(version)} is of {said}"
        raise CorruptLog(file=f"{storage.uri}/{commit_name(version)}", problem=problem)


def _read(storage: Storage, version: int) -> Mapping[str, Any]:
    try:
        said = json.loads(storage.read_bytes(checksum_name(version)))
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _metadata(metadata: Metadata) -> tuple[object, ...]:
    columns, settings = metadata.partition_columns, dict(metadata.configuration)
    return metadata.table_id, json.loads(metadata.schema_json), columns, settings


def _protocol(protocol: Protocol) -> tuple[object, ...]:
    features = frozenset(protocol.reader_features), frozenset(protocol.writer_features)
    return protocol.min_reader_version, protocol.min_writer_version, *features
