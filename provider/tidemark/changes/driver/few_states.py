"""The states of a plan's rows without their images, from narrow columns of the files and from the log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyroaring import BitMap64

from tidemark.changes.driver.feed_rows import BIRTH
from tidemark.changes.driver.log_only import CHANGE_TYPE, COMMIT_NAME, OLD_IMAGES, ROW_ID_NAME
from tidemark.changes.driver.planned_files import FEED_ROW_IDS_FROM
from tidemark.changes.planning.sets.forms import ADDED, REMOVED
from tidemark.changes.planning.sets.plan import ChangePlan, Origin, PlannedFile
from tidemark.lake import deletion_vectors
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.table_log import UnstoredVector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

__all__ = ["THREADS", "State", "UnlikeSpark", "open_parquet", "states_of", "without_equal_ones"]

THREADS = 8  # in object stores a request takes milliseconds
_WRITER, _FIRST_WRITER = b"org.apache.spark.version", (3, 1)
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


class UnlikeSpark(Exception):
    """A file that PyArrow may read otherwise than Spark."""


class State(NamedTuple):
    """A row of a file: `file` is its number in the plan, `commit` the version that last changed the row."""

    file: int
    position: int
    version: int
    row_id: int
    commit: int
    side: int


def states_of(log: DeltaLog, plan: ChangePlan) -> pa.Table:
    """A row for each row of `plan` that counts, with the fields of State (bigint).

    Raises UnlikeSpark, pyarrow.ArrowException, FileNotFoundError.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        tables = pool.map(lambda numbered: _of_file(log, plan, *numbered), enumerate(plan.files))
        return pa.concat_tables(list(tables))


def without_equal_ones(states: pa.Table, *, by_version: bool) -> pa.Table:
    """Without the rows that rewrites carried over: their states are equal on both sides, as often."""
    keys = ["version", "row_id", "commit"] if by_version else ["row_id", "commit"]
    counted = states.group_by(keys).aggregate([("side", "sum")])
    left = counted.filter(pc.not_equal(counted["side_sum"], 0))["row_id"]
    return states.filter(pc.is_in(states["row_id"], value_set=left.combine_chunks()))


def open_parquet(file: IO[bytes]) -> pyarrow.parquet.ParquetFile:
    """The file, with times in microseconds. Raises UnlikeSpark if its dates may be of the calendar before 1582."""
    opened = pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")
    facts = opened.metadata.metadata or {}
    writer = facts.get(_WRITER)
    if any(name in facts for name in _LEGACY) or (writer is not None and _release(writer) < _FIRST_WRITER):
        raise UnlikeSpark
    return opened


def _release(text: bytes) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(b".")[:2])
    except ValueError:
        raise UnlikeSpark from None


def _of_file(log: DeltaLog, plan: ChangePlan, number: int, file: PlannedFile) -> pa.Table:
    import numpy as np

    settings = plan.metadata.configuration
    with log.storage.open(file.path) as opened:
        parquet = open_parquet(opened)
        physical = parquet.metadata.num_rows
        positions = _live(log, file, physical)
        base = np.arange(file.base_row_id, file.base_row_id + physical, dtype=np.int64)
        ids = _numbers(parquet, settings.get(ROW_ID_NAME), base)[positions]
        default = np.full(physical, file.default_row_commit_version, dtype=np.int64)
        commits = _numbers(parquet, settings.get(COMMIT_NAME), default)[positions]
        counts, sides = _sides(parquet, file, ids, positions)
    kept = np.flatnonzero(counts)
    if file.origin is Origin.CHANGES and (ids[kept] >= FEED_ROW_IDS_FROM).any():
        raise UnlikeSpark  # an old row without its id: Spark's query says so
    columns = {
        "file": np.full(len(kept), number, dtype=np.int64),
        "position": positions[kept],
        "version": np.full(len(kept), file.version, dtype=np.int64),
        "row_id": ids[kept],
        "commit": commits[kept],
        "side": sides[kept],
    }
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _live(log: DeltaLog, file: PlannedFile, physical: int) -> Numbers:
    """The positions outside the file's vector, ascending."""
    import numpy as np

    vector = file.deletion_vector
    if vector is None:
        return np.arange(physical, dtype=np.int64)
    if isinstance(vector, UnstoredVector):
        deleted = BitMap64.deserialize(vector.data[4:])
    else:
        deleted = deletion_vectors.load(vector, log.uri, log.storage)
    live = BitMap64()
    live.add_range(0, physical)
    return np.fromiter(live - deleted, dtype=np.int64)


def _numbers(parquet: pyarrow.parquet.ParquetFile, column: str | None, otherwise: Numbers) -> Numbers:
    """The values of a hidden column; `otherwise` if the file does not have it, or NULL in a row."""
    if column is None or column not in parquet.schema_arrow.names:
        return otherwise
    values = parquet.read([column])[column]
    found: Numbers = pc.coalesce(values, pa.array(otherwise)).to_numpy()
    return found


def _sides(
    parquet: pyarrow.parquet.ParquetFile, file: PlannedFile, ids: Numbers, positions: Numbers
) -> tuple[Numbers, Numbers]:
    """(whether each row counts, its side)."""
    import numpy as np

    if file.origin is Origin.CHANGES:
        types = parquet.read([CHANGE_TYPE])[CHANGE_TYPE].take(pa.array(positions))
        is_old = pc.is_in(types, value_set=pa.array(OLD_IMAGES, types.type)).to_numpy()
        return pc.not_equal(types, BIRTH).to_numpy(), np.where(is_old, REMOVED, ADDED)
    if file.origin is Origin.BORN:
        return ids >= file.base_row_id, np.full(len(ids), ADDED)
    return np.ones(len(ids), dtype=bool), np.full(len(ids), int(file.origin))
