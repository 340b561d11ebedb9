"""From what the log says of a table to its schema, the form of its events, and the readers of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument, SourceRefused
from tidemark.replication.model.replication import Column, ObjectName, Shown, TableSchema
from tidemark.replication.planning.events import EventForm, TextOf
from tidemark.replication.planning.hiding import MASK
from tidemark.replication.planning.showing import in_the_lake, is_held_by_others, shown
from tidemark.replication.planning.unnumbered import unsure_columns
from tidemark.replication.sources.mysql.binlog import TableMap
from tidemark.replication.sources.mysql.catalog import columns_of
from tidemark.replication.sources.mysql.charsets import Charsets, charsets_of
from tidemark.replication.sources.mysql.columns import LoggedColumn, Reader, native_of, reader_of
from tidemark.replication.sources.mysql.connection import Connection
from tidemark.replication.sources.mysql.dialects import dialect_of
from tidemark.replication.sources.mysql.json_binary import queried_text
from tidemark.replication.sources.mysql.names import source_id_of
from tidemark.replication.sources.mysql.types import base_of, unified_type

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CapturedObject

__all__ = ["LoggedSchemas", "LoggedTable", "masked"]


@dataclass(frozen=True)
class LoggedTable:
    """`schema`: columns that events have; the argument `known` itself if nothing changed. `readers`: of all columns of
    the log.
    """

    schema: TableSchema
    form: EventForm
    readers: tuple[Reader, ...]


@dataclass
class LoggedSchemas:
    """Schemas with the help of the catalog, which is asked at each new form of a table.

    Names, types and the key are those of the log at that moment. The catalog is newer. It says whether a column may be
    NULL, and which value older rows have in a new one. It also has the type of columns that the log has as BINARY only.
    `source`: for errors. `hashed`: how values are, where columns are to be.
    """

    connection: Connection
    source: str
    hashed: TextOf | None = None
    _charsets: Charsets = field(default_factory=dict)

    def __call__(self, table: TableMap, captured: CapturedObject, known: TableSchema | None) -> LoggedTable:
        """`known`: the newest schema of the object in the log. Raises SourceRefused, InvalidArgument."""
        name = ObjectName(table.schema, table.table)
        if not table.named:
            raise self._refused(
                name,
                "they lack names of columns (binlog_row_metadata = MINIMAL)",
                "Run SET GLOBAL binlog_row_metadata = FULL, then recover the replication from a position behind them.",
            )
        now = columns_of(self.connection, source_id_of(name))
        by_name = {column.name: column for column in now.columns}
        logged = [one.refined(by_name[one.name].native) if one.name in by_name else one for one in table.columns]
        self._charsets = self._charsets or charsets_of(self.connection)
        try:
            readers = tuple(reader_of(one, self._charsets) for one in logged)
            natives = [native_of(one, self._charsets) for one in logged]
        except (LookupError, UnicodeError) as error:
            problem = f"a column of them cannot be read ({error})"
            raise self._refused(name, problem, "Exclude the table from the replication.") from error
        base = known if known is not None else captured.registered
        found = _in_the_log(_filled(_schema(logged, natives, table.keys), now, base), captured, base, now)
        schema = known if known is not None and _same_shape(found, known) else found
        return LoggedTable(schema, self._form(logged, schema), readers)

    def _form(self, logged: Sequence[LoggedColumn], schema: TableSchema) -> EventForm:
        columns = {column.name: column for column in schema.columns}
        names = [one.name if one.name in columns else None for one in logged]
        texts = [self._text(columns.get(one.name)) for one in logged]
        keys = [place for place, name in enumerate(names) if name is not None and columns[name].key]
        return EventForm(names, texts, keys)

    def _text(self, column: Column | None) -> TextOf | None:
        """Readers give canonical texts, so only hidden ones become others."""
        if column is None or column.shown is Shown.PLAIN:
            return None
        if column.shown is Shown.MASKED:
            return masked
        if self.hashed is None:
            raise InvalidArgument(argument="hash_secret", value=None, problem=f"column {column.name} cannot be hashed")
        hashed, base = self.hashed, base_of(column.native)
        if base not in ("float", "double"):
            return hashed
        widest = dialect_of(str(self.connection.get_server_info())).widest_number
        return lambda text: hashed(queried_text(text, single=base == "float", widest=widest))

    def _refused(self, name: ObjectName, problem: str, remedy: str) -> SourceRefused:
        return SourceRefused(source=self.source, what=f"the events of {name.text}", problem=problem, remedy=remedy)


def masked(_: str) -> str:
    """Of any value."""
    return MASK


def _schema(logged: Sequence[LoggedColumn], natives: Sequence[str], keys: Sequence[int]) -> TableSchema:
    return TableSchema(
        tuple(
            Column(one.name, unified_type(native), native, key=place in keys, nullable=place not in keys)
            for place, (one, native) in enumerate(zip(logged, natives, strict=True))
        )
    )


def _filled(found: TableSchema, now: TableSchema, base: TableSchema | None) -> TableSchema:
    """With the value that older rows have in a column which `base` lacks. The catalog tells it if the column still has
    the type that it had; else nobody does.
    """
    by_name = {column.name: column for column in now.columns}
    before = set() if base is None else {column.name for column in base.columns}
    columns = []
    for one in found.columns:
        same = by_name.get(one.name)
        nullable = one.nullable if same is None else same.nullable
        if one.name in before or base is None:
            columns.append(replace(one, nullable=nullable))
        elif same is None or same.native != one.native:
            columns.append(replace(one, nullable=nullable, unknown_fill=True))
        else:
            columns.append(replace(one, nullable=nullable, filled=same.filled, unknown_fill=same.unknown_fill))
    return TableSchema(tuple(columns))


def _in_the_log(
    found: TableSchema, captured: CapturedObject, base: TableSchema | None, now: TableSchema
) -> TableSchema:
    """The columns that events have. Without a part of its key that is left out or masked an object has none.

    A column that may be a hidden one under another name is left out. A hidden column that the catalog has is not gone:
    it came later than this form of the table.
    """
    before, there = _names(base), _names(now)
    known = {*before, *captured.excluded, *_names(captured.registered)}
    left = {*captured.excluded, *unsure_columns(captured.rules, captured.name, found, known, there=there)}
    kept = [
        in_the_lake(_renamed(column, captured, before), how)
        for column in found.columns
        if column.name not in left
        and (how := shown(captured.rules, captured.name, column.name, key=column.key)) is not Shown.EXCLUDED
    ]
    if not set(found.keys) <= {column.name for column in kept if column.shown is not Shown.MASKED}:
        kept = [replace(column, key=False) for column in kept]
    return TableSchema(tuple(kept))


def _names(schema: TableSchema | None) -> frozenset[str]:
    return frozenset() if schema is None else frozenset(column.name for column in schema.columns)


def _renamed(column: Column, captured: CapturedObject, before: frozenset[str]) -> Column:
    """A column that stayed hidden under another name was left out for a while, so only a backfill knows its rows."""
    if column.name in before or not is_held_by_others(captured.rules, column.name):
        return column
    return replace(column, unknown_fill=True)


def _same_shape(one: TableSchema, other: TableSchema) -> bool:
    """Whether names, types and keys are the same."""
    return _shape(one) == _shape(other)


def _shape(schema: TableSchema) -> list[object]:
    return [(column.name, column.type, column.native, column.key, column.shown) for column in schema.columns]
