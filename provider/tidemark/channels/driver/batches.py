"""A batch of rows in the form of its table, and the errors of the rows that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Protocol

import pyarrow as pa

from tidemark.channels.driver.arrow_types import buffer_type
from tidemark.channels.driver.json_rows import JsonLines, rows_of_json, rows_of_lines
from tidemark.channels.driver.row_sizes import MOST_BYTES, too_large
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.driver.vectorised import from_array, from_values
from tidemark.channels.model.columns import Column
from tidemark.channels.model.rows import RowError, RowErrorKind
from tidemark.channels.planning.values.convert import column_for, convert
from tidemark.channels.planning.values.problem import ValueProblem, cut
from tidemark.errors import InvalidArgument

__all__ = ["Batch", "batch_of", "plain_rows", "python_value", "rows_of_any_form"]

_MISSING: Any = object()
_SHOWN_NAMES = 1_000  # characters of names that writers chose
_ORDER = {kind: number for number, kind in enumerate(RowErrorKind)}
_VALUE_ERRORS = _ORDER[RowErrorKind.WRONG_TYPE]  # from here on the first column counts, not the kind


@dataclass(frozen=True)
class Batch:
    """`rows`: those that fit, in their order, with the table's columns by their names in files. `parsed`: all rows.
    `errors`: one for each other row, by row index. `place`: of a row in its source, for messages.
    """

    rows: pa.Table
    parsed: int
    errors: tuple[RowError, ...]
    place: Callable[[int], str] = "row {}".format

    def said_of(self, error: RowError) -> str:
        """The row's place, and what is wrong with it."""
        return f"{self.place(error.row_index)}: {error}"


class _Source(Protocol):
    """A batch by columns, in one of the forms that a writer can give."""

    @property
    def length(self) -> int: ...
    def unknown(self) -> Iterable[tuple[int, list[str]]]: ...
    def doubled(self) -> Iterable[tuple[int, list[str]]]: ...
    def fast(self, column: Column, zone: tzinfo) -> pa.Array | None: ...
    def values(self, column: Column) -> Sequence[Any]: ...
    def lacks(self, column: Column) -> bool: ...


def batch_of(rows: Any, spec: TableSpec, zone: tzinfo, now: datetime) -> Batch:
    """The rows in the form of the table. `rows`: mappings by column name, an Arrow table or batch, a pandas frame, or
    bytes of JSON lines; or JsonLines. `zone`: of times without an offset. `now`: the present of defaults.

    Names are found without case, or exactly in double quotes. Raises InvalidArgument for anything else, and
    BodyUnreadable for bytes that are no JSON lines.
    """
    found = _Errors()
    place: Callable[[int], str] = "row {}".format
    if isinstance(rows, JsonLines):
        place = rows.place
        rows, unreadable = rows_of_lines(rows.lines, spec)
        for index, problem in unreadable.items():
            found.add(index, "", RowErrorKind.UNREADABLE, problem, -1)
    plain = plain_rows(rows, spec)
    source: _Source = _ArrowRows(plain, spec) if isinstance(plain, pa.Table) else _MappedRows(plain, spec)
    wrong = ((source.unknown(), "the table has no such column"), (source.doubled(), "the row has it twice"))
    for rows_with_names, problem in wrong:
        for index, names in rows_with_names:
            found.add(index, cut(",".join(names), _SHOWN_NAMES), RowErrorKind.EXTRA_COLUMN, problem, -1)
    present = {name: default.at(now, spec.by_name[name.upper()], zone) for name, default in spec.defaults.items()}
    arrays = [
        _column(source, column, place, present.get(column.name), zone, found)
        for place, column in enumerate(spec.columns)
    ]
    table = pa.Table.from_arrays(arrays, schema=spec.buffer_schema)
    for index, size in too_large(table):
        problem = f"its values have {size:,} bytes, and at most {MOST_BYTES:,} are taken"
        found.add(index, "", RowErrorKind.TOO_LARGE, problem, len(arrays))
    if found.first:
        good = [index for index in range(source.length) if index not in found.first]
        table = table.take(pa.array(good, pa.int64()))
    return Batch(table, source.length, found.by_row(), place)


