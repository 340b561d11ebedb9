"""The size of a table at a version, by its log alone. No data file is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from tidemark.changes.planning.sets.forms import physical_rows
from tidemark.errors import CorruptLog
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import is_of_storage
from tidemark.lake.segments import LOG_DIRECTORY, checksum_name
from tidemark.model.foreign_json import foreign_object
from tidemark.model.table_log import AddFile

__all__ = ["SnapshotSize", "snapshot_bytes", "snapshot_size"]

_COLUMNS = ["add.path", "add.stats", "add.deletionVector.cardinality"]


@dataclass(frozen=True)
class SnapshotSize:
    """Data files and their rows. `rows` is None if a file has no row count."""

    files: int
    rows: int | None


def snapshot_size(log: DeltaLog, version: int, *, most_commits: int) -> SnapshotSize | None:
    """The size at the version; None if it needs more than `most_commits`, or a checkpoint with sidecars. Raises
    SourceError, LakeError.
    """
    checkpoint = log.checkpoint_at_or_before(version)
    start = -1 if checkpoint is None else checkpoint.version
    if version - start > most_commits:
        return None
    rows: dict[str, int | None] = {}
    for name in () if checkpoint is None else checkpoint.names:
        if not _is_classic(name):
            return None
        with log.storage.open(f"{LOG_DIRECTORY}/{name}") as opened:
            rows.update(_in_checkpoint(opened, name))
    for commit in log.commits(start, version):
        for removed in commit.removes:
            rows.pop(removed.path, None)
        rows.update((added.path, _rows(added)) for added in commit.adds)
    counted = [count for count in rows.values() if count is not None]
    return SnapshotSize(len(rows), sum(counted) if len(counted) == len(rows) else None)


def snapshot_bytes(log: DeltaLog, version: int) -> int | None:
    """The bytes of the table's files at the version, by its checksum; None without one."""
    try:
        size = foreign_object(log.storage.read_bytes(checksum_name(version))).get("tableSizeBytes")
    except (FileNotFoundError, IsADirectoryError):
        return None
    return size if type(size) is int else None


def _is_classic(name: str) -> bool:
    """Whether the name is `<version>.checkpoint[.<part>.<parts>].parquet`. V2 has a UUID, and files in sidecars."""
    middle = name.split(".")[2:-1]
    return name.endswith(".parquet") and all(part.isdigit() for part in middle)


def _in_checkpoint(opened: IO[bytes], name: str) -> Iterator[tuple[str, int | None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(opened).read(columns=_COLUMNS)
        adds = table.column("add").combine_chunks().to_pylist() if table.num_columns else []
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_of_storage(error):
            raise
        raise CorruptLog(file=name, problem=f"not a readable checkpoint: {error}") from error
    for add in adds:
        if add is not None and add.get("path") is not None:
            gone = (add.get("deletionVector") or {}).get("cardinality") or 0
            count = physical_rows(add.get("stats"))
            yield add["path"], None if count is None else count - gone


def _rows(file: AddFile) -> int | None:
    count = physical_rows(file.stats)
    if count is None:
        return None
    return count - (file.deletion_vector.cardinality if file.deletion_vector else 0)
