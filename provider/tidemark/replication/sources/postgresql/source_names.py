"""The databases of a server, and the schemas of the one that is connected to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.replication.model.source_discovery import SourceNames

if TYPE_CHECKING:
    import psycopg2

__all__ = ["source_names"]

_DATABASES = """
SELECT datname FROM pg_database
WHERE datallowconn AND NOT datistemplate AND has_database_privilege(oid, 'CONNECT')
ORDER BY datname
"""
_SCHEMAS = """
SELECT nspname FROM pg_namespace
WHERE nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND nspname !~ '^pg_(toast_)?temp_'
ORDER BY nspname
"""


def source_names(connection: psycopg2.extensions.connection) -> SourceNames:
    """Databases that the user may connect to, and schemas but those of the system."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        (database,) = cursor.fetchone()
        cursor.execute(_DATABASES)
        databases = tuple(name for (name,) in cursor.fetchall())
        cursor.execute(_SCHEMAS)
        return SourceNames(database, databases, tuple(name for (name,) in cursor.fetchall()))
