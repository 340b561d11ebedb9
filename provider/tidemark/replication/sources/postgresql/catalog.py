"""The content of a database: its tables with columns, keys and replica identity, and facts of the server.

Nothing here waits for a lock: a table that somebody alters at the moment is described as it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from tidemark.errors import ObjectNotReplicable
from tidemark.replication.model.replication import Column, ObjectName, TableSchema
from tidemark.replication.sources.postgresql.identities import (
    Identity,
    KeyIndex,
    Relation,
    RelationKind,
    keys_of,
    obstacle,
)
from tidemark.replication.sources.postgresql.names import qualified
from tidemark.replication.sources.postgresql.native_types import NativeType, types_of
from tidemark.replication.sources.postgresql.texts import canonical_of

if TYPE_CHECKING:
    import psycopg2

__all__ = [
    "CatalogTable",
    "ServerFacts",
    "columns_of",
    "discover",
    "dropped_numbers",
    "generated_kinds",
    "read_from",
    "server_facts",
    "types_of",
]

_RELATIONS = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relispartition,
       c.relreplident::text, pg_get_userbyid(c.relowner),
       CASE WHEN pg_stat_get_live_tuples(c.oid) > 0 THEN pg_stat_get_live_tuples(c.oid)
            ELSE greatest(c.reltuples, 0)::bigint END,
       c.relpages::bigint * current_setting('block_size')::int,
       CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::oid::bigint END
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
  AND (%(oid)s::bigint IS NULL OR c.oid = %(oid)s::oid
       OR c.relispartition AND pg_partition_root(c.oid)::oid = %(oid)s::oid)
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
SELECT a.attrelid::bigint, a.attname, a.atttypid::bigint, a.atttypmod, a.attnotnull, a.attgenerated = ANY(%s), a.attnum,
       a.atthasmissing, CASE WHEN a.atthasmissing THEN array_to_string(a.attmissingval, '') END,
       a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_PUBLISHED_SINCE = 180000  # from this version on the log has generated columns that are stored
_INDEXES = """
SELECT i.indrelid::bigint, c.relname, i.indisprimary, i.indisreplident, i.indimmediate AND i.indisvalid,
       ARRAY(SELECT i.indkey[place]::int FROM generate_series(0, i.indnkeyatts - 1) AS place)
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(%s::oid[]) AND (i.indisprimary OR i.indisreplident)
ORDER BY i.indrelid, c.relname
"""
_FACTS = """
SELECT (SELECT system_identifier::text FROM pg_control_system()), current_setting('server_version_num')::int,
       current_setting('wal_level'), pg_is_in_recovery(), current_setting('max_replication_slots')::int,
       (SELECT count(*) FROM pg_replication_slots)::int, current_setting('max_wal_senders')::int,
       (SELECT count(*) FROM pg_stat_get_wal_senders() WHERE pid IS NOT NULL)::int, current_database(), current_user,
       clock_timestamp()
"""
_IDENTITIES = {"d": Identity.DEFAULT, "f": Identity.FULL, "n": Identity.NOTHING, "i": Identity.INDEX}
_KINDS = {"v": RelationKind.VIEW, "m": RelationKind.MATERIALIZED_VIEW, "f": RelationKind.FOREIGN_TABLE}
_PERSISTENCE = {"u": RelationKind.UNLOGGED, "t": RelationKind.TEMPORARY}


@dataclass(frozen=True)
class CatalogTable:
    """A table as it is now. `schema`: without `generated` columns, which the log does not have. `keys`: in the key's
    order, by which its rows are known in the log. `rows` and `size` (bytes): by the server's statistics, with all
    partitions. `parted`: its rows are in its partitions. `problem`, `remedy`: why it cannot be replicated; else None.
    """

    oid: int
    name: ObjectName
    kind: RelationKind
    schema: TableSchema
    keys: tuple[str, ...]
    identity: Identity
    rows: int
    size: int
    owner: str
    generated: tuple[str, ...] = ()
    parted: bool = False
    root: ObjectName | None = None
    problem: str | None = None
    remedy: str | None = None

    @property
    def by_default(self) -> bool:
        """Whether "all tables" means it. A view, a partition, a foreign or a temporary table has to be named."""
        return self.kind in (RelationKind.TABLE, RelationKind.PARTITIONED, RelationKind.UNLOGGED)

    @property
    def source_id(self) -> str:
        """The table's own identity, which a rename keeps."""
        return str(self.oid)

    def require_replicable(self) -> None:
        """Raises ObjectNotReplicable with what forbids it."""
        if self.problem is not None:
            raise ObjectNotReplicable(object=self.name.text, problem=self.problem, remedy=self.remedy)


