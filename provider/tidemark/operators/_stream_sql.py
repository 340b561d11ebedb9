"""Statements about streams in the worker: the store and the logs are enough for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tidemark.changes.worker.sources import require_stream_source
from tidemark.control.store import ControlStore
from tidemark.errors import NotYetSupported, StatementRefused, StreamExists, StreamNotFound, TableNotFound
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import Stream, TableRef
from tidemark.sql.names import external_table_name, sql_name
from tidemark.sql.statements import path_name
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.queries import spliced
from tidemark.streams.planning.stream_sql.statements import (
    AlterStream,
    BacklogCall,
    CloneStream,
    CreateStream,
    DropStream,
    HasDataCall,
    ObjectKind,
    QueryPart,
    RefreshExternalTable,
    SetVariable,
    StreamQuery,
    StreamStatement,
    TableTimestampCall,
)
from tidemark.streams.planning.stream_sql.wording import worded
from tidemark.streams.worker import streams
from tidemark.streams.worker.backlog import stream_backlog, stream_table_timestamp
from tidemark.streams.worker.has_data import has_data
from tidemark.streams.worker.sql_points import start_version

__all__ = ["StreamDefinitions", "answer"]

WITHOUT_SPARK = (
    "a task without Spark only reads logs; use lake.sql in a @task or a notebook for it, or write what it finds with an"
    " INSERT that reads the stream"
)


class StreamDefinitions:
    """Makes, changes and drops streams for one run of a task. `turn_on` turns row tracking on, if it is off (R3);
    `find` finds a table by its name.
    """

    def __init__(
        self,
        hook: TidemarkHook,
        store: ControlStore,
        *,
        text: str,
        who: str,
        turn_on: Callable[[TableRef], None],
        find: Callable[[str], TableRef],
    ) -> None:
        self._hook = hook
        self._store = store
        self._text = text
        self._who = who
        self._turn_on = turn_on
        self._find_table = find

    def run(self, statement: StreamStatement) -> str:
        """The result in the words of the source system. Raises StatementRefused for what only shows."""
        if isinstance(statement, CreateStream):
            return self._create(statement)
        if isinstance(statement, CloneStream):
            return self._clone(statement)
        if isinstance(statement, AlterStream):
            return self._alter(statement)
        if isinstance(statement, DropStream):
            return self._drop(statement)
        if isinstance(statement, RefreshExternalTable):
            problem = "Spark notes which files there are; use RefreshExternalTableOperator"
            raise StatementRefused(problem=problem, sql=self._text)
        if isinstance(statement, SetVariable):
            problem = "a task has one statement; give the point itself, or a template of the DAG's"
            raise StatementRefused(problem=problem, sql=self._text)
        problem = "nobody sees what it shows; use `airflow tidemark streams list`, the page Tidemark, or lake.sql"
        raise StatementRefused(problem=problem, sql=self._text)

    def _create(self, create: CreateStream) -> str:
        name = create.name.text
        kept = self._kept(create)
        if kept is not None:
            return kept
        table = self._table(create)
        existing = self._find(name)
        if existing is not None and create.or_alter:
            return self._alter_to(create, existing, table)
        self._turn_on(table)
        require_stream_source(self._hook.open_table(table), path_name(table.path))
        with worded(self._text, create.source, create.point):
            version = start_version(
                self._store, table, create.point, text=self._text, stream=name, tables=self._hook.open_table
            )
        streams.create_stream(
            self._store,
            name=name,
            source=table,
            mode=create.mode,
            at_version=version,
            initial_rows=create.show_initial_rows,
            or_replace=create.or_replace,
            comment=create.comment,
            who=self._who,
        )
        return " ".join((f"Stream {name} successfully created.", *create.notices))

    def _kept(self, create: CreateStream | CloneStream) -> str | None:
        """The answer if an existing stream stays: IF NOT EXISTS, or this run has created it (R7)."""
        existing = self._find(create.name.text)
        if existing is None or (isinstance(create, CreateStream) and create.or_alter):
            return None
        if create.if_not_exists:
            return f"{existing.name} already exists, statement succeeded."
        if streams.stream_history(self._store, existing.name)[0].who == self._who:
            return f"Stream {existing.name} was created by an earlier attempt of this run."
        if not create.or_replace:
            raise StreamExists(stream=existing.name, source=existing.source.name)
        return None

    def _table(self, create: CreateStream) -> TableRef:
        """The table by its log. Raises SqlCompilationError for another kind of object, NotYetSupported for one that a
        task without Spark cannot find (R9).
        """
        if create.kind is ObjectKind.EXTERNAL_TABLE:
            return self._hook.external_table(external_table_name(create.source))
        if create.kind is not ObjectKind.TABLE:
            raise NotYetSupported(
                feature=f"CREATE STREAM ON {create.kind} in a task", instead="Spark must look at it: use lake.sql."
            )
        try:
            return self._find_table(sql_name(create.source))
        except TableNotFound as error:
            if self._find(create.source.text) is None:
                problem = f"Object {create.source.text!r} does not exist or not authorized."
            else:
                problem = "Object found is of type 'STREAM', not specified type 'TABLE'."
            raise compilation_error(self._text, create.source.span, problem) from error

    def _alter_to(self, create: CreateStream, existing: Stream, table: TableRef) -> str:
        same = existing.source.table_id == table.table_id and existing.mode is create.mode
        if not same or create.point is not None or create.show_initial_rows:
            problem = f"CREATE OR ALTER changes only the COMMENT; type, source and place of {existing.name} stay"
            raise compilation_error(self._text, create.name.span, problem)
        streams.comment_on_stream(self._store, existing.name, create.comment)
        return "Statement executed successfully."

    def _clone(self, clone: CloneStream) -> str:
        name = clone.name.text
        kept = self._kept(clone)
        if kept is not None:
            return kept
        stream = streams.get_stream(self._store, clone.source.text)
        if stream.view is not None:
            raise NotYetSupported(feature="CLONE of a stream on a view in a task", instead="Use lake.sql.")
        version = stream.offset.version
        if clone.point is not None:
            with worded(self._text, clone.source, clone.point):
                version = start_version(
                    self._store,
                    stream.source,
                    clone.point,
                    text=self._text,
                    stream=name,
                    tables=self._hook.open_table,
                    keys=stream.keys,
                )
        streams.create_stream(
            self._store,
            name=name,
            source=stream.source,
            mode=stream.mode,
            at_version=version,
            initial_rows=stream.initial_rows_pending,
            or_replace=clone.or_replace,
            comment=stream.comment,
            who=self._who,
            keys=stream.keys,
        )
        return " ".join((f"Stream {name} successfully created.", *clone.notices))

    def _alter(self, alter: AlterStream) -> str:
        if not (alter.if_exists and self._find(alter.name.text) is None):
            streams.comment_on_stream(self._store, alter.name.text, alter.comment)
        return "Statement executed successfully."

    def _drop(self, drop: DropStream) -> str:
        name = drop.name.text
        if drop.if_exists and self._find(name) is None:
            return f"Drop statement executed successfully ({name} already dropped)."
        streams.drop_stream(self._store, name, self._who)
        return f"{name} successfully dropped."

    def _find(self, name: str) -> Stream | None:
        try:
            return streams.get_stream(self._store, name)
        except StreamNotFound:
            return None


def answer(hook: TidemarkHook, store: ControlStore, query: StreamQuery) -> list[dict[str, Any]]:
    """The rows of `SELECT` with nothing but system functions of streams, or of `SELECT * FROM TABLE(…BACKLOG…)`.

    Raises StatementRefused for any other query, and what the functions raise.
    """
    marks = [f"part_{number}" for number in range(len(query.parts))]
    shape = spliced(query, marks).strip().rstrip(";").rstrip()
    backlog = re.fullmatch(r"SELECT\s+\*\s+FROM\s+part_0", shape, re.IGNORECASE)
    first = query.parts[0]
    if backlog and isinstance(first, BacklogCall):
        waiting = stream_backlog(store, first.stream.text, tables=hook.open_table)
        return [_plain(vars(one)) for one in waiting]
    columns = re.fullmatch(r"SELECT\s+(.+)", shape, re.IGNORECASE | re.DOTALL)
    found = [_COLUMN.fullmatch(column.strip()) for column in columns[1].split(",")] if columns else [None]
    if any(one is None for one in found):
        raise StatementRefused(problem=WITHOUT_SPARK, sql=query.text)
    titles = [one["title"] for one in found if one is not None]
    parts = zip(query.parts, titles, strict=True)
    return [{title or _title(part): _value(hook, store, query, part) for part, title in parts}]


_COLUMN = re.compile(r"part_\d+(?:\s+(?:AS\s+)?(?P<title>\w+))?", re.IGNORECASE)


def _title(part: QueryPart) -> str:
    return part.title or "?" if isinstance(part, HasDataCall | TableTimestampCall) else "?"


def _value(hook: TidemarkHook, store: ControlStore, query: StreamQuery, part: QueryPart) -> bool | int:
    if isinstance(part, HasDataCall):
        return has_data(store, part.stream.text, tables=hook.open_table)
    if isinstance(part, TableTimestampCall):
        return stream_table_timestamp(store, part.stream.text, tables=hook.open_table)
    raise StatementRefused(problem=WITHOUT_SPARK, sql=query.text)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
