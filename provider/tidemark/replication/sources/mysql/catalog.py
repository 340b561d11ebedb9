"""The content of a server: its tables with columns and keys, and facts of the server itself.

Everything is of `information_schema`, which waits for no lock of a user's table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidemark.replication.model.replication import Column, ObjectName, TableSchema
from tidemark.replication.sources.mysql.charsets import is_known
from tidemark.replication.sources.mysql.connection import Connection, rows_of
from tidemark.replication.sources.mysql.defaults import Fill, fill_of
from tidemark.replication.sources.mysql.dialects import MARIADB, Dialect, dialect_of, version_of
from tidemark.replication.sources.mysql.names import name_of_id, qualified, source_id_of
from tidemark.replication.sources.mysql.types import normal_type, unified_type

__all__ = [
    "CatalogColumn",
    "CatalogTable",
    "ServerFacts",
    "catalog_columns",
    "columns_of",
    "discover",
    "server_facts",
    "system_id_of",
]

_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
_TABLES = """
SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_TYPE, COALESCE(t.TABLE_ROWS, 0),
       COALESCE(t.DATA_LENGTH, 0) + COALESCE(t.INDEX_LENGTH, 0), t.ENGINE
FROM information_schema.TABLES t
WHERE t.TABLE_SCHEMA NOT IN %(system)s
  AND (%(schema)s IS NULL OR t.TABLE_SCHEMA = %(schema)s AND t.TABLE_NAME = %(table)s)
ORDER BY t.TABLE_SCHEMA, t.TABLE_NAME
"""
_COLUMNS = """
SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE = 'YES', c.COLUMN_DEFAULT, c.EXTRA,
       COALESCE(c.CHARACTER_SET_NAME, '')
FROM information_schema.COLUMNS c
WHERE c.TABLE_SCHEMA NOT IN %(system)s
  AND (%(schema)s IS NULL OR c.TABLE_SCHEMA = %(schema)s AND c.TABLE_NAME = %(table)s)
ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION
"""
_KEYS = """
SELECT s.TABLE_SCHEMA, s.TABLE_NAME, s.COLUMN_NAME
FROM information_schema.STATISTICS s
WHERE s.INDEX_NAME = 'PRIMARY' AND s.TABLE_SCHEMA NOT IN %(system)s
  AND (%(schema)s IS NULL OR s.TABLE_SCHEMA = %(schema)s AND s.TABLE_NAME = %(table)s)
ORDER BY s.TABLE_SCHEMA, s.TABLE_NAME, s.SEQ_IN_INDEX
"""
_PROBLEMS = {  # by the type of a table
    "VIEW": ("it is a view, and the binary log has its tables only", "Replicate its tables."),
    "SEQUENCE": ("it is a sequence", "Exclude it."),
    "SYSTEM VERSIONED": (
        "it keeps its history itself, and the binary log has rows of the history as others",
        "Run ALTER TABLE {name} DROP SYSTEM VERSIONING, or exclude it.",
    ),
}


class CatalogColumn(NamedTuple):
    """A column as the catalog has it. `default`: as it writes one; `extra`: `auto_increment`, `VIRTUAL GENERATED` …"""

    name: str
    native: str
    nullable: bool
    default: str | None
    extra: str
    charset: str
    compressed: bool = False


@dataclass(frozen=True)
class CatalogTable:
    """A table as it is now. `keys`: in the key's order. `rows` and `size` (bytes): by the server's statistics.
    `problem`, `remedy`: why it cannot be replicated; else None.
    """

    name: ObjectName
    kind: str
    schema: TableSchema
    keys: tuple[str, ...]
    rows: int
    size: int
    engine: str | None
    problem: str | None = None
    remedy: str | None = None

    @property
    def by_default(self) -> bool:
        """Whether "all tables" means it. A view has to be named, and is refused then."""
        return self.kind in ("BASE TABLE", "SYSTEM VERSIONED")

    @property
    def source_id(self) -> str:
        """The table's identity."""
        return source_id_of(self.name)


@dataclass(frozen=True)
class ServerFacts:
    """A server. `system_id`: its `server_uuid`; of a MariaDB, which has none, `server_id` with its GTID domain."""

    dialect: Dialect
    version: tuple[int, int, int]
    version_text: str
    system_id: str
    server_id: int
    user: str
    variables: Mapping[str, str]

    def variable(self, name: str) -> str:
        """A global variable in capitals; "" for one that this server does not have."""
        return self.variables.get(name, "").upper()


def discover(connection: Connection) -> tuple[CatalogTable, ...]:
    """Every table and view outside the system's schemas, ordered by name. The user sees those that it may read."""
    return _catalog(connection, None)


