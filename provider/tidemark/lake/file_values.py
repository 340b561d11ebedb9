"""The least and greatest values of columns as ranks, from the statistics of many files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tidemark.model.file_ranges import KeyColumn
from tidemark.model.foreign_json import exact_number, parsed

__all__ = ["Extremes", "extremes_of"]

_TRUNCATED = 32  # characters of a text that Delta's statistics keep
_WHOLE = frozenset({"byte", "short", "integer", "long"})
_FRACTIONS = frozenset({"float", "double"})
_BLOCK = 64 << 20  # bytes of statistics in one step; one file's must fit
_WITH_ZONE = r"[+-]\d\d:?\d\d$"


@dataclass(frozen=True)
class Extremes:
    """Of one column in each file: ranks of the least and the greatest value, 0 with only NULL. `known`: whether
    statistics say so. `one_value`: whether the file has one value of the column for certain.
    """

    least: Sequence[int]
    greatest: Sequence[int]
    one_value: Sequence[bool]
    known: Sequence[bool]


def extremes_of(
    stats: Sequence[str | None], partitions: Sequence[Mapping[str, str | None]], columns: Sequence[KeyColumn]
) -> tuple[Sequence[int | None], list[Extremes]]:
    """The number of rows of each file, and the extremes of each column. A text that is no statistics counts as none."""
    inside = [column for column in columns if not column.partition]
    rows, found = _fast(stats, inside) or _slow(stats, inside)
    by_name = dict(zip((column.name for column in inside), found, strict=True))
    return rows, [
        _of_partitions(partitions, column) if column.partition else by_name[column.name] for column in columns
    ]


def _fast(
    stats: Sequence[str | None], columns: Sequence[KeyColumn]
) -> tuple[Sequence[int | None], list[Extremes]] | None:
    """By one parser for all texts; None if it does not understand one of them."""
    import pyarrow as pa
    from pyarrow import json as pa_json

    if not stats or not columns or any(column.kind.startswith("decimal") for column in columns):
        return None
    kinds = {"minValues": None, "maxValues": None, "nullCount": pa.int64()}
    schema = [("numRecords", pa.int64()), *((name, _struct(columns, kind)) for name, kind in kinds.items())]
    options = pa_json.ParseOptions(explicit_schema=pa.schema(schema), unexpected_field_behavior="ignore")
    text = "\n".join(one or "{}" for one in stats).encode(errors="replace")  # lone surrogates: a text cut in two
    try:
        reading = pa_json.ReadOptions(block_size=_BLOCK)
        table = pa_json.read_json(pa.BufferReader(text), read_options=reading, parse_options=options)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(stats):
        return None
    found = [_ranked(table, column) for column in columns]
    if any(one is None for one in found):
        return None
    return table.column("numRecords").to_pylist(), [one for one in found if one is not None]


def _struct(columns: Sequence[KeyColumn], kind: Any) -> Any:
    """The type of an object with these columns, nested ones within objects."""
    import pyarrow as pa

    tree: dict[str, Any] = {}
    for column in columns:
        place = tree
        for part in column.path[:-1]:
            place = place.setdefault(part, {})
        place[column.path[-1]] = _arrow_type(column.kind) if kind is None else kind

    def built(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        return pa.struct([(name, built(one)) for name, one in node.items()])

    return built(tree)


def _arrow_type(kind: str) -> Any:
    import pyarrow as pa

    if kind in _WHOLE:
        return pa.int64()
    return pa.float64() if kind in _FRACTIONS else pa.string()


def _ranked(table: Any, column: KeyColumn) -> Extremes | None:
    """None for times with zones, whose texts do not sort by time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high, nulls = (
        pc.struct_field(table.column(name).combine_chunks(), list(column.path))
        for name in ("minValues", "maxValues", "nullCount")
    )
    both = pa.concat_arrays([low, high])
    if column.kind == "timestamp":
        if pc.any(pc.match_substring_regex(both, _WITH_ZONE)).as_py():
            return None
        both = pc.utf8_rtrim(both, "Z")
    rows = table.column("numRecords").combine_chunks()
    valid = pc.and_(low.is_valid(), high.is_valid())
    empty = pc.fill_null(pc.equal(nulls, rows), False)
    known = pc.or_(valid, pc.and_(empty, pc.and_(low.is_null(), high.is_null())))
    ranks = pc.rank(both, sort_keys="ascending", tiebreaker="dense")
    ranks = pc.if_else(both.is_valid(), pc.cast(ranks, pa.int64()), 0)
    least, greatest = ranks[: len(low)], ranks[len(low) :]
    one_value = pc.equal(least, greatest)
    if column.kind == "string":
        one_value = pc.and_(one_value, pc.fill_null(pc.less(pc.utf8_length(low), _TRUNCATED), True))
    return Extremes(least.to_pylist(), greatest.to_pylist(), one_value.to_pylist(), known.to_pylist())


