"""The images of single rows, read by PyArrow as Spark reads them, or not at all."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.changes.driver.few_states import THREADS, State, UnlikeSpark, open_parquet
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.plan import ChangePlan, PlannedFile
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.table_log import Metadata

if TYPE_CHECKING:
    import pyarrow.parquet

__all__ = ["column_as", "constant", "images_of", "kinds_of", "require_plain_names"]

Place = tuple[int, int]  # the number of a file in the plan, and a position there


def images_of(log: DeltaLog, plan: ChangePlan, sides: Sequence[Sequence[State | None]]) -> list[pa.Array]:
    """The images of the states of each side, structs of the columns of `plan`; None is NULL.

    Raises UnlikeSpark, pyarrow.ArrowException, FileNotFoundError.
    """
    places = sorted({(state.file, state.position) for side in sides for state in side if state is not None})
    rows = _rows(log, plan, places)
    at = {place: number for number, place in enumerate(places)}
    return [
        rows.take(pa.array([None if s is None else at[s.file, s.position] for s in side], pa.int64())) for side in sides
    ]


def _rows(log: DeltaLog, plan: ChangePlan, places: Iterable[Place]) -> pa.Array:
    """One struct for each place, in order."""
    by_file: defaultdict[int, list[int]] = defaultdict(list)
    for number, position in places:
        by_file[number].append(position)
    kinds = kinds_of(plan.metadata)
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(lambda one: _of_file(log, plan.files[one[0]], one[1], kinds), by_file.items()))
    fields = [pa.field(name, kind) for name, kind in kinds.items()]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.struct(fields))


def _of_file(log: DeltaLog, file: PlannedFile, positions: list[int], kinds: dict[str, pa.DataType]) -> pa.StructArray:
    values = {name: file.partition_values[name] for name in file.partition_columns}
    with log.storage.open(file.path) as opened:
        table = _picked(open_parquet(opened), positions, [name for name in kinds if name not in values])
    count = len(positions)
    columns = [
        constant(values[name], kind, count) if name in values else column_as(table, name, kind, count)
        for name, kind in kinds.items()
    ]
    return pa.StructArray.from_arrays(columns, fields=[pa.field(name, kind) for name, kind in kinds.items()])


def _picked(parquet: pyarrow.parquet.ParquetFile, positions: list[int], names: list[str]) -> pa.Table:
    """The columns of these names that the file has, in the rows at `positions`, read group by group."""
    columns = require_plain_names(parquet, names)
    picked, first, done = [], 0, 0
    for group in range(parquet.num_row_groups):
        last = first + parquet.metadata.row_group(group).num_rows
        until = bisect_left(positions, last)
        if until > done:
            here = pa.array([position - first for position in positions[done:until]], pa.int64())
            picked.append(parquet.read_row_group(group, columns=columns).take(here))
        first, done = last, until
    return pa.concat_tables(picked)


def require_plain_names(parquet: pyarrow.parquet.ParquetFile, names: Sequence[str]) -> list[str]:
    """Those of the names that the file has. Raises UnlikeSpark for names that differ by case alone."""
    there = set(parquet.schema_arrow.names)
    others = {name.lower() for name in there.difference(names)}
    if len(there) != len(parquet.schema_arrow.names) or others & {name.lower() for name in names}:
        raise UnlikeSpark
    return [name for name in names if name in there]


def column_as(table: pa.Table, name: str, kind: pa.DataType, count: int) -> pa.Array:
    """A column as Spark reads it; NULL if the file does not have it. Raises UnlikeSpark for another type."""
    if name not in table.column_names:
        return pa.nulls(count, kind)  # a column that was added later
    column = table[name].combine_chunks()
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if not _alike(column.type, kind):
        raise UnlikeSpark
    return column.cast(kind)


def constant(value: str | None, kind: pa.DataType, count: int) -> pa.Array:
    """A partition value in all rows. An empty text is NULL, as Delta has it."""
    return pa.array([value or None] * count, pa.string()).cast(kind)


def _alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the file has the column's type. Only names of list items and nullability may differ, and times of the
    older form, which are UTC.
    """
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted) and found.tz is None and wanted.tz is not None:
        return bool(found.unit == "us")
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _alike_inside(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return _alike_inside(found.key_type, wanted.key_type) and _alike_inside(found.item_type, wanted.item_type)
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        pairs = list(zip(found, wanted, strict=False))
        same = found.num_fields == wanted.num_fields and all(one.name == other.name for one, other in pairs)
        return same and all(_alike_inside(one.type, other.type) for one, other in pairs)
    return bool(found == wanted)


def _alike_inside(found: pa.DataType, wanted: pa.DataType) -> bool:
    """The same within another type, in which times of the older form are left to Spark."""
    return not (pa.types.is_timestamp(found) and found != wanted) and _alike(found, wanted)


def kinds_of(metadata: Metadata) -> dict[str, pa.DataType]:
    """The Arrow types of a table's columns, as Spark has them. Raises UnlikeSpark if they have other names in files."""
    from pyspark.sql.pandas.types import to_arrow_type

    schema = struct_type(metadata.schema_json)
    if any(field.name != known.physical for field, known in zip(schema, source_schema.fields(metadata), strict=True)):
        raise UnlikeSpark
    utc: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
    )  # 4.1: by itself
    return {field.name: to_arrow_type(field.dataType, **utc) for field in schema}
