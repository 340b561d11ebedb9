"""Names that targets have: of the table of an object, and of the columns that are not the object's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import ObjectName, TableSchema, WriteMode

__all__ = [
    "DEFAULT_TABLE",
    "EVENT_COLUMNS",
    "METADATA_COLUMN",
    "columns_in_the_way",
    "require_target_table",
    "table_of",
    "target_name",
]

DEFAULT_TABLE = "{schema}_{table}"
_FIELD = re.compile(r"\{(schema|table)\}")

METADATA_COLUMN = "datastream_metadata"
EVENT_COLUMNS = ("change_type", "change_sequence_number", "sort_keys", "is_deleted")
"""Those that a row of an append-only target has besides."""


def table_of(name: ObjectName, target_table: str = DEFAULT_TABLE) -> str:
    """The object's table in the target, by ReplicationOptions.target_table. `s.a/b` and `s.a_b` have the same."""
    parts = {"schema": name.schema, "table": name.table}
    return _FIELD.sub(lambda field: parts[field[1]], target_table).replace("/", "_")


def target_name(target: str, table: str) -> str:
    """`schema.table`, quoted where it must be, or the place of the table under a place. `table`: by `table_of`."""
    if "/" in target:
        return f"{target.rstrip('/')}/{table}"
    return f"{target}.{table}" if table.isidentifier() else f"{target}.`{table.replace('`', '``')}`"


def require_target_table(target_table: str) -> None:
    """Raises InvalidArgument for a name without `{table}`, and for one that no table can have."""
    text = _FIELD.sub("", target_table)
    if "{table}" in target_table and not re.search(r"[\s{}/.`,;]", text):
        return
    problem = "{table} is needed in it, {schema} may be, as in landing_{schema}_{table}; no dots, slashes or spaces"
    raise InvalidArgument(argument="target_table", value=target_table, problem=problem)


def columns_in_the_way(schema: TableSchema, mode: WriteMode) -> tuple[str, ...]:
    """The object's columns that its target has for itself; Delta does not tell them apart by case. A table without a
    key is append-only in every replication.
    """
    append_only = mode is WriteMode.APPEND_ONLY or not schema.keys
    own: Iterable[str] = (METADATA_COLUMN, *EVENT_COLUMNS) if append_only else (METADATA_COLUMN,)
    return tuple(column.name for column in schema.columns if column.name.lower() in own)
