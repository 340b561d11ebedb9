"""From what the log says of a table to the schema and the form of its events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import Column, Shown, TableSchema
from tidemark.replication.planning.events import EventForm, TextOf
from tidemark.replication.sources.postgresql.catalog import columns_of, dropped_numbers
from tidemark.replication.sources.postgresql.fingerprints import seen_tables
from tidemark.replication.sources.postgresql.hidden_columns import HideOf, Numbered, in_the_log, masked, with_held
from tidemark.replication.sources.postgresql.native_types import NativeType, types_of
from tidemark.replication.sources.postgresql.numbering import numbers_of
from tidemark.replication.sources.postgresql.pgoutput import Relation, RelationColumn
from tidemark.replication.sources.postgresql.since import Since
from tidemark.replication.sources.postgresql.texts import canonical

if TYPE_CHECKING:
    import psycopg2

    from tidemark.replication.model.jobs import CapturedObject

__all__ = ["CatalogSchemas", "SchemaOf", "form_of", "same_shape"]

_BOXES = 1020  # the one array whose items are not divided by commas

SchemaOf: TypeAlias = "Callable[[Relation, CapturedObject, TableSchema | None], TableSchema]"
"""The schema of a relation, whose newest schema in the log was the last argument."""


@dataclass
class CatalogSchemas:
    """Schemas of relations with the help of the catalog. It knows names of types, numbers of columns and the values
    that old rows have in them.

    Names, types and the key are those of the log at that moment. For a whole row (FULL) the key is the catalog's. The
    catalog is asked at each relation, and is newer than the relation. It may not show which column a name was, or which
    value old rows have in a new one. Then the column is new and its `unknown_fill` true, so that a backfill is asked
    for. `hashed`: how values are, where columns are to be.
    """

    connection: psycopg2.extensions.connection
    numeric_as: str | None
    hashed: TextOf | None = None
    _types: dict[tuple[int, int], NativeType] = field(default_factory=dict)

    def __call__(self, relation: Relation, captured: CapturedObject, known: TableSchema | None) -> TableSchema:
        """`known` itself where the relation has the same columns, types and key. Raises InvalidArgument."""
        asked = {(column.type_oid, column.typmod) for column in relation.columns} - self._types.keys()
        self._types.update(types_of(self.connection, asked, numeric_as=self.numeric_as))
        now = columns_of(self.connection, relation.oid, numeric_as=self.numeric_as)
        base = known if known is not None else captured.registered
        keys = _keys(
            relation, now.keys, captured.keys if base is None or not base.keys else base.keys, bool(now.columns)
        )
        types = [self._types[column.type_oid, column.typmod] for column in relation.columns]
        found = TableSchema(
            tuple(
                Column(column.name, kind.unified, kind.text, key=column.name in keys)
                for column, kind in zip(relation.columns, types, strict=True)
            )
        )
        numbered = self._numbered(relation, captured, found, now, base)
        found = in_the_log(numbered, captured)
        if relation.identity == "f" and base is not None:
            found = _rekeyed(found, base)
        return known if known is not None and _same_columns(found, known) else found

    def hide(self, logged: RelationColumn, column: Column) -> TextOf:
        """The conversion of the texts of a column that is hidden, of a relation that came. Raises InvalidArgument."""
        if column.shown is Shown.MASKED:
            return masked
        hashed = self.hashed
        if hashed is None:
            raise InvalidArgument(argument="hash_secret", value=None, problem=f"column {column.name} cannot be hashed")
        text = canonical(self._types[logged.type_oid, logged.typmod].unified, delimiter=_delimiter(logged))
        return hashed if text is None else lambda native: hashed(text(native))

    def _numbered(
        self,
        relation: Relation,
        captured: CapturedObject,
        found: TableSchema,
        now: TableSchema,
        base: TableSchema | None,
    ) -> Numbered:
        """With all columns of the relation, also those that the lake does not have."""
        if base is None or any(column.number is None for column in base.columns):
            by_name = {column.name: column for column in now.columns}
            return Numbered(TableSchema(tuple(_filled(one, by_name.get(one.name)) for one in found.columns)))
        if not now.columns:
            return Numbered(_of_a_table_that_is_gone(found, base, captured))
        dropped = dropped_numbers(self.connection, relation.oid)
        seen = seen_tables(self.connection, [relation.oid]).get(str(relation.oid)) if captured.seen else None
        since = Since(captured.seen, seen, relation)
        return _with_numbers(found, now, dropped, base, with_held(base, captured), since)


def _keys(relation: Relation, now: Sequence[str], before: Sequence[str], there: bool) -> frozenset[str]:
    """The columns by which the log distinguishes rows; for a whole row (FULL) the primary key in the catalog. It is the
    key known before if the relation lacks that one yet, or the table is not `there` any more.
    """
    if relation.identity in "di":
        return frozenset(column.name for column in relation.columns if column.key)
    names = {column.name for column in relation.columns}
    for keys in (now, before) if there else (before,):
        if set(keys) <= names:
            return frozenset(keys)
    return frozenset()


def _rekeyed(found: TableSchema, base: TableSchema) -> TableSchema:
    """A key of FULL that other rows than before may share: the log does not tell from when on they did not."""
    if not found.keys or set(base.keys) <= set(found.keys):
        return found
    return TableSchema(tuple(replace(one, unknown_fill=one.unknown_fill or one.key) for one in found.columns))


def _with_numbers(
    found: TableSchema,
    live: TableSchema,
    dropped: Collection[int],
    base: TableSchema,
    whole: TableSchema,
    since: Since,
) -> Numbered:
    """With numbers, and with what rows have that are older than a column. `whole`: `base`, with the columns that the
    lake does not have.
    """
    by_name, by_number = {one.name: one for one in live.columns}, {one.number: one for one in live.columns}
    before = {column.number: column for column in base.columns}
    last = max((column.number or 0 for column in whole.columns), default=0)
    numbers = numbers_of([column.name for column in found.columns], live, dropped, whole)
    columns = []
    for place, (column, number) in enumerate(zip(found.columns, numbers, strict=True)):
        if number is None:  # the one of now, so that a backfill and this agree; else one that no column has
            same = by_name.get(column.name)
            columns.append(
                replace(_filled(column, same), number=-place - 1 if same is None else same.number, unknown_fill=True)
            )
            continue
        filled = replace(_filled(column, by_number.get(number)), number=number)
        was = before.get(number)
        if was is not None:  # of a column that has another type since, a rewrite may have changed the values
            columns.append(replace(filled, unknown_fill=was.native != filled.native and since.rewritten))
        else:
            columns.append(_of_old_rows(filled, by_number.get(number), last, since))
    unsure = {one.name for one, number in zip(columns, numbers, strict=True) if number is None}
    return Numbered(TableSchema(tuple(columns)), frozenset(unsure))


def _of_a_table_that_is_gone(found: TableSchema, base: TableSchema, captured: CapturedObject) -> TableSchema:
    """By name, as there is nothing else: so its last events are still applied. Of one with columns that are hidden
    a name that was not known may be one of these.
    """
    numbers = {column.name: column.number for column in base.columns}
    kept = [one for one in found.columns if one.name in numbers or not captured.rules.held]
    return TableSchema(
        tuple(replace(one, number=numbers.get(one.name), unknown_fill=one.name not in numbers) for one in kept)
    )


def _of_old_rows(column: Column, same: Column | None, last: int, since: Since) -> Column:
    """A new column. A column below the `last` existed, but not in the log: generated, or excluded. A column that is NOT
    NULL without a value for older rows had a default that is gone. A column that is gone itself, or has another type,
    may have had one. The facts from the looks before are surer.
    """
    new = (column.number or 0) > last
    known = since.fill_of(column) if new else None
    if known is not None:
        return replace(column, filled=known.text, unknown_fill=not known.sure)
    sure = (
        same is not None
        and (same.native == column.native or same.filled is None)
        and (same.nullable or same.filled is not None)
        and new
    )
    return column if sure else replace(column, unknown_fill=True)


def _same_columns(one: TableSchema, other: TableSchema) -> bool:
    """Whether names, types and keys are the same, and numbers, too, if the other has them."""
    return same_shape(one, other) and all(
        new.number == old.number or old.number is None for new, old in zip(one.columns, other.columns, strict=True)
    )


def same_shape(one: TableSchema, other: TableSchema) -> bool:
    """Whether names, types and keys are the same."""
    return _shape(one) == _shape(other)


def form_of(relation: Relation, schema: TableSchema, hide: HideOf | None = None) -> EventForm:
    """The form of the relation's events; its columns that the schema does not have are left out. Raises InvalidArgument
    for a column that is hidden and no `hide`.
    """
    by_name: Mapping[str, Column] = {column.name: column for column in schema.columns}
    names = [column.name if column.name in by_name else None for column in relation.columns]
    texts = [_text_of(column, by_name.get(column.name), hide) for column in relation.columns]
    keys = [place for place, name in enumerate(names) if name is not None and by_name[name].key]
    return EventForm(names, texts, keys)


def _text_of(logged: RelationColumn, column: Column | None, hide: HideOf | None) -> TextOf | None:
    if column is None:
        return None
    if column.shown is Shown.PLAIN:
        return canonical(column.type, delimiter=_delimiter(logged))
    if hide is None:
        raise InvalidArgument(argument="hide", value=None, problem=f"column {column.name} is {column.shown.value}")
    return hide(logged, column)


def _delimiter(logged: RelationColumn) -> str:
    return ";" if logged.type_oid == _BOXES else ","


def _filled(column: Column, same: Column | None) -> Column:
    """With what the catalog says of it."""
    if same is None:
        return column
    filled = same.filled if same.native == column.native else None
    return replace(column, nullable=same.nullable, filled=filled, unknown_fill=same.unknown_fill, number=same.number)


def _shape(schema: TableSchema) -> list[object]:
    return [(column.name, column.type, column.native, column.key, column.shown) for column in schema.columns]
