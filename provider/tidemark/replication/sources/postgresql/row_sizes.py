"""How wide the rows of a table are, from their heads. Values that are stored out of line are not read.

If more bytes come than expected, the driver says so before memory is short, and the copy begins again, carefully.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidemark.replication.model.replication import Column, TypeKind
from tidemark.replication.sources.postgresql.names import quoted

__all__ = ["row_bytes", "sample_percent"]

_SAMPLED_PAGES = 200
_FIXED = 32  # bytes of a value that is not measured, and of what comes with each value
_PACKED = 8  # times as large as it is stored a value may be, if only its stored size is known
_RAW_SIZE_IS_KNOWN = re.compile(r"text|character varying(\(\d+\))?|character(\(\d+\))?|bytea")
_SHORT = re.compile(
    r"(smallint|integer|bigint|real|double precision|boolean|date|uuid|oid|interval|time|timestamp|money)\b[^\[]*"
)


def row_bytes(columns: Sequence[Column]) -> str:
    """The bytes of a row in an answer, as an expression that reads no value which is stored out of line."""
    known = [measured for column in columns if (measured := _value_bytes(column)) is not None]
    return " + ".join([f"{_FIXED * (len(columns) + 1)}::bigint", *known])


def sample_percent(pages: int) -> float:
    """For TABLESAMPLE SYSTEM of a table that has this many pages, all its partitions together."""
    return 100.0 if pages <= _SAMPLED_PAGES else 100.0 * _SAMPLED_PAGES / pages


def _value_bytes(column: Column) -> str | None:
    name, native = quoted(column.name), column.native.lower()
    if _SHORT.fullmatch(native):
        return None
    if _RAW_SIZE_IS_KNOWN.fullmatch(native):
        times = 2 if column.type.kind is TypeKind.BYTES else 1  # the driver asks for digits
        return f"coalesce(octet_length({name}), 0)::bigint * {times}"
    return f"coalesce(pg_column_size({name}), 0)::bigint * {_PACKED}"
