"""The table's state in a checkpoint: classic (one or more parts) and V2, JSON or Parquet; files are not read.

A V2 checkpoint keeps metaData, protocol and domains in its top-level file, so that its sidecars are never needed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from tidemark.errors import CorruptLog, LogIncomplete
from tidemark.lake.actions import parse_lines
from tidemark.lake.segments import LOG_DIRECTORY, CheckpointFiles

if TYPE_CHECKING:
    from tidemark.lake.storage import Storage

__all__ = ["read_state_actions"]

_STATE = ("metaData", "protocol", "domainMetadata")


def read_state_actions(storage: Storage, checkpoint: CheckpointFiles) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind, body) of the metaData, protocol and domainMetadata actions. Raises CorruptLog, LogIncomplete."""
    for name in checkpoint.names:
        try:
            if name.endswith(".json"):
                data = storage.read_bytes(f"{LOG_DIRECTORY}/{name}")
                yield from parse_lines(data, frozenset(kind.encode() for kind in _STATE), name)
            else:
                with storage.open(f"{LOG_DIRECTORY}/{name}") as opened:
                    yield from _parquet_actions(opened, name)
        except FileNotFoundError as error:
            raise LogIncomplete(path=storage.uri, version=checkpoint.version, start=checkpoint.version) from error


def _parquet_actions(opened: IO[bytes], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(opened)
        present = [kind for kind in _STATE if kind in file.schema_arrow.names]
        table = file.read(columns=present)
    except (pa.ArrowException, OSError) as error:
        raise CorruptLog(file=name, problem=f"not a readable checkpoint: {error}") from error
    for kind in present:
        column = table.column(kind)
        for body in column.filter(column.is_valid()).to_pylist():
            yield kind, body
