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

_PUBLICATION = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = %(name)s
"""
_TABLES = """
SELECT g.relid::bigint, {filtered}, {lacking}, concat_ws(' ', p.oid, p.xmin, (
    SELECT string_agg(r.oid::text, ' ' ORDER BY r.oid) FROM pg_publication_rel r
    WHERE r.prpubid = p.oid
      AND (r.prrelid = g.relid OR r.prrelid IN (SELECT relid FROM pg_partition_ancestors(g.relid)))
), {schemas})
FROM pg_publication p CROSS JOIN pg_get_publication_tables(%(name)s) g WHERE p.pubname = %(name)s
"""
_LACKING = """
ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = g.relid AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attgenerated <> ALL(%(unpublished)s) AND g.attrs IS NOT NULL AND a.attnum <> ALL(g.attrs::int2[])
      ORDER BY a.attnum)
"""
_SCHEMAS = """
(SELECT string_agg(s.oid::text, ' ' ORDER BY s.oid) FROM pg_publication_namespace s WHERE s.pnpubid = p.oid)
"""


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
    """What the publication has. `complete`: it publishes all kinds of changes. `tables`: by OID; a partitioned table
    only if its changes are published under its name, and a partition only if they are not.
    """

    exists: bool
    complete: bool = False
    tables: Mapping[int, PublishedEntry] = field(default_factory=dict)

    @property
    def whole(self) -> Mapping[int, PublishedEntry]:
        """The tables of which it publishes every change of every row and column."""
        return {oid: one for oid, one in self.tables.items() if one.whole} if self.complete else {}


def existing_publication(connection: psycopg2.extensions.connection, name: str) -> ExistingPublication:
    """What there is under that name; whose it is does not matter."""
    lists = connection.server_version >= COLUMN_LISTS
    query = _TABLES.format(
        filtered="g.qual IS NOT NULL" if lists else "false",
        lacking=_LACKING if lists else "ARRAY[]::text[]",
        schemas=_SCHEMAS if lists else "NULL",
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
