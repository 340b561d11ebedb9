"""COPY INTO, as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import TokenType

from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.model.copying import ErrorMode, MatchBy, OnError, Validation, ValidationMode
from tidemark.pipes.model.formats import FileType
from tidemark.pipes.planning.sql_options import GivenOption, location, options_until
from tidemark.pipes.planning.statements import CopyInto, GivenOptions, StageSource, UriSource
from tidemark.pipes.planning.transforms import Over, over_of, select_items
from tidemark.sql.alike import alike
from tidemark.sql.names import sql_name
from tidemark.sql.text import Cursor, Span

__all__ = ["copy_into", "copy_of_pipe"]

_UNSUPPORTED = {
    "CLUSTER_AT_INGEST_TIME": "Cluster the Delta table: OPTIMIZE sorts its rows.",
    "CREDENTIALS": "Credentials of storage come from the Tidemark connection.",
    "ENCRYPTION": "Encryption of storage is set in the Tidemark connection.",
    "FILE_PROCESSOR": "Convert the files to CSV, JSON, XML, Parquet, Avro or ORC.",
    "INCLUDE_METADATA": "Select METADATA$FILENAME and the like in a transformation.",
    "LOAD_MODE": "Files are read and their rows are written.",
    "STORAGE_INTEGRATION": "Credentials of storage come from the Tidemark connection.",
}
_NOT_IN_PIPES = {
    "FILES": "a pipe finds its files itself; name them by PATTERN, or by lake.insert_files",
    "FORCE": "a pipe loads a file once; copy files again by COPY INTO",
    "LOAD_UNCERTAIN_FILES": "a pipe knows its files by its own history",
    "PURGE": "remove files by hand after they are loaded",
    "RETURN_FAILED_ONLY": "a pipe returns no rows; COPY_HISTORY has them",
    "SIZE_LIMIT": "the run of a pipe bounds its batches",
    "VALIDATION_MODE": "validate files by COPY INTO",
}
_NOT_IN_TRANSFORMATIONS = ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "UNION", "QUALIFY", "LATERAL", ",")
_SKIP_FILE = re.compile(r"SKIP_FILE_([0-9]{1,9})(%?)")
_RETURN_ROWS = re.compile(r"RETURN_([0-9]{1,9})_ROWS")


def copy_into(cursor: Cursor) -> CopyInto:
    """The statement at the cursor, to its end."""
    return _read(cursor)[0]


def copy_of_pipe(cursor: Cursor) -> CopyInto:
    """The statement of a pipe. Raises SqlCompilationError at options that have no meaning in it."""
    statement, given = _read(cursor)
    for name, why in _NOT_IN_PIPES.items():
        if name in given:
            raise cursor.fails(f"{name} is not allowed in a pipe: {why}", given[name].span)
    on_error = statement.options.on_error
    if on_error is not None and on_error.mode is ErrorMode.ABORT_STATEMENT:
        problem = "ON_ERROR = ABORT_STATEMENT is not allowed in a pipe; the default is SKIP_FILE"
        raise cursor.fails(problem, given["ON_ERROR"].span)
    return statement


def _read(cursor: Cursor) -> tuple[CopyInto, Mapping[str, GivenOption]]:
    cursor.needs("COPY", "INTO")
    if cursor.sees("@") or _sees_string(cursor):
        raise NotYetSupported(
            feature="COPY INTO a location",
            instead="Write the rows by Spark: INSERT OVERWRITE DIRECTORY '…' USING parquet SELECT …",
        )
    table = sql_name(cursor.name("the name of a table"))
    columns = _columns(cursor) if cursor.takes("(") else ()
    cursor.needs("FROM")
    items, source, alias = _transformation(cursor) if cursor.takes("(") else (None, location(cursor), None)
    given = options_until(cursor)
    cursor.end()
    values = _values(cursor, given)
    statement = CopyInto(
        table=table,
        source=source,
        columns=columns,
        select=None if items is None else cursor.text[items.start : items.end].strip(),
        alias=alias,
        files=values.pop("FILES", ()),
        pattern=values.pop("PATTERN", None),
        prefix=values.pop("PREFIX", ""),
        format=values.pop("FILE_FORMAT", None),
        validation=values.pop("VALIDATION_MODE", None),
        options=GivenOptions(**{_FIELDS[name]: value for name, value in values.items()}),
    )
    _require_fit(cursor, statement, given)
    if items is not None:
        _require_items(cursor, statement, items)
    return statement, given


def _sees_string(cursor: Cursor) -> bool:
    return cursor.at < len(cursor.tokens) and cursor.tokens[cursor.at].token_type is TokenType.STRING


def _columns(cursor: Cursor) -> tuple[str, ...]:
    columns: list[str] = []
    while not columns or cursor.takes(","):
        name = cursor.name("the name of a column")
        if len(name.parts) > 1:
            raise cursor.fails("a column is filled as a whole, not a part of it", name.span)
        if name.parts[0].casefold() in map(str.casefold, columns):
            raise cursor.fails(f"column {name.parts[0]} is named twice", name.span)
        columns.append(name.parts[0])
    cursor.needs(")")
    return tuple(columns)


def _transformation(cursor: Cursor) -> tuple[Span, StageSource | UriSource, str | None]:
    """The place of the items, the source and its alias."""
    cursor.needs("SELECT")
    items = _items(cursor)
    cursor.needs("FROM")
    source = location(cursor)
    cursor.takes("AS")
    _require_one_location(cursor)
    alias = None if cursor.sees(")") else cursor.name("an alias, or )").text
    _require_one_location(cursor)
    cursor.needs(")")
    return items, source, alias


def _require_one_location(cursor: Cursor) -> None:
    """Raises SqlCompilationError at the next part of a query. Some of them, such as GROUP BY, are one token."""
    text = cursor.tokens[cursor.at].text.upper() if cursor.at < len(cursor.tokens) else ""
    if text.split()[:1] and text.split()[0] in _NOT_IN_TRANSFORMATIONS:
        raise cursor.fails(f"{text} is not allowed in a transformation: it selects from one location only")


def _items(cursor: Cursor) -> Span:
    """The text up to FROM."""
    start, depth = cursor.span.start, 0
    while cursor.at < len(cursor.tokens):
        if depth == 0 and cursor.sees("FROM"):
            return Span(start, cursor.span.start)
        if cursor.sees("("):
            depth += 1
        if cursor.sees(")"):
            depth -= 1
        if depth < 0:
            break
        cursor.at += 1
    raise cursor.unexpected("FROM")


def _values(cursor: Cursor, given: Mapping[str, GivenOption]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, option in given.items():
        if name in _UNSUPPORTED:
            raise NotYetSupported(feature=f"{name} of COPY INTO", instead=_UNSUPPORTED[name])
        if name not in _READERS:
            close = alike(name, _READERS)
            hint = f"similar names: {', '.join(close)}" if close else f"there are {', '.join(_READERS)}"
            raise cursor.fails(f"COPY INTO has no option {name}; {hint}", option.span)
        found[name] = _READERS[name](cursor, option)
    if "ENFORCE_LENGTH" in found:
        enforced = found.pop("ENFORCE_LENGTH")
        if found.setdefault("TRUNCATECOLUMNS", not enforced) == enforced:
            raise cursor.fails("ENFORCE_LENGTH contradicts TRUNCATECOLUMNS", given["ENFORCE_LENGTH"].span)
    return found


def _require_fit(cursor: Cursor, statement: CopyInto, given: Mapping[str, GivenOption]) -> None:
    """Raises SqlCompilationError for options that exclude each other."""
    matches = statement.options.match_by not in (None, MatchBy.NONE)
    if matches and statement.select is not None:
        raise cursor.fails("MATCH_BY_COLUMN_NAME excludes a transformation", given["MATCH_BY_COLUMN_NAME"].span)
    if matches and statement.columns:
        raise cursor.fails("MATCH_BY_COLUMN_NAME excludes a list of columns", given["MATCH_BY_COLUMN_NAME"].span)
    if statement.validation is not None and statement.select is not None:
        raise cursor.fails("VALIDATION_MODE excludes a transformation", given["VALIDATION_MODE"].span)
    if statement.files and statement.pattern is not None:
        raise cursor.fails("FILES excludes PATTERN", given["PATTERN"].span)


def _require_items(cursor: Cursor, statement: CopyInto, items: Span) -> None:
    """Raises SqlCompilationError for items that files of the format cannot have, or of any format if it is not said."""
    known = None if statement.format is None or statement.format.format is None else statement.format.format.type
    if statement.format is None and isinstance(statement.source, UriSource):
        known = FileType.CSV
    first: SqlCompilationError | None = None
    for over in Over if known is None else (over_of(known),):
        try:
            select_items(statement.select or "", statement.alias or "", over, within=(cursor.text, items))
        except SqlCompilationError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first


def _flag(cursor: Cursor, option: GivenOption) -> bool:
    if not isinstance(option.value, bool):
        raise cursor.fails(f"{option.name} is TRUE or FALSE", option.value_span)
    return option.value


def _text(cursor: Cursor, option: GivenOption) -> str:
    if not isinstance(option.value, str):
        raise cursor.fails(f"{option.name} takes a text in quotes", option.value_span)
    return option.value


def _pattern(cursor: Cursor, option: GivenOption) -> str:
    text = _text(cursor, option)
    try:
        re.compile(text)
    except re.error as error:
        raise cursor.fails(f"PATTERN is not a regular expression: {error}", option.value_span) from error
    return text


def _files(cursor: Cursor, option: GivenOption) -> tuple[str, ...]:
    found = option.value
    if not isinstance(found, tuple) or not found:
        raise cursor.fails("FILES takes names in quotes, as in FILES = ('a.csv', 'b.csv')", option.value_span)
    if len(found) > 1000:
        raise cursor.fails("FILES takes up to 1,000 names; use PATTERN for more", option.value_span)
    return tuple(dict.fromkeys(found))


def _size(cursor: Cursor, option: GivenOption) -> int:
    if isinstance(option.value, bool) or not isinstance(option.value, int) or option.value < 1:
        raise cursor.fails("SIZE_LIMIT is a number of bytes, at least 1", option.value_span)
    return option.value


def _on_error(cursor: Cursor, option: GivenOption) -> OnError:
    text = str(option.value).upper()
    if text in list(ErrorMode):
        return OnError(ErrorMode(text))
    found = _SKIP_FILE.fullmatch(text)
    if found is None:
        words = ", ".join((*ErrorMode, "SKIP_FILE_10", "'SKIP_FILE_10%'"))
        raise cursor.fails(f"ON_ERROR is one of {words}", option.value_span)
    number = int(found[1])
    if found[2]:
        if number > 100:
            raise cursor.fails("a percentage is at most 100", option.value_span)
        return OnError(ErrorMode.SKIP_FILE, percent=float(number))
    if number < 1:
        raise cursor.fails("the number of errors is at least 1", option.value_span)
    return OnError(ErrorMode.SKIP_FILE, limit=number)


def _match_by(cursor: Cursor, option: GivenOption) -> MatchBy:
    text = str(option.value).upper()
    if text not in list(MatchBy):
        raise cursor.fails(f"MATCH_BY_COLUMN_NAME is one of {', '.join(MatchBy)}", option.value_span)
    return MatchBy(text)


def _validation(cursor: Cursor, option: GivenOption) -> Validation:
    text = str(option.value).upper()
    if text in (ValidationMode.ERRORS, ValidationMode.ALL_ERRORS):
        return Validation(ValidationMode(text))
    found = _RETURN_ROWS.fullmatch(text)
    if found is None or int(found[1]) < 1:
        problem = "VALIDATION_MODE is RETURN_n_ROWS, RETURN_ERRORS or RETURN_ALL_ERRORS"
        raise cursor.fails(problem, option.value_span)
    return Validation(ValidationMode.ROWS, int(found[1]))


_READERS: Mapping[str, Callable[[Cursor, GivenOption], Any]] = {
    "FILES": _files,
    "PATTERN": _pattern,
    "PREFIX": _text,
    "FILE_FORMAT": lambda _, option: option.value,
    "VALIDATION_MODE": _validation,
    "ON_ERROR": _on_error,
    "SIZE_LIMIT": _size,
    "PURGE": _flag,
    "FORCE": _flag,
    "LOAD_UNCERTAIN_FILES": _flag,
    "MATCH_BY_COLUMN_NAME": _match_by,
    "TRUNCATECOLUMNS": _flag,
    "ENFORCE_LENGTH": _flag,
    "RETURN_FAILED_ONLY": _flag,
    "ENABLE_SCHEMA_EVOLUTION": _flag,
}
_FIELDS = {
    "ON_ERROR": "on_error",
    "SIZE_LIMIT": "size_limit",
    "PURGE": "purge",
    "FORCE": "force",
    "LOAD_UNCERTAIN_FILES": "load_uncertain_files",
    "MATCH_BY_COLUMN_NAME": "match_by",
    "TRUNCATECOLUMNS": "truncate_columns",
    "RETURN_FAILED_ONLY": "return_failed_only",
    "ENABLE_SCHEMA_EVOLUTION": "enable_schema_evolution",
}
