"""CREATE TABLE … AS SELECT … FROM a stream in a task: a table, and the INSERT that fills it once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tidemark.operators._base import key_of, owner_of
from tidemark.operators._jobs import create_table
from tidemark.operators._plans import INTO, WriteRequest, created_table_of, insert_of, parsed_sql, planned_writes
from tidemark.operators._reads_of_views import over_views

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.lake.delta_log import DeltaLog
    from tidemark.model.statements import PlannedWrite
    from tidemark.operators._spark import SparkOperator
    from tidemark.streams.planning.bounds import Bound
    from tidemark.streams.planning.stream_sql.tables import CreatedTable
    from tidemark.streams.worker.outcomes import Consumed
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["Creation", "creation_of", "left_as_it_is"]


def creation_of(request: WriteRequest) -> Creation | None:
    """The creation that the statement of the request asks for; None for other writes. Raises as `filling`."""
    table = created_table_of(request.sql)
    if table is None or request.sql is None:
        return None
    return Creation(request.sql, table, replace(request, sql=insert_of(table)))


def left_as_it_is(operator: SparkOperator, table: CreatedTable) -> dict[str, Any]:
    """The answer of a task that found its table; without outlets, since a success with outlets would be an event."""
    operator.outlets = []
    status = f"Table {table.name.text} already exists, statement succeeded."
    operator.log.info("%s", status)
    return {"status": status}


@dataclass(frozen=True)
class Creation:
    """`text`: the statement; `request`: the INSERT in its place."""

    text: str
    table: CreatedTable
    request: WriteRequest

    def planned(self, operator: SparkOperator, context: Context) -> tuple[PlannedWrite, ...]:
        """The INSERT, whether or not its table exists. Raises what `planned_writes` raises."""
        request = over_views(operator.hook, self.request)
        named = (self.name, *request.targets)

        def uri(name: str) -> str:
            there = operator.hook.place_of(name) or name
            return there if name in named else operator.table_uri(context, name)

        return planned_writes(request, uri)

    @cached_property
    def name(self) -> str:
        """The table's."""
        target = parsed_sql(self.request, self.request.streams).target
        assert target is not None  # an INSERT has one
        return target.name

    def run(self, operator: SparkOperator, context: Context, runtime: Runtime, bound: Bound) -> Consumed | None:
        """Create the table, and deliver into it; None if it exists, and the text has IF NOT EXISTS: no stream moves.

        Raises SqlCompilationError for a table that exists otherwise, and what a creation and a consumption raise.
        """
        from tidemark.streams.planning.stream_sql.tables import already_exists
        from tidemark.streams.worker.created_tables import CreatingRun, create_and_consume

        def opened() -> DeltaLog:
            return runtime.tables(operator.table_uri(context, self.name))

        def writes() -> tuple[PlannedWrite, ...]:
            request = over_views(operator.hook, self.request)
            return planned_writes(request, partial(operator.table_uri, context))

        consumed = create_and_consume(
            runtime,
            CreatingRun(self.table, opened, partial(self._create, operator, context, runtime), writes),
            key=key_of(context),
            streams=self.request.streams,
            owner=owner_of(context),
            bound=bound,
        )
        if consumed is None and not self.table.if_not_exists:
            raise already_exists(self.text, self.table)
        return consumed

    def _create(self, operator: SparkOperator, context: Context, runtime: Runtime) -> None:
        from tidemark.sql.names import sql_name
        from tidemark.streams.planning.stream_sql.tables import head_at

        place = operator.hook.place_of(self.name)
        head = self.table.head if place is None else head_at(self.table, place)
        (write,) = self.planned(operator, context)
        query = (write.sql or "").removeprefix(INTO.format(sql_name(self.table.name)))
        create_table(runtime, write, head, query, streams=self.request.streams, key=key_of(context))
