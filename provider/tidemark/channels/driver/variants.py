"""VARIANT columns: JSON texts of a buffer in the binary form that files have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tidemark.channels.driver.arrow_types import file_schema
from tidemark.channels.model.columns import Column, ColumnType, Kind

__all__ = ["with_variants"]


def with_variants(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows with the binary form of each VARIANT, also within other types. Other columns are unchanged."""
    wanted = file_schema(columns)
    for place, column in enumerate(columns):
        if _has_variant(column.type):
            values = [_binary(value, column.type) for value in rows.column(column.physical).to_pylist()]
            rows = rows.set_column(place, wanted.field(place), pa.array(values, wanted.field(place).type))
    return rows


def _has_variant(kind: ColumnType) -> bool:
    parts = (kind.key, kind.element, *(field.type for field in kind.fields))
    return kind.kind is Kind.VARIANT or any(part is not None and _has_variant(part) for part in parts)


def _binary(value: Any, kind: ColumnType) -> Any:
    from pyspark.sql.variant_utils import VariantUtils

    if value is None:
        return None
    if kind.kind is Kind.VARIANT:
        body, metadata = VariantUtils.parse_json(value)
        return {"value": body, "metadata": metadata}
    if kind.kind is Kind.ARRAY and kind.element is not None:
        return [_binary(item, kind.element) for item in value]
    if kind.kind is Kind.MAP and kind.element is not None:
        return [(key, _binary(item, kind.element)) for key, item in value]
    if kind.kind is Kind.STRUCT:
        return {field.physical: _binary(value[field.physical], field.type) for field in kind.fields}
    return value
