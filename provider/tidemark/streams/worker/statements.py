"""Statements of SQL that define streams or refresh an external table, for the client and for a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.errors import ExternalTableNotFound, NotYetSupported, SqlCompilationError, StreamExists
from tidemark.model.external_tables import Refreshed
from tidemark.model.streams import Stream
from tidemark.sql.names import external_table_name, sql_name
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.starts import start_of
from tidemark.streams.planning.stream_sql.statements import (
    AlterStream,
    CloneStream,
    CreateStream,
    DropStream,
    ObjectKind,
    RefreshExternalTable,
)
from tidemark.streams.planning.stream_sql.wording import worded
from tidemark.streams.worker import streams
from tidemark.streams.worker.defining import (
    IfExists,
    Sources,
    StreamRequest,
    clone_stream,
    create_stream,
    find_stream,
)

__all__ = ["Definition", "Desk", "run_statement"]

Definition = CreateStream | CloneStream | AlterStream | DropStream | RefreshExternalTable
"""A statement that makes, changes or drops."""

DONE = "Statement executed successfully."
FILES = (ObjectKind.EXTERNAL_TABLE, ObjectKind.STAGE)


@dataclass(frozen=True)
class Desk:
    """The means of statements. `kind_of`: the kind of object that a name leads to, in SQL's words; None if it leads
    nowhere. If two objects have the name, it is the one of the kind that was asked for. `refresh`: notes which files an
    external table has now. `once`: `who` is one run, so a stream that it has created stays, also by OR REPLACE.
    """

    store: ControlStore
    sources: Sources
    who: str
    kind_of: Callable[[str, ObjectKind], str | None]
    refresh: Callable[[str], Refreshed]
    once: bool = False


def run_statement(desk: Desk, statement: Definition, text: str) -> tuple[str, ...]:
    """The result in the words of the source system, then what the statement says that is not done here. `text`: that of
    the statement.

    With IF [NOT] EXISTS a second run changes nothing. Raises SqlCompilationError with the place in the text, and what
    `create_stream`, `clone_stream` and `refresh` raise.
    """
    if isinstance(statement, CreateStream):
        return (_create(desk, statement, text), *statement.notices)
    if isinstance(statement, CloneStream):
        return (_clone(desk, statement, text), *statement.notices)
    if isinstance(statement, AlterStream):
        return (_alter(desk, statement),)
    if isinstance(statement, DropStream):
        return (_drop(desk, statement),)
    return (_refresh(desk, statement, text),)


def _create(desk: Desk, create: CreateStream, text: str) -> str:
    name, existing = create.name.text, find_stream(desk.store, create.name.text)
    if existing is not None and create.or_alter:
        return _alter_to(desk, create, existing, text)
    kept = _kept(desk, create, existing)
    if kept is not None:
        return kept
    request = _request(desk, create, text)
    with worded(text, create.source, create.point):
        create_stream(desk.store, request, who=desk.who, sources=desk.sources)
    return f"Stream {name} successfully created."


def _kept(desk: Desk, create: CreateStream | CloneStream, existing: Stream | None) -> str | None:
    """The answer if an existing stream stays: IF NOT EXISTS, or this run has created it (R7). Raises StreamExists."""
    if existing is None:
        return None
    if create.if_not_exists:
        return f"{create.name.text} already exists, statement succeeded."
    if desk.once and streams.stream_history(desk.store, existing.name)[0].who == desk.who:
        return f"Stream {existing.name} was created by an earlier attempt of this run."
    if not create.or_replace:
        raise StreamExists(stream=existing.name, source=existing.source.name)
    return None


def _request(desk: Desk, create: CreateStream, text: str) -> StreamRequest:
    """The stream that is asked for, if its source is of the kind that the statement says (R9)."""
    source = external_table_name(create.source) if create.kind in FILES else sql_name(create.source)
    found = desk.kind_of(source, create.kind)
    as_said = found == create.kind or (found == ObjectKind.EXTERNAL_TABLE and create.kind in FILES)
    if found is not None and not as_said:
        problem = f"Object found is of type '{found}', not specified type '{create.kind}'."
        raise compilation_error(text, create.source.span, problem)
    if create.kind is ObjectKind.STAGE:
        raise NotYetSupported(
            feature="A stream on the directory table of a stage",
            instead="ON EXTERNAL TABLE '<directory>' INSERT_ONLY = TRUE gives the rows of its new files.",
        )
    return StreamRequest(
        name=create.name.text,
        on=source,
        mode=create.mode,
        initial_rows=create.show_initial_rows,
        if_exists=IfExists.of(or_replace=create.or_replace, if_not_exists=create.if_not_exists),
        comment=create.comment,
        on_view=create.kind is ObjectKind.VIEW,
        **start_of(create.point),
    )


def _alter_to(desk: Desk, create: CreateStream, existing: Stream, text: str) -> str:
    """CREATE OR ALTER: the comment may be another one, nothing else (R4)."""
    request = _request(desk, create, text)
    same = request.mode is existing.mode and create.point is None and not create.show_initial_rows
    if same and request.on != existing.source.name:
        with worded(text, create.source):
            same = desk.sources.find(request).ref.table_id == existing.source.table_id
    if not same:
        problem = f"CREATE OR ALTER changes only the COMMENT; type, source and place of {existing.name} stay"
        raise compilation_error(text, create.name.span, problem)
    streams.comment_on_stream(desk.store, existing.name, create.comment)
    return DONE


def _clone(desk: Desk, clone: CloneStream, text: str) -> str:
    name = clone.name.text
    kept = _kept(desk, clone, find_stream(desk.store, name))
    if kept is not None:
        return kept
    original = streams.get_stream(desk.store, clone.source.text)
    with worded(text, clone.source, clone.point):
        clone_stream(
            desk.store,
            original.name,
            name,
            who=desk.who,
            tables=desk.sources.open,
            or_replace=clone.or_replace,
            **start_of(clone.point),
        )
    return f"Stream {name} successfully created."


def _alter(desk: Desk, alter: AlterStream) -> str:
    if not (alter.if_exists and find_stream(desk.store, alter.name.text) is None):
        streams.comment_on_stream(desk.store, alter.name.text, alter.comment)
    return DONE


def _drop(desk: Desk, drop: DropStream) -> str:
    name = drop.name.text
    if drop.if_exists and find_stream(desk.store, name) is None:
        return f"Drop statement executed successfully ({name} already dropped)."
    streams.drop_stream(desk.store, name, desk.who)
    return f"{name} successfully dropped."


def _refresh(desk: Desk, refresh: RefreshExternalTable, text: str) -> str:
    name = external_table_name(refresh.name)
    try:
        with worded(text, refresh.name):
            done = desk.refresh(name)
    except SqlCompilationError as error:
        if refresh.if_exists and isinstance(error.__cause__, ExternalTableNotFound):
            return DONE
        raise
    found = f"{done.added} added, {done.overwritten} overwritten, {done.removed} removed"
    return f"External table {name} refreshed: {found}."
