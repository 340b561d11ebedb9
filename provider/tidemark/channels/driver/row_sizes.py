"""The bytes of rows, for their limit: texts and bytes at every depth, and all elements of arrays and maps."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MOST_BYTES", "too_large"]

MOST_BYTES = 64 << 20  # of a row (seed 001)


def too_large(table: pa.Table) -> Iterable[tuple[int, int]]:
    """Index and bytes of the rows over the limit. Numbers, dates and the like count in arrays and maps alone, since
    elsewhere their bytes are bounded by the schema.
    """
    if table.nbytes <= MOST_BYTES:
        return []
    columns = (_bytes(column.combine_chunks(), in_list=False) for column in table.columns)
    sizes = reduce(pc.add, columns, _zeros(table.num_rows))
    return [(index, size) for index, size in enumerate(sizes.to_pylist()) if size > MOST_BYTES]


def _bytes(values: pa.Array, *, in_list: bool) -> pa.Array:
    """The bytes of each value."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.fill_null(pc.binary_length(values), 0).cast(pa.int64())
    if pa.types.is_struct(kind):
        fields = (_bytes(field, in_list=in_list) for field in values.flatten())
        return reduce(pc.add, fields, _zeros(len(values)))
    if pa.types.is_map(kind):
        pair = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
        return _bytes(values.cast(pa.list_(pair)), in_list=in_list)
    if pa.types.is_list(kind):
        return _sums(_bytes(values.flatten(), in_list=True), pc.fill_null(pc.list_value_length(values), 0))
    return pa.repeat(pa.scalar(max(1, kind.bit_width // 8) if in_list else 0, pa.int64()), len(values))


def _sums(sizes: pa.Array, lengths: pa.Array) -> pa.Array:
    """The sums of `sizes` in groups of these lengths, in their order."""
    to = pa.concat_arrays([_zeros(1), pc.cumulative_sum(sizes)])
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pc.subtract(to.take(ends), to.take(pc.subtract(ends, lengths)))


def _zeros(length: int) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.int64()), length)
