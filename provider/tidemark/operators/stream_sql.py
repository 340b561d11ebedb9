"""One statement about streams, in the SQL of the source system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument, StatementRefused
from tidemark.operators._announce import announce, default_outlets, taken_over, tell_lag
from tidemark.operators._base import (
    LineageMixin,
    failures_counted,
    flag_of,
    key_of,
    owner_of,
)
from tidemark.operators._bounds import bound_of, bounds_given
from tidemark.operators._constants import check_bounds, check_constants, is_constant
from tidemark.operators._created import creation_of, left_as_it_is
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._plans import WriteRequest, filling, names_of, planned_writes
from tidemark.operators._reads_of_views import over_views
from tidemark.operators._view_desk import desk_of
from tidemark.operators._views import outlets_of, query_of, tell_refreshed
from tidemark.sql.alike import alike

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

    from tidemark.change_streams.planning.sql.statements import ChangeStreamStatement
    from tidemark.materialized.worker.statements import ViewDefinition
    from tidemark.model.statements import TransactionKey
    from tidemark.operators._base import Lineage
    from tidemark.sql.statements import ParsedStatement
    from tidemark.streams.planning.bounds import Bound
    from tidemark.streams.planning.stream_sql.statements import StreamStatement
    from tidemark.streams.worker.outcomes import Consumed
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["StreamSQLOperator"]

INSTEAD = (
    "it reads no stream. {meant}Use SparkSqlOperator for statements of Spark's own. StreamSQLOperator runs CREATE,"
    " ALTER and DROP of streams and views, the system functions of streams, and writes that read a stream"
)

_SHOWN_ELSEWHERE = "nobody sees what it shows; use `airflow tidemark {} list`, the page Tidemark, or lake.sql"


class StreamSQLOperator(LineageMixin, DeferrableOperator):
    """Runs one statement: CREATE, ALTER or DROP; SELECT of system functions; or a write that reads a stream.

    The first are those of a STREAM, a CHANGE STREAM, a MATERIALIZED VIEW or a DYNAMIC TABLE. Streams and system
    functions need no JVM. They answer with rows: `[{"status": …}]`, or those of the query. A write is a consumption as
    by ConsumeStreamOperator. The run owns its window, each change arrives once, and an empty window starts no Spark.
    The answer is the delivery. CREATE TABLE … AS SELECT is a write, too, into a table that it creates. Views are
    created and refreshed as by CreateMaterializedViewOperator and RefreshViewOperator. A retry or a clear keeps what
    this run has created, also by OR REPLACE. A job turns on row tracking if it is off (R3). Of a change stream say IF
    NOT EXISTS and IF EXISTS, so that a retry succeeds. Anything else is refused, with what to use instead. Raises
    SqlCompilationError with the place in the text, and for change streams what CreateChangeStreamOperator raises.

    :param sql: the statement, or the name of a file that ends in `.sql`. (templated)
    :param stream: the streams that a write reads, so that their assets are the task's outlets; may be left out.
        (templated)
    :param max_commits: a write takes at most this many versions of each source. (templated)
    :param max_rows: a write's window ends before the commit that would exceed this many changes; one commit is taken at
        least. (templated)
    :param max_bytes: a write's window ends before the commit whose files would exceed this many bytes; one commit is
        taken at least. (templated)
    :param until: a write takes nothing that was committed after this time, which has a zone. (templated)
    :param skip_when_empty: a write ends as skipped, without an asset event, when nothing is new. (templated)
    """

    template_fields: Sequence[str] = (
        "sql",
        "stream",
        "max_commits",
        "max_rows",
        "max_bytes",
        "until",
        "skip_when_empty",
        "conn_id",
    )
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        sql: str,
        stream: str | Sequence[str] = (),
        max_commits: int | str | None = None,
        max_rows: int | str | None = None,
        max_bytes: int | str | None = None,
        until: datetime | str | None = None,
        skip_when_empty: bool | str = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", default_outlets(stream) or _refreshed_by(sql))
        super().__init__(**kwargs)
        self.sql = sql
        self.stream = stream
        self.max_commits = max_commits
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.until = until
        self.skip_when_empty = skip_when_empty
        check_constants(self, sql=_statement_of, stream=names_of, skip_when_empty=flag_of)
        check_bounds(self)

    @failures_counted("stream")
    def execute(self, context: Context) -> Any:
        """Rows as a list of dictionaries, or the window that was delivered."""
        from tidemark.change_streams.planning.sql.statements import ChangeStreamStatement
        from tidemark.materialized.worker.statements import ViewDefinition
        from tidemark.sql.statements import ParsedStatement
        from tidemark.streams.planning.stream_sql.statements import StreamQuery
        from tidemark.streams.worker.queries import answer_query

        statement = _statement_of("sql", self.sql)
        if isinstance(statement, ChangeStreamStatement):
            return self._define_change_stream(context, statement)
        if isinstance(statement, ParsedStatement):
            return self._write(context, statement)
        if isinstance(statement, ViewDefinition):
            return self._define_view(context, statement)
        if isinstance(statement, StreamQuery):
            return answer_query(self.hook.open_store(), statement, tables=self.hook.open_table)
        return self._define_stream(context, statement)

    def planned_lineage(self) -> Lineage | None:
        """The streams' sources and the target of a write; None for anything else."""
        from tidemark.lineage.facets import lineage_of_plan
        from tidemark.sql.statements import ParsedStatement

        statement = _statement_of("sql", self.sql)
        if not isinstance(statement, ParsedStatement):
            return None
        request = self._request(statement)
        return lineage_of_plan(self.hook.open_store(), request.streams, planned_writes(request, self.known_uri))

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The windows and what they became; None where the statement wrote nothing."""
        from tidemark.lineage.facets import lineage_of_transaction
        from tidemark.lineage.refreshes import lineage_of_refreshes
        from tidemark.materialized.worker.statements import ViewDefinition

        hook, key = self.hook, key_of_task(None)
        if isinstance(_statement_of("sql", self.sql), ViewDefinition):
            return lineage_of_refreshes(hook.open_store(), str(key), key, hook.open_table)
        return lineage_of_transaction(hook.open_store(), key, slice(None), hook.open_table)

    def _define_stream(self, context: Context, statement: StreamStatement) -> list[dict[str, str]]:
        from tidemark.hooks.stream_sources import kind_of, stream_sources
        from tidemark.model.external_tables import ExternalTableRequest
        from tidemark.operators._jobs import refresh_external_table
        from tidemark.streams.worker.statements import Definition, Desk, run_statement

        if not isinstance(statement, Definition):
            raise StatementRefused(problem=_why_not(statement), sql=self.sql)
        hook, key = self.hook, key_of(context)
        store = hook.open_store()
        turn_on = partial(self.turn_on_row_tracking, context)
        desk = Desk(
            store=store,
            sources=stream_sources(hook, self.runtime, key=key, turn_on=turn_on),
            who=str(key),
            kind_of=partial(kind_of, hook, store),
            refresh=lambda name: refresh_external_table(self.runtime(), ExternalTableRequest(name), key=key),
            once=True,
        )
        status = " ".join(run_statement(desk, statement, self.sql))
        self.log.info("%s", status)
        return [{"status": status}]

    def _define_change_stream(self, context: Context, statement: ChangeStreamStatement) -> list[dict[str, str]]:
        from tidemark.change_streams.worker.statements import run_statement
        from tidemark.hooks.lake_tables import lake_tables_of
        from tidemark.lake.log_paths import logs_root

        hook = self.hook
        status = run_statement(
            hook.open_store(),
            statement,
            tables=replace(
                lake_tables_of(hook, partial(self.table_by_name, context)),
                turn_on=partial(self.turn_on_row_tracking, context),
            ),
            logs=logs_root(hook.settings.workspace),
            storage_options=hook.settings.storage_options,
        )
        self.log.info("%s", status)
        return [{"status": status}]

    def _define_view(self, context: Context, statement: ViewDefinition) -> list[dict[str, str]]:
        from tidemark.materialized.worker.statements import run_statement

        answer = run_statement(desk_of(self, context, self.runtime, tracked=True, once=True), statement)
        tell_refreshed(context, self, answer.refreshed)
        status = " ".join((answer.status, *answer.notices))
        self.log.info("%s", status)
        return [{"status": status}]

    def _write(self, context: Context, statement: ParsedStatement) -> dict[str, Any] | list[dict[str, Any]]:
        from tidemark.streams.model.transaction_jobs import WRITE

        hook, bound = self.hook, bound_of(**bounds_given(self))
        asked = self._request(statement)
        creation = creation_of(replace(asked, sql=self.sql))
        runtime = self.runtime(functions=True, leaves=(WRITE,))
        if creation is None:
            consumed = self._consumed(context, runtime, asked, bound)
        elif (filled := creation.run(self, context, runtime, bound)) is not None:
            consumed = filled
        else:
            return [left_as_it_is(self, creation.table)]
        if not consumed.delivered_before:
            tell_lag(hook, consumed.result)
        return announce(
            context,
            self,
            consumed.result,
            finished=taken_over(runtime.store, consumed.result),
            fresh=not consumed.delivered_before,
            skip_when_empty=flag_of("skip_when_empty", self.skip_when_empty),
        )

    def _consumed(self, context: Context, runtime: Runtime, asked: WriteRequest, bound: Bound) -> Consumed:
        from tidemark.streams.worker.consume import consume

        request = over_views(self.hook, asked)
        return consume(
            runtime,
            key=key_of(context),
            streams=request.streams,
            writes=planned_writes(request, partial(self.table_uri, context)),
            owner=owner_of(context),
            bound=bound,
        )

    def _request(self, parsed: ParsedStatement) -> WriteRequest:
        """The write, with the streams that it reads. Raises StreamNotFound, StatementRefused, InvalidArgument."""
        from tidemark.streams.worker.streams import get_stream, list_streams

        store, named = self.hook.open_store(), names_of("stream", self.stream)
        known = {stream.name.casefold(): stream.name for stream in list_streams(store)}
        for name in named:
            if name.casefold() not in known:
                get_stream(store, name)  # says which streams have a similar name
        target = None if parsed.target is None else parsed.target.name
        read = tuple(known[n.casefold()] for n in parsed.names if n.casefold() in known and n != target)
        if not read:
            raise StatementRefused(problem=_no_stream_in(parsed.names, known.values()), sql=self.sql)
        if named and {name.casefold() for name in named} != {name.casefold() for name in read}:
            raise InvalidArgument(argument="stream", value=list(named), problem=f"the statement reads {list(read)}")
        return WriteRequest(streams=read, targets=(), write_as="sql", sql=filling(self.sql))


def _no_stream_in(names: Sequence[str], streams: Iterable[str]) -> str:
    """The reason, with up to three streams whose names are similar to one of the tables."""
    close = list(dict.fromkeys(one for name in names for one in alike(name, streams)))[:3]
    return INSTEAD.format(meant=f"Did you mean {' or '.join(map(repr, close))}? " if close else "")


def _why_not(statement: StreamStatement) -> str:
    from tidemark.streams.planning.stream_sql.statements import SetVariable

    if isinstance(statement, SetVariable):
        return "a task has one statement; give the point itself, or a template of the DAG's"
    return _SHOWN_ELSEWHERE.format("streams")


def _refreshed_by(sql: object) -> list[Asset]:
    """The asset of a view that a statement creates or refreshes, if its text is written out."""
    if not isinstance(sql, str) or not is_constant(sql, StreamSQLOperator.template_ext):
        return []
    from tidemark.materialized.planning.sql import parse_view_sql
    from tidemark.materialized.planning.statements import CreateView, RefreshView

    statement = parse_view_sql(sql)
    return outlets_of(statement.name) if isinstance(statement, CreateView | RefreshView) else []


def _view_statement_of(argument: str, sql: str) -> ViewDefinition | None:
    """The statement, if it is one of views that a task can run. Raises SqlCompilationError, StatementRefused,
    InvalidArgument.
    """
    from tidemark.materialized.planning.sql import parse_view_sql
    from tidemark.materialized.planning.statements import CreateView, DescribeView, ShowViews

    statement = parse_view_sql(sql)
    if isinstance(statement, ShowViews | DescribeView):
        raise StatementRefused(problem=_SHOWN_ELSEWHERE.format("views"), sql=sql)
    if isinstance(statement, CreateView):
        query_of(argument, statement.text)
    return statement


def _statement_of(
    argument: str, sql: str
) -> ChangeStreamStatement | StreamStatement | ViewDefinition | ParsedStatement:
    """The parsed text: a definition, a query, or a write. Raises SqlCompilationError, StatementRefused,
    InvalidArgument.
    """
    from tidemark.change_streams.planning.sql.parse import parse_change_stream_sql
    from tidemark.sql.statements import parse_write
    from tidemark.streams.planning.stream_sql.parse import parse_stream_sql

    if not isinstance(sql, str) or not sql.strip():
        raise InvalidArgument(argument=argument, value=sql, problem="give one statement")
    of_views = _view_statement_of(argument, sql)
    if of_views is not None:
        return of_views
    definition = parse_change_stream_sql(sql) or parse_stream_sql(sql, now=datetime.now(UTC))
    if definition is not None:
        return definition
    try:
        return parse_write(filling(sql))
    except StatementRefused as error:
        problem = f"{error.facts['problem']}; in a task, use a write that reads a stream, else lake.sql in a @task"
        raise StatementRefused(problem=problem, sql=sql) from error
