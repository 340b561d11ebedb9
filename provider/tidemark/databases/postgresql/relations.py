"""From what the log says of a table to the schema and the form of its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tidemark.databases.postgresql.catalog import columns_of
from tidemark.databases.postgresql.native_types import NativeType, types_of
from tidemark.databases.postgresql.pgoutput import Relation
from tidemark.databases.postgresql.texts import canonical
from tidemark.model.replication import Column, TableSchema
from tidemark.planning.replication.events import EventForm

if TYPE_CHECKING:
    import psycopg2

    from tidemark.model.replication_jobs import CapturedObject

__all__ = ["CatalogSchemas", "SchemaOf", "form_of", "same_shape"]

_BOXES = 1020  # the one array whose items are not divided by commas

SchemaOf: TypeAlias = "Callable[[Relation, CapturedObject, TableSchema | None], TableSchema]"
"""The schema of a relation, whose newest schema in the log was the last argument."""


@dataclass
class CatalogSchemas:
    """Schemas of relations with the help of the catalog, which knows names of types and what old rows have in a column.

    Names, types and the key are those of the log at that moment; the rest is of the catalog as it is now, where that
    still has the column.
    """

    connection: psycopg2.extensions.connection
    numeric_as: str | None
    _types: dict[tuple[int, int], NativeType] = field(default_factory=dict)

    def __call__(self, relation: Relation, captured: CapturedObject, known: TableSchema | None) -> TableSchema:
        """`known` itself where the relation has the same names, types and key. Raises InvalidArgument."""
        asked = {(column.type_oid, column.typmod) for column in relation.columns} - self._types.keys()
        self._types.update(types_of(self.connection, asked, numeric_as=self.numeric_as))
        keys = self._keys(relation, captured)
        told = [column for column in relation.columns if column.name not in captured.excluded]
        types = [self._types[column.type_oid, column.typmod] for column in told]
        columns = tuple(
            Column(column.name, kind.unified, kind.text, key=column.name in keys)
            for column, kind in zip(told, types, strict=True)
        )
        found = TableSchema(columns)
        if known is not None and same_shape(found, known):
            return known
        return _with_fills(found, columns_of(self.connection, relation.oid, numeric_as=self.numeric_as))

    def _keys(self, relation: Relation, captured: CapturedObject) -> frozenset[str]:
        """The columns by which the log tells rows apart; of a whole row (FULL) the primary key in the catalog."""
        if relation.identity in "di":
            return frozenset(column.name for column in relation.columns if column.key)
        names = {column.name for column in relation.columns}
        keys = frozenset(captured.keys)
        if not keys <= names:
            keys = frozenset(columns_of(self.connection, relation.oid).keys)
        return keys if keys <= names else frozenset()


def same_shape(one: TableSchema, other: TableSchema) -> bool:
    """Whether names, types and keys are the same."""
    return _shape(one) == _shape(other)


def form_of(relation: Relation, schema: TableSchema) -> EventForm:
    """The form of the relation's events; its columns that the schema does not have are left out."""
    by_name: Mapping[str, Column] = {column.name: column for column in schema.columns}
    names = [column.name if column.name in by_name else None for column in relation.columns]
    texts = [
        canonical(by_name[column.name].type, delimiter=";" if column.type_oid == _BOXES else ",")
        if column.name in by_name
        else None
        for column in relation.columns
    ]
    keys = [place for place, name in enumerate(names) if name is not None and by_name[name].key]
    return EventForm(names, texts, keys)


def _with_fills(found: TableSchema, now: TableSchema) -> TableSchema:
    by_name = {column.name: column for column in now.columns}
    return TableSchema(
        tuple(
            replace(
                column,
                nullable=same.nullable,
                filled=same.filled,
                unknown_fill=same.unknown_fill,
                number=same.number,
            )
            if (same := by_name.get(column.name)) is not None and same.native == column.native
            else column
            for column in found.columns
        )
    )


def _shape(schema: TableSchema) -> list[object]:
    return [(column.name, column.type, column.native, column.key) for column in schema.columns]
