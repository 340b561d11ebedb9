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
from tidemark.pipes.planning.names import key_of
from tidemark.pipes.store import file_formats
from tidemark.pipes.worker.named_objects import NamedObjects

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
    key_of(name)
    wanted = NamedFormat(store.new_id(), name.strip(), format, comment, store.clock())
    return _FILE_FORMATS.create(store, wanted, or_replace=or_replace, if_not_exists=if_not_exists)


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

    def define(_: sa.Connection, one: NamedFormat) -> NamedFormat:
        return replace(one, format=merged(one.format, file_format(one.format.type, options)))

    return _FILE_FORMATS.alter(store, name, define, comment=comment, rename_to=rename_to, if_exists=if_exists)


def drop_file_format(store: ControlStore, name: str, *, if_exists: bool = False) -> NamedFormat | None:
    """End the file format and return what it was. Pipes that use it stop. None if it did not exist with `if_exists`.
    Raises FileFormatNotFound.
    """
    return _FILE_FORMATS.drop(store, name, if_exists=if_exists)


def find_file_format(store: ControlStore, name: str) -> NamedFormat | None:
    """The file format of that name; None if there is none."""
    return _FILE_FORMATS.found(store, name)


def get_file_format(store: ControlStore, name: str) -> NamedFormat:
    """The file format of that name. Raises FileFormatNotFound with similar names."""
    return _FILE_FORMATS.get(store, name)


def list_file_formats(store: ControlStore, like: str | None = None) -> tuple[NamedFormat, ...]:
    """All file formats by name. `like`: a pattern of LIKE for the last part of the name."""
    return _FILE_FORMATS.listed(store, like)


_FILE_FORMATS = NamedObjects[NamedFormat](
    lookup=file_formats.lookup_file_format,
    find=file_formats.find_file_format,
    live=file_formats.live_file_formats,
    insert=file_formats.create_file_format,
    change=file_formats.change_file_format,
    end=file_formats.end_file_format,
    taken=lambda name: FileFormatExists(file_format=name),
)
