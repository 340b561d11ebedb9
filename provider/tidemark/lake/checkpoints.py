"""The table's state in a checkpoint: classic (one or more parts) and V2, JSON or Parquet. The file list is not read.

A V2 checkpoint has metaData, protocol, domains and transactions in its top-level file. Its sidecars are never needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from tidemark.errors import CorruptLog, LogIncomplete
from tidemark.lake.actions import parse_lines
from tidemark.lake.failures import is_of_storage
from tidemark.lake.segments import LOG_DIRECTORY, CheckpointFiles

if TYPE_CHECKING:
    from tidemark.lake.storage import Storage

__all__ = ["read_state_actions"]

_ITSELF = "checkpointMetadata"
_WANTED = ("metaData", "protocol", "domainMetadata", "txn", _ITSELF)


def read_state_actions(storage: Storage, checkpoint: CheckpointFiles) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, body) of the metaData, protocol, domainMetadata and txn actions. Raises CorruptLog, LogIncomplete.

    A V2 checkpoint names its version. A file that names another version is a CorruptLog.
    """
    for kind, body in _actions(storage, checkpoint):
        if kind != _ITSELF:
            yield kind, body
        elif body.get("version") != checkpoint.version:
            problem = f"it is the checkpoint of version {body.get('version')!r}"
            raise CorruptLog(file=checkpoint.names[0], problem=problem)


def _actions(storage: Storage, checkpoint: CheckpointFiles) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in checkpoint.names:
        try:
            if name.endswith(".json"):
                data = storage.read_bytes(f"{LOG_DIRECTORY}/{name}")
                yield from parse_lines(data, frozenset(kind.encode() for kind in _WANTED), name)
            else:
                with storage.open(f"{LOG_DIRECTORY}/{name}") as opened:
                    yield from _parquet_actions(opened, name)
        except IsADirectoryError as error:
            raise CorruptLog(file=name, problem="it is a directory") from error
        except FileNotFoundError as error:
            raise LogIncomplete(path=storage.uri, version=checkpoint.version, start=checkpoint.version) from error


def _parquet_actions(opened: IO[bytes], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(opened, page_checksum_verification=True)
        present = [kind for kind in _WANTED if kind in file.schema_arrow.names]
        table = file.read(columns=present)
        columns = {kind: table.column(kind) for kind in present}
        found = [(kind, column.filter(column.is_valid()).to_pylist()) for kind, column in columns.items()]
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_of_storage(error):
            raise
        raise CorruptLog(file=name, problem=f"not a readable checkpoint: {error}") from error
    for kind, bodies in found:
        for body in bodies:
            if not isinstance(body, dict):
                raise CorruptLog(file=name, problem=f"the action {kind} has no body")
            yield kind, body