@dataclass(frozen=True)
class ServerFacts:
    """A server and what it has left. `system_id` is its cluster's, and never another's."""

    system_id: str
    version: int  # as 150018
    wal_level: str
    in_recovery: bool
    max_slots: int
    used_slots: int
    max_senders: int
    used_senders: int
    database: str
    user: str
    now: datetime


class _Row(NamedTuple):
    """A row of _RELATIONS."""

    oid: int
    namespace: str
    table: str
    kind: str
    persistence: str
    partition: bool
    identity: str
    owner: str
    rows: int
    size: int
    root: int | None

    @property
    def name(self) -> ObjectName:
        return ObjectName(self.namespace, self.table)


@dataclass(frozen=True)
class _Attribute:
    name: str
    type: tuple[int, int]
    required: bool
    generated: bool
    number: int
    has_missing: bool
    missing: str | None
    has_default: bool


@dataclass(frozen=True)
class _Contents:
    """Columns and key indexes by table, and the types of all columns."""

    attributes: Mapping[int, Sequence[_Attribute]] = field(default_factory=dict)
    indexes: Mapping[int, tuple[KeyIndex, ...]] = field(default_factory=dict)
    types: Mapping[tuple[int, int], NativeType] = field(default_factory=dict)


def discover(connection: psycopg2.extensions.connection, *, numeric_as: str | None = None) -> tuple[CatalogTable, ...]:
    """Every table, view and foreign table of the database outside the system's schemas, ordered by name."""
    return _catalog(connection, None, numeric_as)


def columns_of(connection: psycopg2.extensions.connection, oid: int, *, numeric_as: str | None = None) -> TableSchema:
    """A table's columns as they are now, with what rows older than a column have in it. A table that is gone has none.

    A table that was rewritten (VACUUM FULL, a volatile default) does not say that any more: `unknown_fill`.
    """
    found = _catalog(connection, oid, numeric_as)
    keys = next((table.keys for table in found if table.oid == oid), ())
    contents = _contents(connection, [oid, *(table.oid for table in found)], numeric_as)
    parts = [contents.attributes.get(table.oid, ()) for table in found if table.oid != oid and not table.parted]
    return TableSchema(
        tuple(
            _filled(_column(attribute, contents.types, keys), _in_parts(attribute, parts))
            for attribute in contents.attributes.get(oid, ())
            if not attribute.generated
        )
    )


def generated_kinds(connection: psycopg2.extensions.connection) -> str:
    """Of generated columns those that the log does not have, as the catalog calls them (attgenerated)."""
    return "v" if connection.server_version >= _PUBLISHED_SINCE else "sv"


def dropped_numbers(connection: psycopg2.extensions.connection, oid: int) -> frozenset[int]:
    """Numbers of a table's columns that are gone: no other column gets them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attnum::int FROM pg_attribute WHERE attrelid = %s::oid AND attnum > 0 AND attisdropped", (oid,)
        )
        return frozenset(number for (number,) in cursor.fetchall())


def read_from(connection: psycopg2.extensions.connection, oid: int) -> str:
    """How the table is named in a query of the rows whose changes the log has under its name. The name has ONLY, except
    for a partitioned table. Raises ObjectNotReplicable where it is gone.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.nspname, c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.oid = %s::oid",
            (oid,),
        )
        found = cursor.fetchone()
    if found is None:
        raise ObjectNotReplicable(
            object=f"The table with OID {oid}", problem="it was dropped", remedy="Take it out of the replication."
        )
    name = qualified(ObjectName(found[0], found[1]))
    return name if found[2] == "p" else f"ONLY {name}"


def server_facts(connection: psycopg2.extensions.connection) -> ServerFacts:
    """The server's facts and free resources, at one moment."""
    with connection.cursor() as cursor:
        cursor.execute(_FACTS)
        return ServerFacts(*cursor.fetchone())


