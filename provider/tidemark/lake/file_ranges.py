"""The ranges of columns in a table's files at a version, read fast: a table may have 100,000 files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tidemark.errors import InvalidArgument
from tidemark.lake import actions, fields
from tidemark.lake.checkpoint_adds import AddReader, checkpoint_adds
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_values import extremes_of
from tidemark.lake.segments import commit_name
from tidemark.lake.state_folds import corrupt_if_garbled
from tidemark.model.file_ranges import Bound, Boxes, FileRanges, KeyColumn

__all__ = ["added_ranges", "file_ranges"]

T = TypeVar("T")
_KINDS = frozenset({b"add", b"remove"})
_REGION = ""  # no path of a file
_CUBE, _CUBE_KEY = "ZCUBE_ID", "ZCUBE_ZORDER_BY"


@dataclass(frozen=True, slots=True)
class _Entry:
    """The facts of one `add` that ranges need."""

    size: int
    stats: str | None
    cube: tuple[str, str] | None
    deleted: int
    partition: Mapping[str, str | None] | None


def file_ranges(log: DeltaLog, version: int, columns: Sequence[KeyColumn], within: Sequence[Bound] = ()) -> FileRanges:
    """The files at the version, or those that can have rows within the bounds. Raises VersionNotFound, LogIncomplete,
    CorruptLog, and InvalidArgument for a bound of another type than its column.
    """
    checkpoint = log.checkpoint_at_or_before(version)
    found: dict[str, _Entry] = {}
    if checkpoint is not None:
        found.update(checkpoint_adds(log, checkpoint, _READER))
    for name, data in _commits(log, -1 if checkpoint is None else checkpoint.version, version):
        _take(found, name, data)
    if not within:
        return _ranges(found, version, columns)
    return _inside(_ranges({**found, **_region(columns, within)}, version, columns), within)


def added_ranges(log: DeltaLog, after: int, through: int, columns: Sequence[KeyColumn]) -> FileRanges | None:
    """The files that the versions after + 1 … through added and that are live at the last one. None if these versions
    removed an earlier file. An earlier file that got a deletion vector is not among them.
    """
    found: dict[str, _Entry] = {}
    for name, data in _commits(log, after, through):
        earlier = _take(found, name, data)
        if not earlier <= found.keys():
            return None
        for path in earlier:
            del found[path]
    return _ranges(found, through, columns)


def _commits(log: DeltaLog, after: int, through: int) -> Iterator[tuple[str, bytes]]:
    return ((commit_name(version), data) for version, data in log.commit_files(after, through))


def _take(found: dict[str, _Entry], name: str, data: bytes) -> set[str]:
    """Removals of a commit come first: its actions have no order, and a file may get another deletion vector. The
    removed files that were not found before.
    """
    added: dict[str, _Entry] = {}
    earlier: set[str] = set()
    with corrupt_if_garbled(name):
        for kind, body in actions.parse_lines(data, _KINDS, name):
            path = fields.path(body)
            if kind == "add":
                added[path] = _entry(body)
            elif found.pop(path, None) is None:
                earlier.add(path)
    found.update(added)
    return earlier


def _entry(body: Mapping[str, Any]) -> _Entry:
    """Raises ValueError for a field of a wrong type."""
    tags, vector = body.get("tags"), body.get("deletionVector")
    return _Entry(
        fields.whole(body, "size"),
        fields.optional_text(body, "stats"),
        _cube(tags.get(_CUBE), tags.get(_CUBE_KEY)) if isinstance(tags, dict) else None,
        fields.whole(vector, "cardinality") if isinstance(vector, dict) else 0,
        fields.partition_values(body),
    )


def _cube(cube: object, key: object) -> tuple[str, str] | None:
    return (cube, key if isinstance(key, str) else "") if isinstance(cube, str) else None


def _of_batch(adds: Any) -> Iterator[tuple[str, _Entry]]:
    """The entries of a batch, column by column. Raises ValueError for a field of a wrong type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known, nothing = {field.name for field in adds.type}, [None] * len(adds)

    def values(field: str) -> Iterable[Any]:
        found: Iterable[Any] = pc.struct_field(adds, field).to_pylist() if field in known else nothing
        return found

    def tag(key: str) -> Iterable[Any]:
        if "tags" not in known or not pa.types.is_map(adds.type.field("tags").type):
            return nothing
        found: Iterable[Any] = pc.map_lookup(pc.struct_field(adds, "tags"), key, "first").to_pylist()
        return found

    partition: Iterable[Any] = nothing
    if "partitionValues" in known:
        lists = pc.struct_field(adds, "partitionValues")
        partition = lists.to_pylist() if len(lists.keys) else nothing
    vectors = pc.struct_field(adds, "deletionVector") if "deletionVector" in known else None
    deleted = nothing if vectors is None else pc.struct_field(vectors, "cardinality").to_pylist()
    columns = (values("path"), values("size"), values("stats"), tag(_CUBE), tag(_CUBE_KEY), deleted, partition)
    for path, size, stats, cube, key, gone, of in zip(*columns, strict=True):
        if not isinstance(path, str) or not isinstance(size, int):
            raise ValueError("an add has no path or no size")
        yield path, _Entry(size, stats, _cube(cube, key), gone or 0, None if of is None else dict(of))


