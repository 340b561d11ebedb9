"""The data files of a table at a version, with their statistics, from its log alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import unquote

from tidemark.errors import CorruptLog, LogIncomplete
from tidemark.lake import actions
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import is_of_storage
from tidemark.lake.paths import is_absolute
from tidemark.lake.segments import LOG_DIRECTORY, CheckpointFiles
from tidemark.lake.state_folds import corrupt_if_garbled
from tidemark.model.table_log import AddFile

__all__ = ["live_files", "sidecar_place"]

_SIDECARS = "_sidecars"
_BATCH = 10_000


def live_files(log: DeltaLog, version: int) -> tuple[AddFile, ...]:
    """The files at the version. A checkpoint that has statistics as columns only gives files without them.

    Raises VersionNotFound, LogIncomplete, CorruptLog.
    """
    checkpoint = log.checkpoint_at_or_before(version)
    found: dict[str, AddFile] = {}
    if checkpoint is not None:
        found.update((file.path, file) for file in _in_checkpoint(log, checkpoint))
    for commit in log.commits(-1 if checkpoint is None else checkpoint.version, version):
        for removed in commit.removes:
            found.pop(removed.path, None)
        found.update((added.path, added) for added in commit.adds)
    return tuple(found.values())


def _in_checkpoint(log: DeltaLog, checkpoint: CheckpointFiles) -> Iterator[AddFile]:
    for name in checkpoint.names:
        sidecars: list[str] = []
        for kind, body in _actions(log, f"{LOG_DIRECTORY}/{name}", checkpoint.version):
            if kind == "sidecar":
                sidecars.append(sidecar_place(body, name))
            else:
                yield _file(body, name)
        for sidecar in sidecars:
            for kind, body in _actions(log, sidecar, checkpoint.version):
                if kind == "add":
                    yield _file(body, sidecar)


def sidecar_place(body: Mapping[str, Any], name: str) -> str:
    """The place of a checkpoint's sidecar, below the table or absolute. Raises CorruptLog."""
    path = body.get("path")
    if not isinstance(path, str):
        raise CorruptLog(file=name, problem="a sidecar has no path")
    return path if is_absolute(path) else f"{LOG_DIRECTORY}/{_SIDECARS}/{unquote(path)}"


def _file(body: Mapping[str, Any], name: str) -> AddFile:
    with corrupt_if_garbled(name):
        return actions.add_file(body)


def _actions(log: DeltaLog, name: str, version: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The `add` and `sidecar` actions of a file of a checkpoint."""
    try:
        if name.endswith(".json"):
            wanted = frozenset({b"add", b"sidecar"})
            yield from actions.parse_lines(log.storage.read_bytes(name), wanted, name)
        else:
            with log.storage.open(name) as opened:
                yield from _parquet_actions(opened, name)
    except FileNotFoundError as error:
        raise LogIncomplete(path=log.uri, version=version, start=version) from error


def _parquet_actions(opened: IO[bytes], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(opened)
        kinds = [kind for kind in ("add", "sidecar") if kind in file.schema_arrow.names]
        for batch in file.iter_batches(_BATCH, columns=kinds):
            for kind in kinds:
                column = batch.column(kind)
                yield from ((kind, body) for body in column.filter(column.is_valid()).to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_of_storage(error):
            raise
        raise CorruptLog(file=name, problem=f"not a readable checkpoint: {error}") from error
