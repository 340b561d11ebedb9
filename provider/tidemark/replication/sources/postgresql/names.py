"""Names as SQL text, for statements that a user is asked to run and for those that we run."""

from __future__ import annotations

from tidemark.replication.model.replication import ObjectName

__all__ = ["literal", "qualified", "quoted"]


def quoted(name: str) -> str:
    """An identifier, with any characters in it. PostgreSQL allows no NUL in one."""
    return '"' + name.replace('"', '""') + '"'


def qualified(name: ObjectName) -> str:
    """`"schema"."table"`."""
    return f"{quoted(name.schema)}.{quoted(name.table)}"


def literal(text: str) -> str:
    """A string constant, for a server with standard_conforming_strings (the default since 9.1)."""
    return "'" + text.replace("'", "''") + "'"
