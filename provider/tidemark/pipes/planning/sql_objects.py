"""CREATE and ALTER of stages, file formats and pipes, as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from tidemark.errors import NotYetSupported
from tidemark.pipes.planning.sql_copy import copy_of_pipe
from tidemark.pipes.planning.sql_options import GivenOption, format_of, object_kind, options_until
from tidemark.pipes.planning.statements import (
    AlterFileFormat,
    AlterPipe,
    AlterStage,
    CreateFileFormat,
    CreatePipe,
    CreateStage,
    ObjectKind,
    RefreshPipe,
    RenameObject,
)
from tidemark.sql.alike import alike
from tidemark.sql.text import Cursor

__all__ = ["alter", "create"]

_CONNECTION = "Credentials of storage come from the Tidemark connection."
_STAGE_UNSUPPORTED = {
    "CREDENTIALS": _CONNECTION,
    "STORAGE_INTEGRATION": _CONNECTION,
    "ENCRYPTION": "Encryption of storage is set in the Tidemark connection.",
    "DIRECTORY": "LIST @stage shows the files.",
    "COPY_OPTIONS": "Write the options into COPY INTO.",
    "USE_PRIVATELINK_ENDPOINT": "The endpoint of storage is set in the Tidemark connection.",
    "AWS_ACCESS_POINT_ARN": "Name the access point in URL.",
}
_PIPE_UNSUPPORTED = {
    "AWS_SNS_TOPIC": "Let the topic write to a queue of SQS, and name that in NOTIFICATION_CHANNEL.",
    "INTEGRATION": "Name a queue of SQS or a directory of notifications in NOTIFICATION_CHANNEL.",
    "ERROR_INTEGRATION": "Skipped files raise alerts of Airflow.",
}


def create(cursor: Cursor) -> CreateStage | CreateFileFormat | CreatePipe:
    """CREATE STAGE, FILE FORMAT or PIPE."""
    cursor.needs("CREATE")
    or_replace = cursor.takes("OR", "REPLACE")
    if cursor.sees("OR", "ALTER"):
        raise NotYetSupported(feature="CREATE OR ALTER", instead="Use CREATE OR REPLACE, which keeps what it can.")
    for word in ("TEMPORARY", "TEMP", "VOLATILE"):
        if cursor.sees(word):
            raise cursor.fails("there are no temporary stages, file formats and pipes; drop them after use")
    kind = object_kind(cursor)
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise cursor.fails("OR REPLACE excludes IF NOT EXISTS")
    name = cursor.name(f"the name of a {kind.lower()}").text
    if kind is ObjectKind.STAGE:
        return _create_stage(cursor, name, or_replace, if_not_exists)
    if kind is ObjectKind.PIPE:
        return _create_pipe(cursor, name, or_replace, if_not_exists)
    options = options_until(cursor)
    cursor.end()
    comment = _text(cursor, options.pop("COMMENT", None))
    return CreateFileFormat(name, format_of(cursor, options), comment, or_replace, if_not_exists)


def alter(cursor: Cursor) -> AlterStage | AlterFileFormat | AlterPipe | RefreshPipe | RenameObject:
    """ALTER STAGE, FILE FORMAT or PIPE."""
    cursor.needs("ALTER")
    kind = object_kind(cursor)
    if_exists = cursor.takes("IF", "EXISTS")
    name = cursor.name(f"the name of a {kind.lower()}").text
    if kind is ObjectKind.PIPE:
        return _alter_pipe(cursor, name, if_exists)
    if cursor.one_of("SET", "RENAME TO") == "RENAME TO":
        new_name = cursor.name(f"the new name of the {kind.lower()}").text
        cursor.end()
        return RenameObject(kind, name, new_name, if_exists)
    options = _some_options(cursor)
    comment = _text(cursor, options.pop("COMMENT", None))
    if kind is ObjectKind.STAGE:
        url, ref = _text(cursor, options.pop("URL", None)), options.pop("FILE_FORMAT", None)
        _require_none(cursor, "a stage", options, ("URL", "FILE_FORMAT", "COMMENT"), _STAGE_UNSUPPORTED)
        return AlterStage(name, url, None if ref is None else ref.value, comment, if_exists)
    if "TYPE" in options:
        raise cursor.fails("the type of a file format does not change; create another one", options["TYPE"].span)
    return AlterFileFormat(name, {one.name: one.value for one in options.values()}, comment, if_exists)


def _create_stage(cursor: Cursor, name: str, or_replace: bool, if_not_exists: bool) -> CreateStage:
    options = options_until(cursor)
    cursor.end()
    url = _text(cursor, options.pop("URL", None))
    ref = options.pop("FILE_FORMAT", None)
    comment = _text(cursor, options.pop("COMMENT", None))
    _require_none(cursor, "a stage", options, ("URL", "FILE_FORMAT", "COMMENT"), _STAGE_UNSUPPORTED)
    if not url:
        raise NotYetSupported(
            feature="An internal stage (CREATE STAGE without URL)",
            instead="Name a directory or the prefix of a bucket: URL = '…'.",
        )
    return CreateStage(name, url, None if ref is None else ref.value, comment, or_replace, if_not_exists)


def _create_pipe(cursor: Cursor, name: str, or_replace: bool, if_not_exists: bool) -> CreatePipe:
    options = options_until(cursor, "AS")
    known = ("AUTO_INGEST", "NOTIFICATION_CHANNEL", "COMMENT")
    auto_ingest = _flag(cursor, options.pop("AUTO_INGEST", None))
    channel = _text(cursor, options.pop("NOTIFICATION_CHANNEL", None))
    comment = _text(cursor, options.pop("COMMENT", None))
    _require_none(cursor, "a pipe", options, known, _PIPE_UNSUPPORTED)
    cursor.needs("AS")
    start = cursor.span.start
    copy = copy_of_pipe(cursor)
    return CreatePipe(
        name,
        cursor.text[start:].rstrip().rstrip(";").rstrip(),
        copy,
        auto_ingest=bool(auto_ingest),
        notification_channel=channel,
        comment=comment,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
    )


def _alter_pipe(cursor: Cursor, name: str, if_exists: bool) -> AlterPipe | RefreshPipe:
    action = cursor.one_of("SET", "UNSET", "REFRESH")
    if action == "REFRESH":
        return _refresh(cursor, name, if_exists)
    if action == "UNSET":
        cursor.needs("COMMENT")
        cursor.end()
        return AlterPipe(name, unset_comment=True, if_exists=if_exists)
    options = _some_options(cursor)
    paused = _flag(cursor, options.pop("PIPE_EXECUTION_PAUSED", None))
    comment = _text(cursor, options.pop("COMMENT", None))
    _require_none(cursor, "ALTER PIPE", options, ("PIPE_EXECUTION_PAUSED", "COMMENT"), _PIPE_UNSUPPORTED)
    return AlterPipe(name, paused, comment, if_exists=if_exists)


def _refresh(cursor: Cursor, name: str, if_exists: bool) -> RefreshPipe:
    options = options_until(cursor)
    cursor.end()
    prefix = _text(cursor, options.pop("PREFIX", None)) or ""
    after = options.pop("MODIFIED_AFTER", None)
    _require_none(cursor, "REFRESH", options, ("PREFIX", "MODIFIED_AFTER"), {})
    return RefreshPipe(name, prefix.lstrip("/"), None if after is None else _time(cursor, after), if_exists)


def _time(cursor: Cursor, option: GivenOption) -> datetime:
    """A point in time; one without a zone is in UTC."""
    try:
        found = datetime.fromisoformat(str(option.value))
    except ValueError as error:
        problem = "MODIFIED_AFTER is a time, as in '2024-05-31T12:00:00Z'"
        raise cursor.fails(problem, option.value_span) from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _some_options(cursor: Cursor) -> dict[str, GivenOption]:
    found = options_until(cursor)
    if not found:
        raise cursor.unexpected("an option, as in NAME = value")
    cursor.end()
    return found


def _require_none(
    cursor: Cursor, of: str, left: Mapping[str, GivenOption], known: tuple[str, ...], unsupported: Mapping[str, str]
) -> None:
    """Raises for the first option that is left. `known`: those that it might mean."""
    for name, option in left.items():
        if name in unsupported:
            raise NotYetSupported(feature=f"{name} of {of}", instead=unsupported[name])
        hint = ", ".join(alike(name, known) or known)
        raise cursor.fails(f"{of} has no option {name}; there are {hint}", option.span)


def _text(cursor: Cursor, option: GivenOption | None) -> str | None:
    if option is not None and not isinstance(option.value, str):
        raise cursor.fails(f"{option.name} takes a text in quotes", option.value_span)
    return None if option is None else option.value


def _flag(cursor: Cursor, option: GivenOption | None) -> bool | None:
    if option is not None and not isinstance(option.value, bool):
        raise cursor.fails(f"{option.name} is TRUE or FALSE", option.value_span)
    return None if option is None else option.value
