"""Foreign keys that change rows of their table without an event in the binary log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.sources.mysql.connection import Connection, rows_of
from tidemark.replication.sources.mysql.dialects import dialect_of

__all__ = ["cascades_of"]

_OWN_KEYS = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"
_OF_MYSQL = """
SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')
"""
_OF_MARIADB = """
SELECT CONVERT(CONVERT(CAST(SUBSTRING_INDEX(FOR_NAME, '/', 1) AS BINARY) USING filename) USING utf8mb4),
       CONVERT(CONVERT(CAST(SUBSTRING_INDEX(FOR_NAME, '/', -1) AS BINARY) USING filename) USING utf8mb4),
       SUBSTRING_INDEX(ID, '/', -1)
FROM information_schema.INNODB_SYS_FOREIGN WHERE TYPE & 15
"""
_NO_RIGHT = 1227


def cascades_of(connection: Connection) -> Mapping[ObjectName, tuple[str, ...]]:
    """Names of such keys by their table: CASCADE, SET NULL. InnoDB acts on these below the log, and a MySQL from 9.6 on
    above it. A MariaDB shows them to users with the right PROCESS alone.
    """
    import pymysql

    query = _OF_MARIADB
    if dialect_of(str(connection.get_server_info())).kind is SourceKind.MYSQL:
        if any(str(value).upper() == "OFF" for _, value in rows_of(connection, _OWN_KEYS)):
            return {}
        query = _OF_MYSQL
    found: dict[ObjectName, tuple[str, ...]] = defaultdict(tuple)
    try:
        for schema, table, name in rows_of(connection, query):
            found[ObjectName(schema, table)] += (str(name),)
    except pymysql.err.OperationalError as error:
        if error.args[0] != _NO_RIGHT:  # the missing right is a problem of its own
            raise
    return found
