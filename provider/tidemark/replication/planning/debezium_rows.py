"""The rows of a table's envelopes under one schema, as values of events."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import Column, ObjectName, Shown, TableSchema, TypeKind, UnifiedType
from tidemark.replication.planning.debezium_fields import Field, fields_of_avro, fields_of_connect
from tidemark.replication.planning.debezium_types import (
    ColumnType,
    ValueText,
    bare_text,
    bare_type,
    column_type,
)
from tidemark.replication.planning.events import UNCHANGED, EventForm, TextOf, Values
from tidemark.replication.planning.hiding import MASK
from tidemark.replication.planning.showing import in_the_lake, shown

__all__ = [
    "PLACEHOLDER",
    "RowForm",
    "RowRules",
    "Unavailable",
    "bare_columns",
    "columns_of",
    "hidden_form",
    "native_of",
]

PLACEHOLDER = "__debezium_unavailable_value"


class Unavailable:
    """How an envelope says that a value was not in the log, as it stayed what it was."""

    def __init__(self, placeholder: str = PLACEHOLDER) -> None:
        raw = placeholder.encode()
        self._texts = frozenset({placeholder, base64.b64encode(raw).decode(), raw.hex()})
        self._others: tuple[Any, ...] = (raw, [placeholder], [*raw], {placeholder: placeholder})

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self._texts
        if value is None or isinstance(value, int | float):
            return False
        if isinstance(value, Mapping) and set(value) == {"scale", "value"}:
            return value["value"] in self
        return value in self._others


@dataclass(frozen=True)
class RowRules:
    """The common rules of rows. `numeric_as`: as in ReplicationOptions; `hashed`: how values of hashed columns are;
    `unavailable`: how a left-out value looks.
    """

    numeric_as: str | None
    hashed: TextOf | None
    unavailable: Unavailable


@dataclass(frozen=True)
class RowForm:
    """The form of a table's rows. `schema`: columns as the lake has them. `texts`: name and conversion of each column
    of the envelope, in order. A bare column has no conversion, and its kind is in `kinds`.
    """

    schema: TableSchema
    events: EventForm
    texts: tuple[tuple[str, ValueText | None], ...]
    kinds: Mapping[str, TypeKind]
    names: frozenset[str]
    unavailable: Unavailable

    def values(self, row: Mapping[str, Any], *, whole: bool = True) -> Values | None:
        """Canonical texts; None for a bare row that needs another form. `whole`: it has all columns. Raises ValueError
        for a value that is not of its column's type, and for a column that the schema does not have.
        """
        found: Values = []
        for name, text in self.texts:
            value = row.get(name)
            if value is None:
                found.append(None)
            elif value in self.unavailable:
                found.append(UNCHANGED)
            elif text is not None:
                found.append(_converted(name, text, value))
            else:
                bare = bare_text(self.kinds[name], value)
                if bare is None:
                    return None
                found.append(bare)
        return found if self._has_all(row, whole) else None

    def _has_all(self, row: Mapping[str, Any], whole: bool) -> bool:
        """Whether the form has every column of the row that has a value."""
        if row.keys() == self.names:
            return True
        others = row.keys() - self.names
        if not self.kinds:
            if others:
                raise ValueError(f"its row has a column {min(others)}, and its schema has none of that name")
            return True
        told = (row[name] for name in others)
        return not whole or (all(one is None or one in self.unavailable for one in told) and self.names <= row.keys())

    def key_only(self, row: Mapping[str, Any]) -> bool:
        """Whether nothing but the key has a value."""
        keys = set(self.schema.keys)
        return bool(keys) and all(value is None or name in keys for name, value in row.items())


def _converted(name: str, text: ValueText, value: Any) -> str:
    try:
        return text(value)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(f"column {name} has the value {str(value)[:100]!r}, which is not of its type") from error


def columns_of(
    row_schema: Mapping[str, Any], keys: Collection[str], numeric_as: str | None
) -> tuple[tuple[Column, ColumnType], ...]:
    """The columns of a table by the schema in its envelopes. A column without a default whose value is required had
    values in older rows that nobody knows. Raises ValueError.
    """
    avro = row_schema.get("avro")
    fields = fields_of_connect(row_schema) if avro is None else fields_of_avro(avro, row_schema["named"])
    if missing := sorted(set(keys) - {one.name for one in fields}):
        raise ValueError(f"its key has a column {missing[0]}, and its row has none of that name")
    return tuple(
        (_column(one, kind, keys), kind) for one in fields if (kind := column_type(one, numeric_as=numeric_as))
    )


def _column(field: Field, kind: ColumnType, keys: Collection[str]) -> Column:
    filled = None
    if field.has_default and field.default is not None:
        filled = _converted(field.name, kind.text, field.default)
    return Column(
        field.name,
        kind.unified,
        kind.native,
        key=field.name in keys,
        nullable=field.optional,
        filled=filled,
        unknown_fill=filled is None and not field.optional,
    )


def native_of(kind: TypeKind) -> str:
    """The type of a bare value, in words of a source."""
    return {TypeKind.LONG: "bigint", TypeKind.STRING: "text"}.get(kind, kind.value)


def bare_columns(
    row: Mapping[str, Any], keys: Collection[str], known: TableSchema | None, unavailable: Unavailable
) -> tuple[Column, ...]:
    """The columns of a table by a row without a schema. A column keeps its known type while its values fit. A column
    that was null in every row so far is left out: older rows have NULL for it, which is right. Raises ValueError.
    """
    before = {} if known is None else {one.name: one.type.kind for one in known.columns}
    columns = []
    for name, value in row.items():
        kind = before.get(name)
        tells_nothing = value is None or value in unavailable
        if not tells_nothing and (kind is None or bare_text(kind, value) is None):
            kind = bare_type(value)
        if kind is not None:
            columns.append(Column(name, UnifiedType(kind), native_of(kind), key=name in keys))
    if missing := sorted(set(keys) - {one.name for one in columns}):
        raise ValueError(f"its key has a column {missing[0]}, and its row has no value of that name")
    return tuple(columns)


def hidden_form(
    columns: Sequence[tuple[Column, ColumnType | None]],
    name: ObjectName,
    rules: ColumnRules,
    excluded: Collection[str],
    row_rules: RowRules,
) -> RowForm:
    """The form of rows with these columns; a bare column has no ColumnType. Columns are hidden by their names, as
    envelopes have no numbers of columns. A key with a column that is hidden from the lake is none.
    """
    kept: list[Column] = []
    names: list[str | None] = []
    texts: list[TextOf | None] = []
    for column, _ in columns:
        how = shown(rules, name, column.name, key=column.key)
        if column.name in excluded:
            how = Shown.EXCLUDED
        names.append(None if how is Shown.EXCLUDED else column.name)
        texts.append(_hiding(how, row_rules))
        if how is not Shown.EXCLUDED:
            kept.append(in_the_lake(column, how))
    keys = {column.name for column, _ in columns if column.key}
    if not keys <= {column.name for column in kept if column.shown is not Shown.MASKED}:
        kept = [replace(column, key=False) for column in kept]
    schema = TableSchema(tuple(kept))
    places = [place for place, one in enumerate(names) if one is not None and one in schema.keys]
    return RowForm(
        schema,
        EventForm(names, texts, places),
        tuple((column.name, None if kind is None else kind.text) for column, kind in columns),
        {column.name: column.type.kind for column, kind in columns if kind is None},
        frozenset(column.name for column, _ in columns),
        row_rules.unavailable,
    )


def _hiding(how: Shown, rules: RowRules) -> TextOf | None:
    if how is Shown.MASKED:
        return lambda _: MASK
    return rules.hashed if how is Shown.HASHED else None
