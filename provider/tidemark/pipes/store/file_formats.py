"""File formats in the store: each move by name, with its condition."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.errors import FileFormatNotFound
from tidemark.model.codec import from_json, to_json
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.model.pipes import NamedFormat
from tidemark.pipes.planning.names import key_of
from tidemark.pipes.store import named
from tidemark.pipes.store.schema import file_formats

__all__ = [
    "change_file_format",
    "create_file_format",
    "end_file_format",
    "find_file_format",
    "format_of",
    "live_file_formats",
    "lookup_file_format",
]


def lookup_file_format(connection: sa.Connection, name: str) -> NamedFormat | None:
    """The live file format of that name, or None."""
    row = named.lookup_row(connection, file_formats, name)
    return None if row is None else _of_row(row)


def find_file_format(connection: sa.Connection, name: str) -> NamedFormat:
    """The live file format of that name. Raises FileFormatNotFound."""
    found = lookup_file_format(connection, name)
    if found is None:
        raise FileFormatNotFound(file_format=name, known=named.known(connection, file_formats, name))
    return found


def live_file_formats(connection: sa.Connection) -> tuple[NamedFormat, ...]:
    """All file formats, by name."""
    return tuple(map(_of_row, named.live_rows(connection, file_formats)))


def create_file_format(connection: sa.Connection, one: NamedFormat) -> None:
    """Add a file format, whose name must be free."""
    connection.execute(file_formats.insert().values(uid=one.uid, created_at=one.created_at, **_definition(one)))


def change_file_format(connection: sa.Connection, one: NamedFormat) -> bool:
    """Give the file format of that uid another definition or name; True if it lives."""
    return named.change(connection, file_formats, one.uid, **_definition(one))


def end_file_format(connection: sa.Connection, uid: str, *, at: datetime) -> bool:
    """End a file format; True if it lived."""
    return named.end(connection, file_formats, uid, at=at)


def format_of(text: str) -> FileFormat:
    """The format of its JSON, with tuples for lists, as the checks of options give them."""
    found = from_json(FileFormat, text)
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in found.options.items()}
    return replace(found, options=options)


def _definition(one: NamedFormat) -> dict[str, Any]:
    return {
        "name": one.name,
        "folded_name": key_of(one.name),
        "format": to_json(one.format),
        "comment": one.comment,
    }


def _of_row(row: sa.RowMapping) -> NamedFormat:
    return NamedFormat(row["uid"], row["name"], format_of(row["format"]), row["comment"], row["created_at"])
