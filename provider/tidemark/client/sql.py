"""`lake.sql`: statements in the SQL of the source system."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidemark.client.change_stream_sql import define_change_stream, with_change_streams
from tidemark.client.objects import kind_of
from tidemark.client.sources import is_external_table
from tidemark.client.sql_answers import show_answer, status_answer, terse_answer
from tidemark.client.sql_points import start_of
from tidemark.client.sql_queries import pass_on, run_query
from tidemark.errors import NotYetSupported, StreamExists, StreamNotFound
from tidemark.sql.names import external_table_name, sql_name
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.statements import (
    AlterStream,
    CloneStream,
    CreateStream,
    DescribeStream,
    DropStream,
    ObjectKind,
    RefreshExternalTable,
    SetVariable,
    ShowStreams,
    StreamQuery,
    StreamStatement,
)
from tidemark.streams.planning.stream_sql.wording import worded
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.lake import Lake
    from tidemark.model.streams import Stream
    from tidemark.streams.planning.stream_sql.constants import Constant

__all__ = ["run_sql"]

FILES = (ObjectKind.EXTERNAL_TABLE, ObjectKind.STAGE)


def run_sql(lake: Lake, context: ClientContext, text: str, variables: dict[str, Constant]) -> DataFrame:
    """Run one statement and answer with its rows. SET adds to `variables`. Raises what `Lake.sql` says."""
    defined = define_change_stream(context, text)
    if defined is not None:
        return defined
    with with_change_streams(context, text) as known:
        return _run(lake, context, known, variables)


def _run(lake: Lake, context: ClientContext, text: str, variables: dict[str, Constant]) -> DataFrame:
    statement = parse_stream_sql(text, now=context.store.clock(), zone=_zone(context), variables=variables)
    if statement is None:
        return pass_on(lake, context, text)
    if isinstance(statement, StreamQuery):
        return run_query(lake, context, statement)
    if isinstance(statement, SetVariable):
        variables[statement.name] = statement.value
        return status_answer(context.spark, "Statement executed successfully.")
    return _Streams(lake, context, text).run(statement)


class _Streams:
    """Statements that make, change, drop and list streams."""

    def __init__(self, lake: Lake, context: ClientContext, text: str) -> None:
        self._lake = lake
        self._context = context
        self._text = text

    def run(self, statement: StreamStatement) -> DataFrame:
        if isinstance(statement, CreateStream):
            return self._create(statement)
        if isinstance(statement, CloneStream):
            return self._clone(statement)
        if isinstance(statement, AlterStream):
            return self._alter(statement)
        if isinstance(statement, DropStream):
            return self._drop(statement)
        if isinstance(statement, RefreshExternalTable):
            return self._refresh(statement)
        if isinstance(statement, ShowStreams):
            return self._show(statement)
        assert isinstance(statement, DescribeStream)
        return show_answer(self._context.spark, [self._lake.describe_stream(statement.name.text)])

    def _create(self, create: CreateStream) -> DataFrame:
        name = create.name.text
        existing = self._find(name)
        if existing is not None and create.if_not_exists:
            return self._status(f"{name} already exists, statement succeeded.", *create.notices)
        if existing is not None and create.or_alter:
            return self._alter_to(create, existing)
        if existing is not None and not create.or_replace:
            raise StreamExists(stream=existing.name, source=existing.source.name)
        source = self._source_of(create)
        with worded(self._text, create.source, create.point):
            self._lake.create_stream(
                name,
                source,
                mode=create.mode.value,
                show_initial_rows=create.show_initial_rows,
                or_replace=create.or_replace,
                comment=create.comment,
                enable_row_tracking=create.kind not in FILES,  # R3, R79
                **start_of(self._context, self._text, source, create.point),
            )
        return self._status(f"Stream {name} successfully created.", *create.notices)

    def _source_of(self, create: CreateStream) -> str:
        """The source of the stream, if it is of the kind that the statement says (R9)."""
        source = external_table_name(create.source) if create.kind in FILES else sql_name(create.source)
        found = kind_of(self._context, source)
        as_said = found == create.kind or (found == ObjectKind.EXTERNAL_TABLE and create.kind in FILES)
        if found is not None and not as_said:
            problem = f"Object found is of type '{found}', not specified type '{create.kind}'."
            raise compilation_error(self._text, create.source.span, problem)
        if create.kind is ObjectKind.STAGE:
            raise NotYetSupported(
                feature="A stream on the directory table of a stage",
                instead="ON EXTERNAL TABLE '<directory>' INSERT_ONLY = TRUE gives the rows of its new files.",
            )
        return source

    def _alter_to(self, create: CreateStream, existing: Stream) -> DataFrame:
        """CREATE OR ALTER: the comment may be another one, nothing else (R4)."""
        named = self._source_of(create) == existing.source.name
        same = named or (
            existing.view is None
            and self._context.tables.reference(self._source_of(create)).table_id == existing.source.table_id
        )
        if not same or create.mode is not existing.mode or create.point is not None or create.show_initial_rows:
            problem = f"CREATE OR ALTER changes only the COMMENT; type, source and place of {existing.name} stay"
            raise compilation_error(self._text, create.name.span, problem)
        self._lake.alter_stream(existing.name, comment=create.comment)
        return self._status("Statement executed successfully.", *create.notices)

    def _clone(self, clone: CloneStream) -> DataFrame:
        name = clone.name.text
        if clone.if_not_exists and self._find(name) is not None:
            return self._status(f"{name} already exists, statement succeeded.", *clone.notices)
        source = get_stream(self._context.store, clone.source.text)
        with worded(self._text, clone.source, clone.point):
            self._lake.clone_stream(
                source.name,
                name,
                or_replace=clone.or_replace,
                **start_of(self._context, self._text, source.source, clone.point),
            )
        return self._status(f"Stream {name} successfully created.", *clone.notices)

    def _alter(self, alter: AlterStream) -> DataFrame:
        if not (alter.if_exists and self._find(alter.name.text) is None):
            self._lake.alter_stream(alter.name.text, comment=alter.comment)
        return self._status("Statement executed successfully.")

    def _drop(self, drop: DropStream) -> DataFrame:
        name = drop.name.text
        if drop.if_exists and self._find(name) is None:
            return self._status(f"Drop statement executed successfully ({name} already dropped).")
        self._lake.drop_stream(name)
        return self._status(f"{name} successfully dropped.")

    def _refresh(self, refresh: RefreshExternalTable) -> DataFrame:
        name = external_table_name(refresh.name)
        if refresh.if_exists and not is_external_table(self._context, name):
            return self._status("Statement executed successfully.")
        with worded(self._text, refresh.name):
            done = self._lake.external_tables.refresh(name)
        found = f"{done.added} added, {done.overwritten} overwritten, {done.removed} removed"
        return self._status(f"External table {name} refreshed: {found}.")

    def _show(self, show: ShowStreams) -> DataFrame:
        found = self._lake.show_streams(
            like=show.like,
            database=show.database,
            schema=show.schema,
            starts_with=show.starts_with,
            limit=show.limit,
            from_name=show.from_name,
        )
        answer = terse_answer if show.terse else show_answer
        return answer(self._context.spark, found)

    def _find(self, name: str) -> Stream | None:
        try:
            return get_stream(self._context.store, name)
        except StreamNotFound:
            return None

    def _status(self, status: str, *notices: str) -> DataFrame:
        return status_answer(self._context.spark, status, notices)


def _zone(context: ClientContext) -> tzinfo:
    """The zone of the session; UTC where Spark's name for it is one that Python does not know."""
    name = str(context.spark.conf.get("spark.sql.session.timeZone"))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        pass
    try:
        return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC
    except ValueError:
        return UTC
