"""A search table, read by PyArrow: the files that it covers, and those that hold a hash.

Its rows are `path` (the id, a partition), `h` (the hash), `file` (a number) and `name`. Rows of the path COVERAGE say
that the path `h` covers the file of that number and name. Those with EVERYWHERE for a file have the meaning of the path
`h` as name. All others say that the file of that number holds the hash. The rows of a file are sorted by `h`, so that
one group of rows or two answer a hash.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.errors import CorruptLog
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import AddFile
from tidemark.search.driver.snapshots import Snapshot
from tidemark.search.model.paths import COVERAGE, EVERYWHERE, SearchPath
from tidemark.search.planning.choosing import Entry, Lookup

__all__ = ["SearchIndex", "path_id_of"]

_MOST_FOOTERS = 256
_ENTRY_COLUMNS = ["h", "file"]
_Bounds = tuple[int | Decimal, int | Decimal]
_NO_BOUNDS: _Bounds = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class _Footer:
    """The footer of a file, and the least and greatest hash of each group of rows."""

    metadata: Any
    bounds: Sequence[_Bounds]


@dataclass(frozen=True)
class SearchIndex:
    """The search table in `snapshot`, if it belongs to `app_id`; otherwise it covers nothing. `names`: those of the
    files of a number; two stores may give it to two files at once. `covered`: path id → names, for each of `paths`. An
    id whose rows have another meaning is not in it, as when another store gave it to another path.
    """

    snapshot: Snapshot
    paths: tuple[SearchPath, ...]
    names: Mapping[int, tuple[str, ...]]
    covered: Mapping[int, frozenset[str]]
    stored_ids: frozenset[int]
    _footers: OrderedDict[str, _Footer] = field(default_factory=OrderedDict, repr=False, compare=False)

    @classmethod
    def of(
        cls, snapshot: Snapshot, app_id: str, paths: tuple[SearchPath, ...], before: SearchIndex | None = None
    ) -> SearchIndex:
        """The index of a snapshot. `before`: an earlier one of the same table, whose footers are used again."""
        footers: OrderedDict[str, _Footer] = OrderedDict() if before is None else before._footers
        stored = {path_id_of(file) for file in snapshot.files.values()} - {COVERAGE}
        if app_id not in snapshot.state.transactions:
            return cls(snapshot, paths, {}, {}, frozenset(stored), footers)
        names: dict[int, tuple[str, ...]] = {}
        covered: defaultdict[int, set[str]] = defaultdict(set)
        meanings: defaultdict[int, set[str]] = defaultdict(set)
        for file in _files_of(snapshot, COVERAGE):
            rows = _read(snapshot.log, file, ["h", "file", "name"])
            for path, number, name in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                if number == EVERYWHERE:
                    meanings[path].add(name)
                    continue
                covered[path].add(name)
                known = names.get(number, ())
                if name not in known:
                    names[number] = (*known, name)
        own = {path.id: frozenset(covered[path.id]) for path in paths if meanings.get(path.id) == {path.meaning}}
        return cls(snapshot, paths, names, own, frozenset(stored | covered.keys() | meanings.keys()), footers)

    @property
    def next_number(self) -> int:
        """A number for a file that no other one has."""
        return max(self.names, default=-1) + 1

    def look_up(self, entries: Collection[Entry]) -> Lookup:
        """The files of each entry. Raises CorruptLog, FileNotFoundError if an upkeep has replaced the table since."""
        by_path: defaultdict[int, set[int]] = defaultdict(set)
        for path, hashed in entries:
            by_path[path].add(hashed)
        found: defaultdict[Entry, set[int]] = defaultdict(set)
        for path, hashes in by_path.items():
            for hashed, number in self._rows(path, hashes):
                found[path, hashed].add(number)
        named = {entry: self._named(numbers) for entry, numbers in found.items()}
        return Lookup({path: self.covered.get(path, frozenset()) for path in by_path}, named)

    def _named(self, numbers: Collection[int]) -> frozenset[str] | None:
        if EVERYWHERE in numbers:
            return None
        return frozenset(name for number in numbers for name in self.names.get(number, ()))

    def _rows(self, path: int, hashes: Collection[int]) -> Iterator[tuple[int, int]]:
        wanted = pa.array(sorted(hashes), pa.int64())
        for file in _files_of(self.snapshot, path):
            least, greatest = _hash_bounds(self.snapshot.statistics(file))
            inside = [one for one in hashes if least <= one <= greatest]
            if not inside:
                continue
            footer = self._footer(file)
            groups = [
                number for number, (low, high) in enumerate(footer.bounds) if any(low <= one <= high for one in inside)
            ]
            if groups:
                rows = _read(self.snapshot.log, file, _ENTRY_COLUMNS, groups, footer.metadata)
                rows = rows.filter(_is_wanted(rows["h"], wanted))
                yield from zip(rows["h"].to_pylist(), rows["file"].to_pylist(), strict=True)

    def _footer(self, file: AddFile) -> _Footer:
        found = self._footers.get(file.path)
        if found is None:
            with _parquet(self.snapshot.log, file) as opened:
                metadata = opened.metadata
            found = self._footers[file.path] = _Footer(metadata, list(map(_group_bounds, _groups(metadata))))
            while len(self._footers) > _MOST_FOOTERS:
                self._footers.popitem(last=False)
        return found


def path_id_of(file: AddFile) -> int:
    """The id of the path whose rows the file of a search table has. Raises CorruptLog."""
    said = file.partition_values.get("path") or str(COVERAGE)
    found = whole_number(said)
    if found is None:
        raise CorruptLog(file=file.path, problem=f"its partition value path is {said[:40]!r}, not a number")
    return found


def _is_wanted(hashes: pa.ChunkedArray, wanted: pa.Array) -> Any:
    return pc.equal(hashes, wanted[0]) if len(wanted) == 1 else pc.is_in(hashes, value_set=wanted)


def _files_of(snapshot: Snapshot, path: int) -> list[AddFile]:
    return [file for file in snapshot.files.values() if path_id_of(file) == path]


def _read(
    log: DeltaLog, file: AddFile, columns: list[str], groups: list[int] | None = None, metadata: Any = None
) -> Any:
    """These columns of the file, or of some of its groups of rows."""
    with _parquet(log, file, metadata) as opened:
        if groups is None:
            return opened.read(columns=columns).select(columns)
        return opened.read_row_groups(groups, columns=columns, use_threads=False).select(columns)


@contextmanager
def _parquet(log: DeltaLog, file: AddFile, metadata: Any = None) -> Iterator[pq.ParquetFile]:
    uri = file_uri(log.uri, file.path)
    try:
        with log.storage.open(uri) as opened:
            yield pq.ParquetFile(opened, metadata=metadata)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError) as error:  # a storage that does not answer has an error of its own
        raise CorruptLog(file=uri, problem=f"not a Parquet file of a search table: {error}") from error


def _groups(metadata: Any) -> Iterator[Any]:
    return (metadata.row_group(number) for number in range(metadata.num_row_groups))


def _group_bounds(group: Any) -> _Bounds:
    columns = (group.column(number) for number in range(group.num_columns))
    said = next((column.statistics for column in columns if column.path_in_schema == "h"), None)
    return _bounds(said.min, said.max) if said is not None and said.has_min_max else _NO_BOUNDS


def _hash_bounds(stats: Mapping[str, Any]) -> _Bounds:
    least, greatest = (stats.get(name) for name in ("minValues", "maxValues"))
    return (
        _bounds(least.get("h"), greatest.get("h"))
        if isinstance(least, dict) and isinstance(greatest, dict)
        else _NO_BOUNDS
    )


def _bounds(least: Any, greatest: Any) -> _Bounds:
    """The bounds, if they are numbers: any writer may have said them."""
    is_number = all(type(one) is int or (isinstance(one, Decimal) and one.is_finite()) for one in (least, greatest))
    return (least, greatest) if is_number else _NO_BOUNDS
