"""The `add` actions of a checkpoint of any form: classic or V2, JSON or Parquet, with or without sidecars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar

from tidemark.errors import CorruptLog, LogIncomplete
from tidemark.lake import actions
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import is_of_storage
from tidemark.lake.paths import file_uri
from tidemark.lake.segments import LOG_DIRECTORY, CheckpointFiles
from tidemark.lake.state_folds import corrupt_if_garbled

__all__ = ["AddReader", "checkpoint_adds"]

T = TypeVar("T")
_SIDECARS = "_sidecars"
_JSON_KINDS = frozenset({b"add", b"sidecar"})


@dataclass(frozen=True)
class AddReader(Generic[T]):
    """The way from an `add` to a value. Both functions raise ValueError for a field that is missing or of a wrong type.

    `fields`: those of an `add` that are read. `of_body`: for one in JSON. `of_batch`: for an Arrow array of them, of
    `at_once` at most.
    """

    fields: frozenset[str]
    of_body: Callable[[Mapping[str, Any]], T]
    of_batch: Callable[[Any], Iterator[T]]
    at_once: int


def checkpoint_adds(log: DeltaLog, checkpoint: CheckpointFiles, reader: AddReader[T]) -> Iterator[T]:
    """Each file that the checkpoint has, as `reader` makes it. Raises LogIncomplete, CorruptLog."""
    for name in checkpoint.names:
        sidecars: list[str] = []
        yield from _of_file(log, f"{LOG_DIRECTORY}/{name}", checkpoint.version, reader, sidecars)
        for path in sidecars:
            sidecar = file_uri(f"{log.uri}/{LOG_DIRECTORY}/{_SIDECARS}", path)
            yield from _of_file(log, sidecar, checkpoint.version, reader, [])


def _of_file(log: DeltaLog, name: str, version: int, reader: AddReader[T], sidecars: list[str]) -> Iterator[T]:
    """Files of one part of a checkpoint. `sidecars` gets the paths of more parts."""
    try:
        if name.endswith(".json"):
            yield from _of_json(log.storage.read_bytes(name), name, reader, sidecars)
        else:
            with log.storage.open(name) as opened:
                yield from _of_parquet(opened, name, reader, sidecars)
    except FileNotFoundError as error:
        raise LogIncomplete(path=log.uri, version=version, start=version) from error


def _of_json(data: bytes, name: str, reader: AddReader[T], sidecars: list[str]) -> Iterator[T]:
    with corrupt_if_garbled(name):
        for kind, body in actions.parse_lines(data, _JSON_KINDS, name):
            if kind == "sidecar":
                sidecars.append(_sidecar_path(body))
            else:
                yield reader.of_body(body)


def _of_parquet(opened: IO[bytes], name: str, reader: AddReader[T], sidecars: list[str]) -> Iterator[T]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(opened)
        known = file.schema_arrow
        if "sidecar" in known.names:
            column = file.read(columns=["sidecar"]).column("sidecar").combine_chunks()
            sidecars.extend(map(_sidecar_path, column.filter(column.is_valid()).to_pylist()))
        if "add" not in known.names:
            return
        wanted = _wanted(known.field("add").type, reader.fields)
        for batch in file.iter_batches(reader.at_once, columns=wanted):
            column = batch.column("add")
            yield from reader.of_batch(column.filter(column.is_valid()))
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_of_storage(error):
            raise
        raise CorruptLog(file=name, problem=f"not a readable checkpoint: {error}") from error


def _wanted(kind: Any, fields: frozenset[str]) -> list[str]:
    """The columns of Parquet. Raises ValueError for a column that holds no `add`."""
    import pyarrow as pa

    found = [f"add.{one.name}" for one in kind if one.name in fields] if pa.types.is_struct(kind) else []
    if not found:
        raise ValueError("its add has no field of a file")
    return found


def _sidecar_path(body: object) -> str:
    """Raises ValueError."""
    path = body.get("path") if isinstance(body, Mapping) else None
    if not isinstance(path, str):
        raise ValueError("a sidecar has no path")
    return path