def plain_rows(rows: Any, spec: TableSpec) -> pa.Table | list[Mapping[str, Any]]:
    """The rows as an Arrow table or as mappings. Raises as `batch_of`."""
    if isinstance(rows, JsonLines):
        rows, _ = rows_of_lines(rows.lines, spec)
    elif isinstance(rows, bytes):
        rows = rows_of_json(rows, spec)
    return rows_of_any_form(rows)


def rows_of_any_form(rows: Any) -> pa.Table | list[Mapping[str, Any]]:
    """Mappings by column name, an Arrow table or batch, or a pandas frame in one of two forms. Raises InvalidArgument
    for anything else.
    """
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    elif type(rows).__module__.startswith("pandas.") and hasattr(rows, "columns"):
        rows = _of_frame(rows)
    if isinstance(rows, pa.Table):
        return rows
    found = list(rows) if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping) else None
    if found is None or not all(isinstance(row, Mapping) for row in found):
        problem = "it must be a list of dictionaries, an Arrow table or batch, a pandas frame, or bytes of JSON lines"
        raise InvalidArgument(argument="rows", value=f"({type(rows).__name__})", problem=problem)
    return found


def _of_frame(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        problem = f"PyArrow cannot take it: {error}. Give dictionaries, as frame.to_dict('records')"
        raise InvalidArgument(argument="rows", value="(DataFrame)", problem=problem) from None


def _column(source: _Source, column: Column, place: int, default: Any, zone: tzinfo, found: _Errors) -> pa.Array:
    if source.lacks(column):
        if default is None and not column.nullable:
            for index in range(source.length):
                found.add(index, column.name, RowErrorKind.MISSING_COLUMN, "the column is missing", place)
        return _constant(default, column, source.length)
    fast = source.fast(column, zone)
    if fast is not None and (column.nullable or not fast.null_count):
        return fast
    return _by_value(source.values(column), column, place, default, zone, found)


def _constant(value: Any, column: Column, length: int) -> pa.Array:
    kind = buffer_type(column.type)
    return pa.nulls(length, kind) if value is None else pa.array([value], kind).take(pa.array([0] * length, pa.int64()))


def _by_value(
    values: Sequence[Any], column: Column, place: int, default: Any, zone: tzinfo, found: _Errors
) -> pa.Array:
    """The column by the rules of `convert`; NULL for a row with an error."""
    converted = []
    for index, value in enumerate(values):
        fit = None
        if value is _MISSING:
            fit = default
            if fit is None and not column.nullable:
                found.add(index, column.name, RowErrorKind.MISSING_COLUMN, "the column is missing", place)
        else:
            try:
                fit = convert(value, column.type, zone)
                if fit is None and not column.nullable:
                    found.add(index, column.name, RowErrorKind.NULL_VALUE, "it is NULL, and must not be", place)
            except ValueProblem as problem:
                found.add(index, column.name + problem.path, problem.kind, problem.message, place)
        converted.append(fit)
    return pa.array(converted, buffer_type(column.type))


class _Errors:
    """The first error of each row, in the order of the source system. Unknown columns come first, then missing ones,
    NULLs, and values in the order of the columns.
    """

    def __init__(self) -> None:
        self.first: dict[int, tuple[tuple[int, int], RowError]] = {}

    def add(self, index: int, column: str, kind: RowErrorKind, message: str, place: int) -> None:
        order = (min(_ORDER[kind], _VALUE_ERRORS), place)
        known = self.first.get(index)
        if known is None or order < known[0]:
            self.first[index] = order, RowError(index, column, kind, message)
        elif known[0][0] == order[0] < _VALUE_ERRORS:  # all columns of that problem
            said = known[1]
            self.first[index] = known[0], RowError(index, f"{said.column},{column}", kind, message)

    def by_row(self) -> tuple[RowError, ...]:
        return tuple(self.first[index][1] for index in sorted(self.first))


class _ArrowRows:
    """An Arrow table."""

    def __init__(self, table: pa.Table, spec: TableSpec) -> None:
        self._table = table
        self._places: dict[str, int] = {}
        self._unknown: list[str] = []
        self._doubled: list[str] = []
        for place, name in enumerate(table.column_names):
            column = column_for(name, spec.by_name)
            if column is None:
                self._unknown.append(name)
            elif self._places.setdefault(column.name, place) != place:
                self._doubled.append(name)

    @property
    def length(self) -> int:
        return int(self._table.num_rows)

    def unknown(self) -> Iterable[tuple[int, list[str]]]:
        return ((index, self._unknown) for index in range(self.length)) if self._unknown else ()

    def doubled(self) -> Iterable[tuple[int, list[str]]]:
        return ((index, self._doubled) for index in range(self.length)) if self._doubled else ()

    def lacks(self, column: Column) -> bool:
        return column.name not in self._places

    def fast(self, column: Column, zone: tzinfo) -> pa.Array | None:
        chunks = self._table.column(self._places[column.name])
        return from_array(chunks.combine_chunks(), column.type, zone)

    def values(self, column: Column) -> Sequence[Any]:
        """A value that Python cannot have, such as a date after the year 9999, fits no column."""
        found = self._table.column(self._places[column.name])
        try:
            values: list[Any] = found.to_pylist()
        except (OverflowError, ValueError):
            return [python_value(one) for one in found]
        return values


def python_value(value: pa.Scalar[Any]) -> Any:
    """The value, or one that fits no column if Python cannot have it."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return _Beyond(str(value.type))


@dataclass(frozen=True)
class _Beyond:
    """A value of Arrow that no value of Python is."""

    type: str

    def __str__(self) -> str:
        return f"a {self.type} that Python cannot have"

    __repr__ = __str__


class _MappedRows:
    """Mappings by column name. Rows may spell a name in different ways, each row in one of them."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], spec: TableSpec) -> None:
        self._rows = rows
        self._spec = spec
        names = {name for row in rows for name in row}
        self._spellings: dict[str, list[str]] = {}
        self._unknown = set()
        for name in names:
            column = column_for(str(name), spec.by_name)
            if column is None:
                self._unknown.add(name)
            else:
                self._spellings.setdefault(column.name, []).append(name)

    @property
    def length(self) -> int:
        return len(self._rows)

    def unknown(self) -> Iterable[tuple[int, list[str]]]:
        if not self._unknown:
            return
        for index, row in enumerate(self._rows):
            names = [str(name) for name in row if name in self._unknown]
            if names:
                yield index, names

    def doubled(self) -> Iterable[tuple[int, list[str]]]:
        several = [names for names in self._spellings.values() if len(names) > 1]
        for index, row in enumerate(self._rows if several else ()):
            found = [name for names in several for name in _further(names, row)]
            if found:
                yield index, found

    def lacks(self, column: Column) -> bool:
        return column.name not in self._spellings

    def fast(self, column: Column, zone: tzinfo) -> pa.Array | None:
        values = self.values(column)
        return from_values(values, column.type, zone)

    def values(self, column: Column) -> Sequence[Any]:
        names = self._spellings[column.name]
        needs_value = not column.nullable or column.default is not None
        absent = _MISSING if needs_value else None
        if len(names) == 1:
            (name,) = names
            return [row.get(name, absent) for row in self._rows]
        return [next((row[name] for name in names if name in row), absent) for row in self._rows]


def _further(names: Sequence[Any], row: Mapping[str, Any]) -> list[str]:
    """The names of one column that a row has besides the first."""
    return [str(name) for name in row if name in names][1:]
