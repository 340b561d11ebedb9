"""COPY INTO as text, from arguments: one way to check both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.planning.sql_options import location
from tidemark.pipes.planning.statements import FormatRef, StageSource, UriSource
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name
from tidemark.sql.table_names import table_name
from tidemark.sql.text import Cursor

__all__ = ["copy_text", "format_ref", "source_of"]

GivenFormat = str | Mapping[str, Any] | FileFormat
_NAME = re.compile(r"[A-Za-z]\w*")


def copy_text(
    table: str,
    source: str,
    *,
    columns: Sequence[str] = (),
    select: str | None = None,
    file_format: GivenFormat | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """The statement. `source`: @stage/path or a URI; `file_format`: a name, or TYPE with its options. `options`: by
    their names in SQL; those that are None, False or empty are left out.

    Raises InvalidArgument for a value that has no form in SQL.
    """
    meant = table_name(table)
    name = table if meant.path is None else path_name(meant.path)
    filled = f" ({', '.join(map(quoted, columns))})" if columns else ""
    place = _text(source)
    given = {key: value for key, value in (options or {}).items() if value not in (None, False, "", ())}
    said = [f"{key} = {_value(key, value)}" for key, value in given.items()]
    if file_format is not None:
        said.insert(0, f"FILE_FORMAT = {_format(file_format)}")
    whole = f"COPY INTO {name}{filled} FROM {place if select is None else f'(SELECT {select} FROM {place})'}"
    return "\n  ".join([whole, *said])


def format_ref(given: GivenFormat | None) -> FormatRef | None:
    """A format that was given by its name, or by TYPE and options. Raises InvalidArgument, NotYetSupported."""
    if given is None or isinstance(given, str):
        return None if given is None else FormatRef(name=given)
    if isinstance(given, FileFormat):
        return FormatRef(format=file_format(given.type, given.options))
    options = {name.upper(): value for name, value in given.items()}
    named = options.pop("FORMAT_NAME", None)
    if named is not None:
        return FormatRef(name=str(named))
    return FormatRef(format=file_format(options.pop("TYPE", "CSV"), options))


def source_of(text: str) -> StageSource | UriSource:
    """The meaning of @stage/path or of a URI. Raises SqlCompilationError, NotYetSupported."""
    return location(Cursor(_text(text)))


def _format(given: GivenFormat) -> str:
    if isinstance(given, str):
        return _text(given)
    if isinstance(given, FileFormat):
        given = {"TYPE": str(given.type), **given.options}
    return f"({' '.join(f'{_option(name)} = {_value(name, value)}' for name, value in given.items())})"


def _option(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise InvalidArgument(argument="file_format", value=name, problem="an option has a name of letters")
    return name.upper()


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
        return f"({', '.join(map(_text, value))})"
    raise InvalidArgument(argument=name, value=value, problem="TRUE, FALSE, a whole number or text is needed")


def _text(value: str) -> str:
    """A string of SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"
