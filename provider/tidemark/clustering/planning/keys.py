"""The clustering key of a table, and the columns that can be in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidemark.errors import ClusteringKeyRefused
from tidemark.model.file_ranges import KeyColumn
from tidemark.model.foreign_json import parsed
from tidemark.model.table_log import Metadata, TableState

__all__ = ["MOST_COLUMNS", "in_words", "key_columns", "key_of", "require_key"]

MOST_COLUMNS = 4  # as Delta allows
_PHYSICAL = "delta.columnMapping.physicalName"
_NO_RANGE = ("boolean", "binary", "variant")


def key_of(state: TableState) -> tuple[str, ...]:
    """The columns by which Delta clusters the table, by their present names; empty without a key."""
    names = {column.path: column.name for column in _leaves(state.metadata)}
    return tuple(names.get(path, ".".join(map(str, path))) for path in state.clustering)


def key_columns(state: TableState, names: Sequence[str], *, table: str) -> tuple[KeyColumn, ...]:
    """The columns of these names, in any case. Raises ClusteringKeyRefused."""
    known = {column.name.casefold(): column for column in _leaves(state.metadata)}
    found = []
    for name in names:
        column = known.get(name.casefold())
        if column is None:
            having = ", ".join(one.name for one in known.values())
            problem = f"it is not a column of the table with a least and a greatest value. It has {having}."
            raise ClusteringKeyRefused(table=table, key=name, problem=problem)
        found.append(column)
    return tuple(found)


def require_key(state: TableState, names: Sequence[str], *, table: str) -> tuple[str, ...]:
    """The names as the table spells them, if Delta can cluster by them. Raises ClusteringKeyRefused."""
    columns = key_columns(state, names, table=table)
    shown = in_words(names)
    if len(columns) > MOST_COLUMNS:
        problem = f"a key has at most {MOST_COLUMNS} columns. Keep those that most queries filter by."
        raise ClusteringKeyRefused(table=table, key=shown, problem=problem)
    if len({column.path for column in columns}) < len(columns):
        raise ClusteringKeyRefused(table=table, key=shown, problem="a column is in the key twice.")
    if state.metadata.partition_columns:
        parts = ", ".join(state.metadata.partition_columns)
        problem = (
            f"Delta clusters no partitioned table, and this one is partitioned by {parts}. Copy it into a table without"
            " partitions."
        )
        raise ClusteringKeyRefused(table=table, key=shown, problem=problem)
    return tuple(column.name for column in columns)


def in_words(names: Sequence[str]) -> str:
    """The key as the source system shows it."""
    return f"LINEAR({', '.join(names)})"


def _leaves(metadata: Metadata) -> list[KeyColumn]:
    """The columns that have a least and a greatest value, those within structs by names with dots."""
    found: list[KeyColumn] = []
    _add_leaves(parsed(metadata.schema_json), (), (), frozenset(metadata.partition_columns), found)
    return found


def _add_leaves(
    struct: Mapping[str, Any],
    names: tuple[str, ...],
    path: tuple[str, ...],
    partitions: frozenset[str],
    found: list[KeyColumn],
) -> None:
    for field in struct["fields"]:
        name, kind = str(field["name"]), field["type"]
        physical = str(field.get("metadata", {}).get(_PHYSICAL, name))
        if isinstance(kind, str):
            if kind not in _NO_RANGE:
                is_partition = not names and name in partitions
                found.append(KeyColumn(".".join((*names, name)), (*path, physical), kind, is_partition))
        elif kind.get("type") == "struct":
            _add_leaves(kind, (*names, name), (*path, physical), partitions, found)