_FIELDS = frozenset({"path", "size", "stats", "tags", "deletionVector", "partitionValues"})
_READER = AddReader(_FIELDS, lambda body: (fields.path(body), _entry(body)), _of_batch, at_once=50_000)


def _ranges(found: Mapping[str, _Entry], version: int, columns: Sequence[KeyColumn]) -> FileRanges:
    entries = list(found.values())
    partitions = [one.partition or {} for one in entries]
    rows, extremes = extremes_of([one.stats for one in entries], partitions, columns)
    known = [all(one) for one in zip(*(one.known for one in extremes), strict=True)]
    constant = [all(one) for one in zip(*(one.one_value for one in extremes), strict=True)]
    sizes = [_live_size(one, count) for one, count in zip(entries, rows, strict=True)]
    return FileRanges(
        version=version,
        columns=tuple(columns),
        boxes=Boxes(
            tuple(_kept(one.least, known) for one in extremes),
            tuple(_kept(one.greatest, known) for one in extremes),
            _kept(constant, known),
        ),
        sizes=_kept(sizes, known),
        cubes=_kept([one.cube for one in entries], known),
        without=tuple(path for path, one in zip(found, known, strict=True) if not one),
        without_sizes=tuple((one.cube, size) for one, size, has in zip(entries, sizes, known, strict=True) if not has),
    )


def _region(columns: Sequence[KeyColumn], within: Sequence[Bound]) -> dict[str, _Entry]:
    """A file that would have the bounds as its least and greatest values, so that they get ranks, too."""
    said: dict[str, Any] = {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}
    given = {bound.column: bound for bound in within}
    for column in columns:
        bound = given.get(column.name)
        if bound is None:
            _put(said["nullCount"], column.path, 1)
            continue
        ends = [end for end in (bound.least, bound.greatest) if end is not None]
        _put(said["minValues"], column.path, ends[0])
        _put(said["maxValues"], column.path, ends[-1])
    return {_REGION: _Entry(0, json.dumps(said), None, 0, None)}


def _put(place: dict[str, Any], path: Sequence[str], value: object) -> None:
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place[path[-1]] = value


def _inside(files: FileRanges, within: Sequence[Bound]) -> FileRanges:
    """The files that touch the region, which is the last one."""
    if _REGION in files.without:
        ends = [(one.column, one.least, one.greatest) for one in within]
        raise InvalidArgument(argument="where", value=ends, problem="a value has another type than its column")
    region = len(files.boxes) - 1
    kept = list(range(region))
    for place, column in enumerate(files.columns):
        bound = next((one for one in within if one.column == column.name), None)
        if bound is None:
            continue
        least, greatest = files.boxes.least[place], files.boxes.greatest[place]
        if bound.least is not None:
            kept = [file for file in kept if greatest[file] >= least[region]]
        if bound.greatest is not None:
            kept = [file for file in kept if greatest[file] > 0 and least[file] <= greatest[region]]
    found = files.only(kept)
    return replace(found, beside=found.beside[:-1])  # without the region itself


def _kept(values: Sequence[T], wanted: Sequence[bool]) -> Sequence[T]:
    if all(wanted):
        return values
    return [value for value, keep in zip(values, wanted, strict=True) if keep]


def _live_size(entry: _Entry, rows: int | None) -> int:
    """The size by which Delta measures its clustering: less the share of rows that a deletion vector has deleted."""
    if not entry.deleted or not rows:
        return entry.size
    return int(entry.size * max(0, rows - entry.deleted) / rows)
