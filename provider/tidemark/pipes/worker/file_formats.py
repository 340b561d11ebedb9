"""File formats as users define, change and drop them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import FileFormatExists
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.model.pipes import NamedFormat
from tidemark.pipes.planning.formats import file_format, merged
from tidemark.pipes.planning.names import key_of, listed, require_one_way
from tidemark.pipes.store import file_formats

__all__ = [
    "alter_file_format",
    "create_file_format",
    "drop_file_format",
    "find_file_format",
    "get_file_format",
    "list_file_formats",
]


def create_file_format(
    store: ControlStore,
    name: str,
    format: FileFormat,
    *,
    comment: str | None = None,
    or_replace: bool = False,
    if_not_exists: bool = False,
) -> NamedFormat:
    """The file format of that name. `if_not_exists` keeps an existing one as it is. `or_replace` gives it this
    definition, so a second run changes nothing. Raises FileFormatExists, InvalidArgument.
    """
    require_one_way(or_replace=or_replace, if_not_exists=if_not_exists)
    key_of(name)
    wanted = NamedFormat(store.new_id(), name.strip(), format, comment, store.clock())

    def create(connection: sa.Connection) -> NamedFormat:
        existing = file_formats.lookup_file_format(connection, name)
        if existing is None:
            file_formats.create_file_format(connection, wanted)
            return wanted
        if if_not_exists:
            return existing
        if not or_replace:
            raise FileFormatExists(file_format=existing.name)
        return _changed(connection, replace(wanted, uid=existing.uid, created_at=existing.created_at))

    return store.write(create)


def alter_file_format(
    store: ControlStore,
    name: str,
    *,
    options: Mapping[str, Any] | None = None,
    comment: str | None = None,
    rename_to: str | None = None,
    if_exists: bool = False,
) -> NamedFormat | None:
    """Change the options that are given, and keep the others and the type; an empty comment removes it. None if the
    format does not exist with `if_exists`. A second run changes nothing, but for `rename_to`.

    Raises FileFormatNotFound, FileFormatExists for the new name, InvalidArgument, NotYetSupported.
    """

    def alter(connection: sa.Connection) -> NamedFormat | None:
        find = file_formats.lookup_file_format if if_exists else file_formats.find_file_format
        found = find(connection, name)
        if found is None:
            return None
        changed = replace(found, format=merged(found.format, file_format(found.format.type, options)))
        if comment is not None:
            changed = replace(changed, comment=comment or None)
        if rename_to is not None:
            _require_free(connection, rename_to, found)
            changed = replace(changed, name=rename_to.strip())
        return _changed(connection, changed)

    return store.write(alter)


def drop_file_format(store: ControlStore, name: str, *, if_exists: bool = False) -> NamedFormat | None:
    """End the file format and return what it was. Pipes that use it stop. None if it did not exist with `if_exists`.
    Raises FileFormatNotFound.
    """

    def drop(connection: sa.Connection) -> NamedFormat | None:
        find = file_formats.lookup_file_format if if_exists else file_formats.find_file_format
        found = find(connection, name)
        if found is not None:
            file_formats.end_file_format(connection, found.uid, at=store.clock())
        return found

    return store.write(drop)


def find_file_format(store: ControlStore, name: str) -> NamedFormat | None:
    """The file format of that name; None if there is none."""
    return store.read(lambda connection: file_formats.lookup_file_format(connection, name))


def get_file_format(store: ControlStore, name: str) -> NamedFormat:
    """The file format of that name. Raises FileFormatNotFound with similar names."""
    return store.read(lambda connection: file_formats.find_file_format(connection, name))


def list_file_formats(store: ControlStore, like: str | None = None) -> tuple[NamedFormat, ...]:
    """All file formats by name. `like`: a pattern of LIKE for the last part of the name."""
    return listed(store.read(file_formats.live_file_formats), like)


def _changed(connection: sa.Connection, one: NamedFormat) -> NamedFormat:
    file_formats.change_file_format(connection, one)
    return one


def _require_free(connection: sa.Connection, name: str, one: NamedFormat) -> None:
    other = file_formats.lookup_file_format(connection, name)
    if other is not None and other.uid != one.uid:
        raise FileFormatExists(file_format=other.name)