def _catalog(
    connection: psycopg2.extensions.connection, oid: int | None, numeric_as: str | None
) -> tuple[CatalogTable, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_RELATIONS, {"oid": oid})
        rows = [_Row(*row) for row in cursor.fetchall()]
    contents = _contents(connection, [row.oid for row in rows], numeric_as)
    names = {row.oid: row.name for row in rows}
    parts: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        if row.root is not None:
            parts[row.root].append(row)
    return tuple(_table(row, parts[row.oid], names, contents) for row in rows)


def _contents(connection: psycopg2.extensions.connection, oids: Sequence[int], numeric_as: str | None) -> _Contents:
    attributes: dict[int, list[_Attribute]] = defaultdict(list)
    indexes: dict[int, list[KeyIndex]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, (list(generated_kinds(connection)), list(oids)))
        for oid, name, type_oid, modifier, *rest in cursor.fetchall():
            attributes[oid].append(_Attribute(name, (type_oid, modifier), *rest))
        cursor.execute(_INDEXES, (list(oids),))
        for oid, name, primary, identity, usable, numbers in cursor.fetchall():
            by_number = {one.number: one.name for one in attributes[oid]}
            columns = tuple(by_number[number] for number in numbers if number in by_number)
            indexes[oid].append(KeyIndex(name, primary, identity, usable, columns))
    pairs: Iterable[tuple[int, int]] = (one.type for found in attributes.values() for one in found)
    return _Contents(
        attributes,
        {oid: tuple(found) for oid, found in indexes.items()},
        types_of(connection, pairs, numeric_as=numeric_as),
    )


def _table(row: _Row, parts: Sequence[_Row], names: Mapping[int, ObjectName], contents: _Contents) -> CatalogTable:
    relation = _relation(row, parts, names, contents)
    keys, found = keys_of(relation), obstacle(relation)
    attributes = contents.attributes.get(row.oid, ())
    leaves = [part for part in parts if part.kind != "p"] if row.kind == "p" else [row]
    return CatalogTable(
        oid=row.oid,
        name=row.name,
        kind=relation.kind,
        schema=TableSchema(tuple(_column(one, contents.types, keys) for one in attributes if not one.generated)),
        keys=keys,
        identity=relation.identity,
        rows=sum(leaf.rows for leaf in leaves),
        size=sum(leaf.size for leaf in leaves),
        owner=row.owner,
        generated=tuple(one.name for one in attributes if one.generated),
        parted=row.kind == "p",
        root=relation.root,
        problem=found.problem if found else None,
        remedy=found.remedy if found else None,
    )


def _relation(row: _Row, parts: Sequence[_Row], names: Mapping[int, ObjectName], contents: _Contents) -> Relation:
    return Relation(
        name=row.name,
        kind=_kind(row),
        identity=_IDENTITIES[row.identity],
        indexes=contents.indexes.get(row.oid, ()),
        logged=tuple(one.name for one in contents.attributes.get(row.oid, ()) if not one.generated),
        parts=tuple(_relation(part, (), names, contents) for part in parts),
        root=names.get(row.root) if row.root is not None else None,
    )


def _kind(row: _Row) -> RelationKind:
    special = _KINDS.get(row.kind) or _PERSISTENCE.get(row.persistence)
    if special is not None:
        return special
    if row.partition:
        return RelationKind.PARTITION
    return RelationKind.PARTITIONED if row.kind == "p" else RelationKind.TABLE


def _text_of(native: str | None, column: Column) -> str | None:
    """The canonical text of a value that the server wrote."""
    convert = canonical_of(column)
    return native if native is None or convert is None else convert(native)


def _column(attribute: _Attribute, types: Mapping[tuple[int, int], NativeType], keys: Sequence[str]) -> Column:
    native = types[attribute.type]
    return Column(
        name=attribute.name,
        type=native.unified,
        native=native.text,
        key=attribute.name in keys,
        nullable=not attribute.required,
        number=attribute.number,
    )


def _in_parts(attribute: _Attribute, parts: Sequence[Sequence[_Attribute]]) -> list[_Attribute]:
    """The column in each partition, as only those have rows; of a table without partitions itself."""
    return [one for part in parts for one in part if one.name == attribute.name] if parts else [attribute]


def _filled(column: Column, held: Sequence[_Attribute]) -> Column:
    values = {one.missing for one in held if one.has_missing}
    if len(values) == 1 and all(one.has_missing for one in held):
        return replace(column, filled=_text_of(values.pop(), column))
    return replace(column, unknown_fill=bool(values) or any(one.has_default for one in held))
