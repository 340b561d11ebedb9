"""The tables that envelopes show: their keys, their schemas, and the events of each envelope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tidemark.replication.model.replication import Column, ObjectName, Shown, TableSchema, TypeKind
from tidemark.replication.planning.debezium import Envelope, form_required
from tidemark.replication.planning.debezium_rows import RowForm, RowRules, bare_columns, columns_of, hidden_form
from tidemark.replication.planning.debezium_types import ColumnType
from tidemark.replication.planning.events import TOASTED_KEY, UNCHANGED, Change, Event, Half, Values

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject

__all__ = ["EnvelopeKeys", "TableForms", "events_of", "key_columns", "seen_columns"]

EnvelopeKeys: TypeAlias = Callable[[ObjectName], "tuple[str, ...] | None"]
"""The columns of a table's key that somebody has named; None: nobody has."""

_BARE = frozenset({TypeKind.BOOLEAN, TypeKind.LONG, TypeKind.DOUBLE, TypeKind.STRING, TypeKind.JSON})
_Columns: TypeAlias = "tuple[tuple[Column, ColumnType | None], ...]"


def key_columns(envelope: Envelope, named: EnvelopeKeys) -> tuple[str, ...] | None:
    """The columns of the key; () for a table without one. None for a record without a place for it, if nobody has named
    the key of its table.
    """
    if envelope.with_key:
        return tuple(envelope.key or ())
    return named(envelope.name)


@form_required()
def seen_columns(envelope: Envelope, keys: tuple[str, ...], rules: RowRules) -> TableSchema:
    """The columns of a table as an envelope shows them. Raises ValueError."""
    if envelope.row_schema is not None:
        columns = tuple(one for one, _ in columns_of(envelope.row_schema, keys, rules.numeric_as))
        return _of_old_rows(TableSchema(columns), None)
    return TableSchema(bare_columns(envelope.row or envelope.key or {}, keys, None, rules.unavailable))


@dataclass(frozen=True)
class _Form:
    row_schema: Mapping[str, Any] | None
    keys: tuple[str, ...]
    rows: RowForm


class TableForms:
    """The form of the rows of each table, which is made once for many envelopes."""

    def __init__(self, named: EnvelopeKeys, rules: RowRules) -> None:
        self._named, self._rules = named, rules
        self._forms: dict[str, _Form] = {}

    @form_required()
    def form(self, envelope: Envelope, captured: CapturedObject, known: TableSchema | None) -> RowForm:
        """The form of the envelope's row. Its schema is `known` itself if the row has these columns, types and key.

        Raises ValueError for a row without the key that its table has. The same for a row without a schema, if
        others had one.
        """
        keys = self._keys(envelope, captured)
        cached = self._forms.get(captured.source_id)
        if cached is not None and (envelope.op == "t" or self._holds(cached, envelope, keys)):
            return cached.rows
        made = hidden_form(
            self._columns(envelope, captured, keys, known),
            captured.name,
            captured.rules,
            captured.excluded,
            self._rules,
        )
        schema = _of_old_rows(made.schema, known or captured.registered)
        made = replace(made, schema=known if known is not None and _shape(schema) == _shape(known) else schema)
        self._forms[captured.source_id] = _Form(envelope.row_schema, keys, made)
        return made

    def _keys(self, envelope: Envelope, captured: CapturedObject) -> tuple[str, ...]:
        if envelope.op == "t":
            return captured.keys
        keys = key_columns(envelope, self._named)
        if keys is None:
            raise ValueError(
                f"table {envelope.name.text}: the record has no place for a key. Name the columns of its key in the"
                ' extra keys of the connection, [] for none, or land {"key": …, "value": …}'
            )
        if not keys and captured.keys:
            raise ValueError(
                f"table {envelope.name.text}: it has no key, which is {', '.join(captured.keys)} elsewhere"
            )
        return keys

    def _holds(self, cached: _Form, envelope: Envelope, keys: tuple[str, ...]) -> bool:
        if cached.keys != keys:
            return False
        if envelope.row_schema is not None:
            return envelope.row_schema is cached.row_schema or envelope.row_schema == cached.row_schema
        if cached.row_schema is not None:
            raise _without_schema(envelope)
        return envelope.op == "d" or cached.rows.values(envelope.row or {}) is not None

    def _columns(
        self, envelope: Envelope, captured: CapturedObject, keys: tuple[str, ...], known: TableSchema | None
    ) -> _Columns:
        if envelope.row_schema is not None:
            return columns_of(envelope.row_schema, keys, self._rules.numeric_as)
        if known is not None and any(one.type.kind not in _BARE for one in known.columns if one.shown is Shown.PLAIN):
            raise _without_schema(envelope)
        base = known or captured.registered
        if envelope.op in "dt" and base is not None:
            return tuple((replace(one, key=one.name in keys, shown=Shown.PLAIN), None) for one in base.columns)
        row = envelope.row or envelope.key or {}
        return tuple((one, None) for one in bare_columns(row, keys, known, self._rules.unavailable))


def _of_old_rows(schema: TableSchema, base: TableSchema | None) -> TableSchema:
    """Only of a column that is new, beside those of `base`, may older rows have a value that nobody knows."""
    new = set() if base is None else {one.name for one in schema.columns} - {one.name for one in base.columns}
    return TableSchema(tuple(replace(one, unknown_fill=one.unknown_fill and one.name in new) for one in schema.columns))


def _without_schema(envelope: Envelope) -> ValueError:
    return ValueError(f"table {envelope.name.text}: a row without a schema, after rows that had one")


def _shape(schema: TableSchema) -> list[object]:
    return [(one.name, one.type, one.native, one.key, one.shown) for one in schema.columns]


@form_required()
def events_of(form: RowForm, envelope: Envelope, gone: Envelope | None = None) -> tuple[Event, ...]:
    """The events of a change. `gone`: the envelope before it, of the same row under the key that it had.

    Raises ValueError for a value that is not of its column's type.
    """
    if envelope.op == "t":
        return ((Change.TRUNCATE, Half.WHOLE, "{}", None, None, None, None),)
    if envelope.op == "d":
        row = envelope.before if envelope.before is not None else envelope.key
        return (form.events.deleted(_values(form, row, whole=False), _is_whole(form, envelope)),)
    new = _values(form, envelope.after)
    unchanged = any(one is UNCHANGED for one in new)
    if envelope.op == "u" or gone is not None:
        old_row = envelope.before if gone is None else gone.before if gone.before is not None else gone.key
        old = None if old_row is None else _values(form, old_row, whole=False)
        if old is not None:
            _keep_unchanged(old, new)
        return form.events.updated(old, _is_whole(form, gone or envelope), new, unchanged)
    if unchanged:  # the half of a moved key that came without the other
        ((_, half, payload, key, old_key, absent, _),) = form.events.updated(None, False, new, True)
        return ((Change.INSERT, half, payload, key, old_key, absent, TOASTED_KEY),)
    return (form.events.inserted(new),)


def _values(form: RowForm, row: Mapping[str, Any] | None, *, whole: bool = True) -> Values:
    values = form.values(row or {}, whole=whole)
    if values is None:
        raise ValueError("its row has other columns, or values of other types, than its table")
    return values


def _is_whole(form: RowForm, envelope: Envelope) -> bool:
    return envelope.before is not None and not form.key_only(envelope.before)


def _keep_unchanged(old: Values, new: Values) -> None:
    """A log that has only a part of the row before says null for the rest."""
    for place, value in enumerate(new):
        if value is UNCHANGED and old[place] is None:
            old[place] = UNCHANGED
