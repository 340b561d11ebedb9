"""A publication that somebody else keeps: it is read here, and never created, altered or dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemark.replication.sources.postgresql.catalog import generated_kinds
from tidemark.replication.sources.postgresql.publication import COLUMN_LISTS

if TYPE_CHECKING:
    import psycopg2

__all__ = ["ExistingPublication", "PublishedEntry", "existing_publication"]

_PUBLICATION = (
    "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = %(name)s"
)
_TABLES = """
WITH p AS (SELECT oid, xmin::text AS version, puballtables, pubviaroot FROM pg_publication WHERE pubname = %(name)s),
listed AS (
    SELECT c.oid, concat_ws(' ', p.oid, p.version, r.oid, {schema}) AS entry
    FROM p CROSS JOIN pg_class c LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid {schemas}
    WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.oid >= 16384
      AND (p.puballtables OR r.oid IS NOT NULL OR {schema} IS NOT NULL)
),
found AS (
    SELECT c.oid, c.relkind, string_agg(l.entry, ' ' ORDER BY l.oid) AS entry, bool_or(l.oid <> c.oid) AS below
    FROM pg_class c CROSS JOIN LATERAL (
        SELECT c.oid AS relid UNION SELECT relid::oid FROM pg_partition_ancestors(c.oid)
    ) above JOIN listed l ON l.oid = above.relid
    WHERE c.relkind IN ('r', 'p') GROUP BY c.oid, c.relkind
)
SELECT f.oid::bigint, {filtered}, {lacking}, f.entry
FROM found f CROSS JOIN p LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = f.oid
WHERE CASE WHEN p.pubviaroot THEN NOT f.below ELSE f.relkind = 'r' END
"""  # pg_get_publication_tables() says the same, and would wait for the locks of the tables
_LACKING = """
ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = f.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated <> ALL(%(unpublished)s) AND a.attnum <> ALL(r.prattrs::int2[]) ORDER BY a.attnum)
"""
_SCHEMAS = "LEFT JOIN pg_publication_namespace n ON n.pnpubid = p.oid AND n.pnnspid = c.relnamespace"


@dataclass(frozen=True)
class PublishedEntry:
    """A table as it is published under its own name. `filtered`: without some of its rows; `lacking`: without these
    columns. `entry`: the identity of what publishes it, another after each change of that.
    """

    entry: str
    filtered: bool = False
    lacking: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all of its rows and columns are published."""
        return not self.filtered and not self.lacking


@dataclass(frozen=True)
class ExistingPublication:
    """The tables that the publication has. `complete`: it publishes all kinds of changes. `tables`: by OID. A
    partitioned table is included only if its changes are published under its name, and a partition only if they are
    not.
    """

    exists: bool
    complete: bool = False
    tables: Mapping[int, PublishedEntry] = field(default_factory=dict)

    @property
    def whole(self) -> Mapping[int, PublishedEntry]:
        """The tables with every change of every row and column published."""
        return {oid: one for oid, one in self.tables.items() if one.whole} if self.complete else {}


def existing_publication(connection: psycopg2.extensions.connection, name: str) -> ExistingPublication:
    """The publication of that name, of any owner. Waits for no lock of a table."""
    lists = connection.server_version >= COLUMN_LISTS
    query = _TABLES.format(
        schema="n.oid" if lists else "NULL",
        schemas=_SCHEMAS if lists else "",
        filtered="r.prqual IS NOT NULL" if lists else "false",
        lacking=_LACKING if lists else "ARRAY[]::text[]",
    )
    asked = {"name": name, "unpublished": list(generated_kinds(connection))}
    with connection.cursor() as cursor:
        cursor.execute(_PUBLICATION, asked)
        found = cursor.fetchone()
        if found is None:
            return ExistingPublication(exists=False)
        cursor.execute(query, asked)
        tables = {
            oid: PublishedEntry(entry, filtered, tuple(lacking)) for oid, filtered, lacking, entry in cursor.fetchall()
        }
    return ExistingPublication(True, found[0], tables)
