"""Types of answers from a log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_type"]

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def arrow_type(kind: str) -> pa.DataType:
    """Arrow's type for the type of a column, as Delta names it."""
    import pyarrow as pa

    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(), "date": pa.date32()}[
        kind
    ]
