"""Facts that only files have: the rows of a deletion vector, the row count of a file, and whether it exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow
import pyarrow.parquet
from pyroaring import BitMap64

from tidemark.changes.planning.sets.forms import Form, physical_rows
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.errors import CorruptLog, VersionVacuumed
from tidemark.lake import deletion_vectors
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import is_of_storage
from tidemark.lake.live_files import live_files
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import DeletionVector, UnstoredVector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "counted_rows",
    "only_these",
    "physical_rows_of",
    "positions_of",
    "require_files",
    "require_files_of",
    "require_live_files",
    "require_present",
]

_MOST_ROWS = 1 << 36  # of a file; a bitmap of them takes 70 MB
_THREADS = 16  # existence is checked in object stores, where one request takes milliseconds


def counted_rows(vectors: Sequence[tuple[BitMap64, int]], physical: int) -> Iterator[tuple[int, BitMap64]]:
    """The positions of a file by their count, if each form counts the positions that its vector does not delete.

    1. Positions in no vector count as often as all forms together.
    2. Positions in a vector count less, by each form whose vector has them.
    """
    total = sum(count for _, count in vectors)
    named = BitMap64()
    for positions, _ in vectors:
        named |= positions
    by_count = {total: named}
    for positions, count in vectors:
        parted: dict[int, BitMap64] = {}
        for so_far, rows in by_count.items():
            for value, part in ((so_far - count, rows & positions), (so_far, rows - positions)):
                parted[value] = parted.get(value, BitMap64()) | part
        by_count = parted
    if total:
        everything = BitMap64()
        everything.add_range(0, physical)
        by_count[total] = by_count.get(total, BitMap64()) | (everything - named)
    yield from ((count, rows) for count, rows in sorted(by_count.items()) if count and rows)


def only_these(positions: BitMap64, physical: int) -> DeletionVector | UnstoredVector:
    """The vector that deletes all of a file's `physical` rows but `positions`."""
    rest = BitMap64()
    rest.add_range(0, physical)
    return deletion_vectors.made(rest - positions)


def physical_rows_of(log: DeltaLog, form: Form, *, named: int = 0, live: bool = False) -> int:
    """Rows of a file, from its stats or else from the Parquet footer; `live`: without those that its vector deletes.

    `named`: the least number of rows, by the vectors. Stats that count fewer are ignored: some writers count only live
    rows. Raises CorruptLog, even if the file itself has fewer, NotAFile, FileNotFoundError.
    """
    rows, uri = physical_rows(form.stats), file_uri(log.uri, form.path)
    deleted = form.deletion_vector.cardinality if form.deletion_vector else 0
    least = max(named, deleted)
    if rows is None or rows < least:
        rows = _rows_in(log, uri)
    if rows < least:
        raise CorruptLog(file=uri, problem=f"it has {rows:,} rows, but a deletion vector needs {least:,}")
    if rows > _MOST_ROWS:
        raise CorruptLog(file=uri, problem=f"its stats have {rows:,} rows: no file has this many")
    return rows - (deleted if live else 0)


def _rows_in(log: DeltaLog, uri: str) -> int:
    try:
        with log.storage.open(uri) as file:
            return int(pyarrow.parquet.ParquetFile(file).metadata.num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        if is_of_storage(error):
            raise
        raise CorruptLog(file=uri, problem=f"not a Parquet file: {error}") from error


def require_files(log: DeltaLog, plan: ChangePlan) -> None:
    """Nothing, if the plan's data files and deletion vectors exist with the sizes in the log.

    Call it before the read, and again when a read fails for a file: VACUUM may have run between. Raises VersionVacuumed
    for a missing file, CorruptLog for one of another size, which is unfinished or another file.
    """
    uris = {uri for file in plan.files for uri in _uris(file.path, file.deletion_vector)}
    found = require_present(log, uris, plan.start, plan.end)
    for file in plan.files:
        if found[file.path] != file.size:
            problem = f"it has {found[file.path]} bytes, but {file.size} in the log"
            raise CorruptLog(file=file.path, problem=problem)


def require_files_of(log: DeltaLog, rows: DataFrame, start: int, end: int) -> None:
    """Nothing, or VersionVacuumed if a data file that `rows` of a version reads is missing."""
    named = (file.split(":", 1) for file in rows.inputFiles())  # Spark names files without percent-encoding
    require_present(log, (f"{scheme}:{quote(path)}" for scheme, path in named), start, end)


def require_live_files(log: DeltaLog, version: int) -> None:
    """Nothing, or VersionVacuumed if a data file or deletion vector of a version is missing. It needs no Spark."""
    uris: set[str] = set()
    for file in live_files(log, version):
        vector = None if file.deletion_vector is None else deletion_vectors.absolute(file.deletion_vector, log.uri)
        uris.update(_uris(file_uri(log.uri, file.path), vector))
    require_present(log, uris, version, version)


def require_present(log: DeltaLog, uris: Iterable[str], start: int, end: int) -> dict[str, int]:
    """The sizes of the files at these absolute, percent-encoded URIs. Raises VersionVacuumed if one is missing."""
    asked = sorted(uris)
    with ThreadPoolExecutor(_THREADS) as pool:
        sizes = dict(zip(asked, pool.map(log.storage.size, asked), strict=True))
    missing = [uri for uri, size in sizes.items() if size is None]
    if missing:
        raise VersionVacuumed(table=log.uri, start=start, end=end, count=len(missing), first=missing[0])
    return {uri: size for uri, size in sizes.items() if size is not None}


def positions_of(log: DeltaLog, vector: DeletionVector | None) -> BitMap64:
    """The rows that a vector deletes. Raises CorruptLog, NotAFile, FileNotFoundError."""
    return deletion_vectors.load(vector, log.uri, log.storage) if vector else BitMap64()


def _uris(path: str, vector: DeletionVector | UnstoredVector | None) -> Iterable[str]:
    yield path
    if isinstance(vector, DeletionVector) and vector.storage_type == "p":
        yield vector.path_or_inline