def columns_of(connection: Connection, source_id: str) -> TableSchema:
    """A table's columns as they are now, with what rows older than a column have in it. A table that is gone has none.

    The value of older rows is the default as the catalog has it now (`filled`). A default that is no constant is not
    known (`unknown_fill`).
    """
    name = name_of_id(source_id)
    keys = _keys(connection, name).get(name, ())
    quotes = dialect_of(str(connection.get_server_info())) is MARIADB
    return TableSchema(
        tuple(
            _column(one, keys, fill_of(one.native, one.default, one.extra, nullable=one.nullable, quotes=quotes))
            for one in catalog_columns(connection, name)
        )
    )


def catalog_columns(connection: Connection, name: ObjectName) -> tuple[CatalogColumn, ...]:
    """A table's columns in their order; none for a table that is gone."""
    return tuple(_columns(connection, name).get(name, ()))


def server_facts(connection: Connection) -> ServerFacts:
    """The server's facts and settings, at one moment."""
    variables = {str(name).lower(): str(value) for name, value in rows_of(connection, "SHOW GLOBAL VARIABLES")}
    version = str(connection.get_server_info())
    dialect = dialect_of(version)
    ((user,),) = rows_of(connection, "SELECT CURRENT_USER()")
    return ServerFacts(
        dialect=dialect,
        version=version_of(version),
        version_text=version,
        system_id=_system_id(variables),
        server_id=int(variables.get("server_id", "0")),
        user=str(user),
        variables=variables,
    )


def system_id_of(connection: Connection) -> str:
    """Which server it is, without its other facts."""
    asked = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_id', 'gtid_domain_id')"
    return _system_id({str(name).lower(): str(value) for name, value in rows_of(connection, asked)})


def _system_id(variables: Mapping[str, str]) -> str:
    own = f"{variables.get('gtid_domain_id', '0')}-{variables.get('server_id', '0')}"
    return variables.get("server_uuid") or own


def _catalog(connection: Connection, name: ObjectName | None) -> tuple[CatalogTable, ...]:
    keys, columns = _keys(connection, name), _columns(connection, name)
    found = []
    for schema, table, kind, rows, size, engine in rows_of(connection, _TABLES, _asked(name)):
        own = ObjectName(schema, table)
        problem, remedy = _PROBLEMS.get(kind) or _unreadable(columns.get(own, ())) or (None, None)
        listed = tuple(_column(one, keys.get(own, ()), Fill(None)) for one in columns.get(own, ()))
        found.append(
            CatalogTable(
                own,
                kind,
                TableSchema(listed),
                tuple(keys.get(own, ())),
                int(rows),
                int(size),
                engine,
                problem,
                None if remedy is None else remedy.format(name=qualified(own)),
            )
        )
    return tuple(found)


def _unreadable(columns: Sequence[CatalogColumn]) -> tuple[str, str] | None:
    for one in columns:
        remedy = f"Exclude the table, or alter column {one.name}."
        if one.charset and not is_known(one.charset):
            return f"its column {one.name} has character set {one.charset}, which cannot be read", remedy
        if one.compressed:
            return f"its column {one.name} is compressed", remedy
    return None


def _columns(connection: Connection, name: ObjectName | None) -> Mapping[ObjectName, Sequence[CatalogColumn]]:
    found: dict[ObjectName, list[CatalogColumn]] = defaultdict(list)
    for schema, table, column, kind, nullable, default, extra, charset in rows_of(connection, _COLUMNS, _asked(name)):
        compressed = "COMPRESSED" in kind.upper().partition("*/")[0].rpartition("/*")[2]
        one = CatalogColumn(column, normal_type(kind), bool(nullable), default, extra or "", charset, compressed)
        found[ObjectName(schema, table)].append(one)
    return found


def _keys(connection: Connection, name: ObjectName | None) -> Mapping[ObjectName, Sequence[str]]:
    found: dict[ObjectName, list[str]] = defaultdict(list)
    for schema, table, column in rows_of(connection, _KEYS, _asked(name)):
        found[ObjectName(schema, table)].append(column)
    return found


def _asked(name: ObjectName | None) -> dict[str, object]:
    return {
        "system": _SYSTEM,
        "schema": None if name is None else name.schema,
        "table": None if name is None else name.table,
    }


def _column(one: CatalogColumn, keys: Sequence[str], fill: Fill) -> Column:
    return Column(
        name=one.name,
        type=unified_type(one.native),
        native=one.native,
        key=one.name in keys,
        nullable=one.nullable,
        filled=fill.text,
        unknown_fill=not fill.sure,
    )