def _slow(stats: Sequence[str | None], columns: Sequence[KeyColumn]) -> tuple[Sequence[int | None], list[Extremes]]:
    """Text by text, with exact decimals."""
    rows: list[int | None] = []
    found: list[tuple[list[Any], list[Any], list[Any]]] = [([], [], []) for _ in columns]
    for text in stats:
        said = _object(text)
        count = said.get("numRecords")
        rows.append(count if type(count) is int else None)
        for column, parts in zip(columns, found, strict=True):
            for name, part in zip(("minValues", "maxValues", "nullCount"), parts, strict=True):
                part.append(_inside(said.get(name), column.path))
    return rows, [_extremes(column, rows, *parts) for column, parts in zip(columns, found, strict=True)]


def _object(text: str | None) -> Mapping[str, Any]:
    try:
        found = parsed(text or "{}", fraction=exact_number)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _inside(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _extremes(
    column: KeyColumn, rows: Sequence[int | None], least: Sequence[Any], greatest: Sequence[Any], nulls: Sequence[Any]
) -> Extremes:
    read = _reader(column.kind)
    low, high = [read(value) for value in least], [read(value) for value in greatest]
    known = [
        (a is not None and b is not None) or (a is None and b is None and count is not None and count == empty)
        for a, b, count, empty in zip(low, high, rows, nulls, strict=True)
    ]
    one_value = [
        a == b and not (column.kind == "string" and a is not None and len(a) >= _TRUNCATED)
        for a, b in zip(low, high, strict=True)
    ]
    rank = _ranks([*low, *high])
    return Extremes([rank[value] for value in low], [rank[value] for value in high], one_value, known)


def _of_partitions(partitions: Sequence[Mapping[str, str | None]], column: KeyColumn) -> Extremes:
    """A file is in one partition, and so has one value."""
    read = _from_text(column.kind)
    values = [read(values.get(column.path[-1]) or None) for values in partitions]
    rank, everywhere = _ranks(values), [True] * len(values)
    ranks = [rank[value] for value in values]
    return Extremes(ranks, ranks, everywhere, everywhere)


def _ranks(values: Sequence[Any]) -> Mapping[Any, int]:
    """The rank of each value; 0 of None."""
    ends = sorted({value for value in values if value is not None})
    return {None: 0, **dict(zip(ends, range(1, len(ends) + 1), strict=True))}


def _reader(kind: str) -> Callable[[Any], Any]:
    """The value of a statistic in a form that can be compared, None for one of another type."""
    if kind in _WHOLE or kind in _FRACTIONS or kind.startswith("decimal"):
        return _number
    return _instant if kind == "timestamp" else _text


def _number(value: Any) -> Any:
    if isinstance(value, str):  # the infinities, and NaN
        return _from_text("double")(value)
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return value if is_number and value == value else None


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else None


def _instant(value: Any) -> Any:
    """A time as text that sorts by time: in UTC, without its zone."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)).isoformat()


def _from_text(kind: str) -> Callable[[str | None], Any]:
    """The reader of a number in a text; other types sort as texts."""
    if kind not in _WHOLE and kind not in _FRACTIONS and not kind.startswith("decimal"):
        return _text

    def read(text: str | None) -> Any:
        try:
            found = None if text is None else Decimal(text)
        except ArithmeticError:
            return None
        return None if found is None or found.is_nan() else found

    return read
