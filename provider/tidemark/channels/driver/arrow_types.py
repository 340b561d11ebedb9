"""The Arrow types of columns: in buffers, and in Parquet files as Spark reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidemark.channels.model.columns import Column, ColumnType, Kind

__all__ = ["buffer_schema", "buffer_type", "file_schema", "paths_with_dictionary"]

_SIMPLE = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.BYTE: pa.int8(),
    Kind.SHORT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.TIMESTAMP_NTZ: pa.timestamp("us"),
    Kind.VARIANT: pa.string(),  # JSON, until a file is written
}
_VARIANT_IN_FILES = pa.struct(
    [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), False)]
)


def buffer_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns of a buffer, by their names in files."""
    return pa.schema([pa.field(column.physical, buffer_type(column.type)) for column in columns])


def buffer_type(kind: ColumnType) -> pa.DataType:
    """The type of a column in a buffer. VARIANT is its JSON text."""
    return _type(kind, _SIMPLE[Kind.VARIANT])


def file_schema(columns: Sequence[Column]) -> pa.Schema:
    """The columns of a Parquet file, with Delta's field ids if the table has them."""
    return pa.schema([_file_field(column) for column in columns])


def paths_with_dictionary(schema: pa.Schema) -> list[str]:
    """The leaves of a file that may have a dictionary: all but floating-point ones. Spark looks for 0.0 in a dictionary
    that has -0.0 alone, and skips the rows.
    """
    leaves = (leaf for field in schema for leaf in _leaves(field.name, field.type))
    return [path for path, kind in leaves if not pa.types.is_floating(kind)]


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def _file_field(column: Column) -> pa.Field:
    found = pa.field(column.physical, _type(column.type, _VARIANT_IN_FILES), column.nullable)
    return _with_id(found, column)


def _type(kind: ColumnType, variant: pa.DataType) -> pa.DataType:
    match kind.kind:
        case Kind.DECIMAL:
            return pa.decimal128(kind.precision, kind.scale)
        case Kind.VARIANT:
            return variant
        case Kind.ARRAY:
            assert kind.element is not None
            return pa.list_(pa.field("element", _type(kind.element, variant)))
        case Kind.MAP:
            assert kind.key is not None
            assert kind.element is not None
            return pa.map_(_type(kind.key, variant), _type(kind.element, variant))
        case Kind.STRUCT:
            return pa.struct([_with_id(pa.field(f.physical, _type(f.type, variant)), f) for f in kind.fields])
        case _:
            return _SIMPLE[kind.kind]


def _with_id(field: pa.Field, column: Column) -> pa.Field:
    if column.field_id is None:
        return field
    return field.with_metadata({b"PARQUET:field_id": str(column.field_id).encode()})
