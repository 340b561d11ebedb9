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
from tidemark.replication.sources.mysql.alterations import AddedColumn, Alteration
from tidemark.replication.sources.mysql.binlog import TableMap
from tidemark.replication.sources.mysql.catalog import columns_of
from tidemark.replication.sources.mysql.charsets import Charsets, charsets_of
from tidemark.replication.sources.mysql.columns import LoggedColumn, Reader, native_of, reader_of
from tidemark.replication.sources.mysql.connection import Connection
from tidemark.replication.sources.mysql.defaults import Fill, fill_as_added
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

    def altered(self, by: Alteration, captured: CapturedObject, base: TableSchema) -> TableSchema:
        """`base` without the columns that a statement dropped, and with those whose value in older rows only that
        statement shows. It is `base` itself if there are none. A later statement may change the default, and the
        catalog with it.
        """
        left = tuple(column for column in base.columns if column.name.lower() not in by.dropped)
        known = {column.name.lower() for column in left}
        told = {one.name: one for one in by.added if one.constant or not one.plain}
        told.update({new: AddedColumn(new, constant=False, plain=False) for old, new in by.renamed if old not in known})
        if all(one.plain or one.name in known for one in told.values()):
            return base if left == base.columns else TableSchema(left)
        now = columns_of(self.connection, captured.source_id)
        columns = list(left)
        for place, one in enumerate(now.columns):
            added = told.get(one.name.lower())
            if added is None or one.name.lower() in known:
                continue
            fill = fill_as_added(one.native, added, Fill(one.filled, not one.unknown_fill))
            column = replace(one, key=False, filled=fill.text, unknown_fill=not fill.sure)
            columns.insert(_place_before(columns, now.columns[place + 1 :]), column)
        found = _in_the_log(TableSchema(tuple(columns)), captured, base, now)
        return base if found.columns == base.columns else found

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
    """With the value that older rows have in a column which `base` lacks. It is NULL if the column may be NULL and has
    no default. Other columns are in `base` since the statement that added them (`altered`). So the value of one that
    is not there is unknown.
    """
    by_name = {column.name: column for column in now.columns}
    before = set() if base is None else {column.name for column in base.columns}
    columns = []
    for one in found.columns:
        same = by_name.get(one.name)
        nullable = one.nullable if same is None else same.nullable
        if one.name in before or base is None:
            columns.append(replace(one, nullable=nullable))
        else:
            is_null = same is not None and same.nullable and same.filled is None and not same.unknown_fill
            sure = is_null and same is not None and same.native == one.native
            columns.append(replace(one, nullable=nullable, unknown_fill=not sure))
    return TableSchema(tuple(columns))


def _place_before(columns: Sequence[Column], behind: Sequence[Column]) -> int:
    """The place before the nearest of `behind`."""
    names = [column.name for column in columns]
    return next((names.index(one.name) for one in behind if one.name in names), len(names))


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
