"""A table as its channels write it, at one schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC

import pyarrow as pa

from tidemark.channels.driver.arrow_types import buffer_schema
from tidemark.channels.model.columns import Column
from tidemark.channels.planning.columns import ColumnRefused
from tidemark.channels.planning.defaults import Default, default_of
from tidemark.channels.planning.tables import columns_for_channels
from tidemark.errors import TableNotSupported
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import Metadata, Protocol

__all__ = ["TableSpec", "spec_of"]

_INDEXED = "delta.dataSkippingNumIndexedCols"
_USUALLY_INDEXED = 32  # Delta's default, also for a text that is no number


@dataclass(frozen=True)
class TableSpec:
    """`table`: its name in messages. `partition_columns`: names in the table. `defaults`: by the names of columns.
    `indexed_columns`: leaves with statistics; all if negative.
    """

    table: str
    table_id: str
    schema_json: str
    columns: tuple[Column, ...]
    partition_columns: tuple[str, ...]
    defaults: Mapping[str, Default]
    indexed_columns: int
    by_name: Mapping[str, Column] = field(init=False)
    buffer_schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {column.name.upper(): column for column in self.columns})
        object.__setattr__(self, "buffer_schema", buffer_schema(self.columns))


def spec_of(table: str, metadata: Metadata, protocol: Protocol) -> TableSpec:
    """The table as channels write it. Raises TableNotSupported."""
    columns = columns_for_channels(table, metadata, protocol)
    try:
        found = {column.name: default_of(column, UTC) for column in columns}
    except ColumnRefused as error:
        raise TableNotSupported(table=table, problem=str(error)) from None
    return TableSpec(
        table=table,
        table_id=metadata.table_id,
        schema_json=metadata.schema_json,
        columns=columns,
        partition_columns=metadata.partition_columns,
        defaults={name: default for name, default in found.items() if default is not None},
        indexed_columns=_indexed(metadata.configuration),
    )


def _indexed(configuration: Mapping[str, str]) -> int:
    text = configuration.get(_INDEXED, "")
    number = whole_number(text.removeprefix("-"))
    if number is None:
        return _USUALLY_INDEXED
    return -number if text.startswith("-") else number
