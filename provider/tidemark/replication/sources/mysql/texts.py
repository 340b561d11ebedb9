"""How a query has the canonical text of a column, the same that events of the binary log have."""

from __future__ import annotations

from tidemark.model.source_address import SourceKind
from tidemark.replication.sources.mysql.dialects import Dialect
from tidemark.replication.sources.mysql.names import quoted
from tidemark.replication.sources.mysql.types import base_of

__all__ = ["text_expression"]

_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"})


def text_expression(name: str, native: str, dialect: Dialect) -> str:
    """SQL for the text of the column `name`, in a session of `connect`. Texts come in utf8mb4.

    A FLOAT is given as the DOUBLE of the same value, since the server rounds its text to six digits. A geometry is
    well-known binary, in the order of coordinates that is stored, without its SRID.
    """
    column, base = quoted(name), base_of(native)
    if base in _BYTES:
        return f"LOWER(HEX({column}))"
    if base == "geometry":
        return f"LOWER(SUBSTRING(HEX({column}), 9))"
    if base == "bit":
        return f"CAST({column} + 0 AS CHAR)"
    if base == "float":
        return (
            f"CAST(CAST({column} AS DOUBLE) AS CHAR)"
            if dialect.kind is SourceKind.MYSQL
            else f"CAST({column} + 0e0 AS CHAR)"
        )
    if base == "timestamp":
        return f"CONCAT(CAST({column} AS CHAR), '+00')"
    return f"CAST({column} AS CHAR CHARACTER SET utf8mb4)"
