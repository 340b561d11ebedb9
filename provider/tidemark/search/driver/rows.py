"""The rows of few files, read by PyArrow as Spark reads them, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tidemark.changes.driver.few_images import column_as, constant, kinds_of, require_plain_names
from tidemark.changes.driver.few_states import THREADS, UnlikeSpark, open_parquet
from tidemark.lake.deletion_vectors import load
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import AddFile
from tidemark.search.driver.snapshots import Snapshot
from tidemark.search.model.paths import SearchColumn
from tidemark.search.model.terms import AllOf, AnyOf, Anything, Holds, IsIn, Like, Term, Within, is_exact

__all__ = ["are_few", "matching_rows"]

_MOST_FILES = 16
_MOST_BYTES = 512 << 20


def are_few(files: Sequence[AddFile]) -> bool:
    """Whether the files are read faster in this process than by a job of Spark."""
    return len(files) <= _MOST_FILES and sum(file.size for file in files) <= _MOST_BYTES


def matching_rows(snapshot: Snapshot, files: Sequence[AddFile], term: Term, columns: Sequence[str]) -> pa.Table | None:
    """The rows of these files for which the term is true, with these columns. None if PyArrow may read or compare them
    otherwise than Spark, or a file is gone or damaged. Raises CorruptLog, StorageUnreachable, StorageRefused.
    """
    if not is_exact(term):
        return None
    try:
        reader = _Reader(snapshot, term, columns)
        if len(files) < 2:
            parts = list(map(reader.of, files))
        else:
            with ThreadPoolExecutor(THREADS) as pool:
                parts = list(pool.map(reader.of, files))
    except (UnlikeSpark, pa.ArrowException, OSError, OverflowError):  # OSError: gone, or a footer that is garbage
        return None
    return pa.concat_tables([reader.nothing, *(table for part in parts for table in part)])


class _Reader:
    def __init__(self, snapshot: Snapshot, term: Term, columns: Sequence[str]) -> None:
        kinds = kinds_of(snapshot.state.metadata)
        named = list(_columns(term))
        if any(column.parts != column.physical for column in named):
            raise UnlikeSpark
        self._snapshot, self._term = snapshot, term
        self._asked = {column.parts[0]: kinds[column.parts[0]] for column in named}
        self._wanted = {name: kinds[name] for name in columns}
        self.nothing = pa.table({name: pa.array([], kind) for name, kind in self._wanted.items()})

    def of(self, file: AddFile) -> list[pa.Table]:
        """The rows of a file, in one table for each group of rows that has any."""
        log = self._snapshot.log
        vector = file.deletion_vector
        deleted = BitMap64() if vector is None else load(vector, log.uri, log.storage)
        found: list[pa.Table] = []
        with log.storage.open(file_uri(log.uri, file.path)) as opened:
            parquet, first = open_parquet(opened), 0
            for group in range(parquet.num_row_groups):
                count = parquet.metadata.row_group(group).num_rows
                asked = self._read(parquet, group, count, self._asked, file)
                places = _places(_is_true(self._term, asked.__getitem__), first, deleted)
                if places:
                    known = {name: asked[name] for name in asked if name in self._wanted}
                    rest = {name: kind for name, kind in self._wanted.items() if name not in known}
                    rows = known | self._read(parquet, group, count, rest, file)
                    at = pa.array(places, pa.int64())
                    found.append(pa.table({name: rows[name].take(at) for name in self._wanted}))
                first += count
        return found

    @staticmethod
    def _read(
        parquet: pq.ParquetFile, group: int, count: int, kinds: Mapping[str, pa.DataType], file: AddFile
    ) -> dict[str, pa.Array]:
        values = file.partition_values
        names = require_plain_names(parquet, [name for name in kinds if name not in values])
        table = parquet.read_row_group(group, columns=names, use_threads=False) if names else pa.table({})
        return {
            name: constant(values[name], kind, count) if name in values else column_as(table, name, kind, count)
            for name, kind in kinds.items()
        }


def _places(is_true: pa.Array, first: int, deleted: BitMap64) -> list[int]:
    """The places in the group at which the predicate is true and the row is not deleted."""
    found = pc.indices_nonzero(pc.fill_null(is_true, False)).to_pylist()
    return [place for place in found if first + place not in deleted] if deleted else found


def _columns(term: Term) -> list[SearchColumn]:
    if isinstance(term, AllOf | AnyOf):
        return [column for part in term.parts for column in _columns(part)]
    return [] if isinstance(term, Anything) else [term.column]


def _is_true(term: Term, column: Callable[[str], pa.Array]) -> pa.Array:
    if isinstance(term, AllOf | AnyOf):
        join = pc.and_kleene if isinstance(term, AllOf) else pc.or_kleene
        return reduce(join, [_is_true(part, column) for part in term.parts])
    if isinstance(term, Anything):
        raise UnlikeSpark
    values = column(term.column.parts[0])
    for part in term.column.parts[1:]:
        values = pc.struct_field(values, part)
    return _READERS[type(term)](term, values)


def _is_in(term: IsIn, values: pa.Array) -> pa.Array:
    return pc.is_in(values, value_set=pa.array(term.values, values.type))


def _holds(term: Holds, values: pa.Array) -> pa.Array:
    flat, rows = pc.list_flatten(values), pc.list_parent_indices(values)
    holding = rows.filter(pc.is_in(flat, value_set=pa.array(term.values, flat.type)))
    return pc.is_in(pa.array(range(len(values)), rows.type), value_set=holding)


def _like(term: Like, values: pa.Array) -> pa.Array:
    return pc.match_like(values, term.pattern)


def _within(term: Within, values: pa.Array) -> pa.Array:
    parts = []
    if term.least is not None:
        compare = pc.greater_equal if term.with_least else pc.greater
        parts.append(compare(values, pa.scalar(term.least, values.type)))
    if term.most is not None:
        compare = pc.less_equal if term.with_most else pc.less
        parts.append(compare(values, pa.scalar(term.most, values.type)))
    return reduce(pc.and_kleene, parts)


_READERS: dict[type[Any], Callable[[Any, pa.Array], pa.Array]] = {
    IsIn: _is_in,
    Holds: _holds,
    Like: _like,
    Within: _within,
}
