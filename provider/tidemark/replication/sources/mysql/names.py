"""Names as SQL text, and the identity of a table."""

from __future__ import annotations

from tidemark.replication.model.replication import ObjectName

__all__ = ["literal", "name_of_id", "qualified", "quoted", "source_id_of"]


def quoted(name: str) -> str:
    """An identifier, with any characters in it."""
    return "`" + name.replace("`", "``") + "`"


def qualified(name: ObjectName) -> str:
    """The name with its schema: `` `schema`.`table` ``."""
    return f"{quoted(name.schema)}.{quoted(name.table)}"


def literal(text: str) -> str:
    """A string constant, for a session without NO_BACKSLASH_ESCAPES."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def source_id_of(name: ObjectName) -> str:
    """The identity of a table is its name: `schema.table`, quoted if a part has a dot or a backquote.

    Nothing else survives in these databases. An ALTER that rebuilds a table gives it another InnoDB id and another time
    of creation, and so does TRUNCATE. So neither distinguishes a recreated table from an altered one. The binary log
    tells it: it has DROP, CREATE and RENAME as statements.
    """
    plain = not any(set(".`") & set(part) for part in (name.schema, name.table))
    return name.text if plain else qualified(name)


def name_of_id(source_id: str) -> ObjectName:
    """The inverse of `source_id_of`."""
    if not source_id.startswith("`"):
        schema, _, table = source_id.partition(".")
        return ObjectName(schema, table)
    schema, _, table = source_id[1:-1].partition("`.`")
    return ObjectName(schema.replace("``", "`"), table.replace("``", "`"))
