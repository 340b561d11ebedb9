"""The rows of a table's event files under one schema, as events of an event log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemark.model.foreign_json import parsed
from tidemark.replication.model.replication import Column, Shown, TableSchema
from tidemark.replication.planning.debezium_rows import RowForm, RowRules, Unavailable, hidden_form
from tidemark.replication.planning.debezium_types import ColumnType
from tidemark.replication.planning.event_file_records import KEY_UNKNOWN, FileRecord, TableKeys
from tidemark.replication.planning.events import UNCHANGED, Change, Event, Half, Values

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject

__all__ = ["FileForms", "LeftOut", "events_of", "key_columns"]


class LeftOut(Unavailable):
    """A value that an event leaves out is named in it."""

    def __contains__(self, value: Any) -> bool:
        return value is UNCHANGED


def key_columns(record: FileRecord, named: TableKeys) -> tuple[str, ...] | None:
    """The columns of the key; () for a table without one, None if neither the event nor somebody says it."""
    told = None if record.name is None else named(record.name)
    return record.keys if told is None else told


class FileForms:
    """The form of the rows of each table, which is made once for many events."""

    def __init__(self, named: TableKeys, rules: RowRules) -> None:
        self._named, self._rules = named, rules
        self._forms: dict[str, tuple[tuple[Column, ...], RowForm]] = {}

    def form(
        self, record: FileRecord, captured: CapturedObject, known: TableSchema | None, *, late: bool = False
    ) -> RowForm:
        """The form of the event's row. Its schema is `known` itself if the row has these columns, types and key.

        `late`: newer events came before it. It says nothing about the columns then, and has those of `known`. Raises
        ValueError for an event without the key that its table has.
        """
        cached = self._forms.get(captured.source_id)
        if cached is not None and (late or record.event.change == Change.TRUNCATE):
            return cached[1]
        columns = self._columns(record, captured, None if cached is None else cached[0], known, late=late)
        if cached is not None and (cached[0] is columns or cached[0] == columns):
            return cached[1]
        told = tuple((one, ColumnType(one.type, one.native, str)) for one in columns)
        made = hidden_form(told, captured.name, captured.rules, captured.excluded, self._rules)
        exact = record.schema is not None
        if known is not None and _shape(made.schema, exact=exact) == _shape(known, exact=exact):
            made = replace(made, schema=known)
        self._forms[captured.source_id] = columns, made
        return made

    def _columns(
        self,
        record: FileRecord,
        captured: CapturedObject,
        cached: tuple[Column, ...] | None,
        known: TableSchema | None,
        *,
        late: bool,
    ) -> tuple[Column, ...]:
        if (said := record.schema) is not None:
            return _plain(said.columns)
        base = known or captured.registered
        if base is not None and (late or record.event.change == Change.TRUNCATE):
            return _plain(base.columns)
        if cached is None and base is not None:
            cached = _plain(base.columns)
        before = None if cached is None else TableSchema(cached)
        columns = record.columns_after(before, self._keys(record, captured))
        return columns if cached is None or columns != cached else cached

    def _keys(self, record: FileRecord, captured: CapturedObject) -> tuple[str, ...]:
        keys = key_columns(record, self._named)
        if keys is None:
            raise ValueError(f"table {captured.name.text}: {KEY_UNKNOWN}")
        if not keys and captured.keys and not record.own:
            elsewhere = ", ".join(captured.keys)
            raise ValueError(f"table {captured.name.text}: it has no key, which is {elsewhere} elsewhere")
        return keys


def _plain(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Values that were hidden when the files were written are texts like others."""
    return tuple(one if one.shown is Shown.PLAIN else replace(one, shown=Shown.PLAIN) for one in columns)


def _shape(schema: TableSchema, *, exact: bool) -> list[object]:
    """Only a SCHEMA event says what a type is in the words of the source."""
    return [(one.name, one.type, one.key, one.shown, one.native if exact else "") for one in schema.columns]


def events_of(form: RowForm, record: FileRecord) -> tuple[Event, ...]:
    """The events of a change. Raises ValueError for a value that is not of its column's type."""
    event = record.event
    if event.change == Change.TRUNCATE:
        return ((Change.TRUNCATE, Half.WHOLE, "{}", None, None, None, None),)
    change = record.change(keyed=bool(form.schema.keys))
    texts = record.texts()
    half = {Change.UPDATE_DELETE: Half.DELETED, Change.UPDATE_INSERT: Half.INSERTED}.get(change, Half.WHOLE)
    if change in (Change.DELETE, Change.UPDATE_DELETE):
        made = form.events.deleted(_values(form, texts), _is_whole(form, texts))
        return ((change, half, *made[2:]),)
    row: dict[str, Any] = {**texts, **dict.fromkeys(event.unchanged or (), UNCHANGED)}
    values = _values(form, row)
    if any(one is UNCHANGED for one in values):
        (made,) = form.events.updated(None, False, values, True)
    else:
        made = form.events.inserted(values)
    _, _, payload, key, _, unchanged, problem = made
    return ((change, half, payload, key, _old_key(form, record), unchanged, problem or event.problem),)


def _old_key(form: RowForm, record: FileRecord) -> str | None:
    """The key that the row had, as the lake has keys now."""
    if record.event.old_key is None or record.columns is None:
        return None
    names = [one.name for one in record.columns if one.key]
    before = dict(zip(names, parsed(record.event.old_key), strict=False))
    return form.events.deleted(_values(form, before), False)[3]


def _values(form: RowForm, row: dict[str, Any]) -> Values:
    values = form.values({name: value for name, value in row.items() if name in form.names})
    if values is None:
        raise ValueError("its row has other columns than its table")
    return values


def _is_whole(form: RowForm, texts: dict[str, str | None]) -> bool:
    """A log that has only the key of a row that went may say null for the rest."""
    return form.names <= texts.keys() and not (form.schema.keys and form.key_only(texts))
