"""The autocommit form: one task takes a stream's window, writes it, and moves the offset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tidemark.model.statements import WriteAs
from tidemark.operators._announce import announce, default_outlets, taken_over, tell_lag
from tidemark.operators._base import (
    LineageMixin,
    failures_counted,
    flag_of,
    key_of,
    owner_of,
)
from tidemark.operators._bounds import bound_of, bounds_given
from tidemark.operators._constants import check_bounds, check_constants, check_targets
from tidemark.operators._created import Creation, creation_of, left_as_it_is
from tidemark.operators._deferring import DeferrableOperator
from tidemark.operators._jobs import create_quarantine, explain
from tidemark.operators._plans import (
    TableUri,
    WriteRequest,
    planned_writes,
    require_all_read,
    streams_of,
    write_requests,
)
from tidemark.operators._reads_of_views import over_views

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import Context

    from tidemark.model.statements import PlannedWrite, TransactionKey
    from tidemark.operators._base import Lineage
    from tidemark.streams.planning.bounds import Bound
    from tidemark.streams.worker.outcomes import Consumed
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["ConsumeStreamOperator"]


class ConsumeStreamOperator(LineageMixin, DeferrableOperator):
    """Delivers what is new in a stream to its target, or to several, exactly once.

    The run owns its window: a retry continues where the last attempt stopped. A retry or a clear after the commit
    delivers nothing and announces the stored result again. An empty window commits without a Spark job. Every outlet's
    event carries {stream, from, to, initial_rows, rows, quarantined, serial, lag, committed_at}, which is also the
    return value.

    :param stream: the stream; several for `sql` and functions. (templated)
    :param target: the table that is written: a path, `schema.table` or `catalog.schema.table`. A function may have
        several, and `sql` none. (templated)
    :param write_as: `append`, `merge`, `sql`, or a function as `package.module:function`; see "One target: one task".
        (templated)
    :param keys: key columns of a merge, one name or several; only for a merge, and needed there. (templated)
    :param sql: an INSERT, MERGE, UPDATE or DELETE that names the stream like a table, or CREATE TABLE … AS SELECT. A
        text that ends in `.sql` is the name of a file. (templated)
    :param tables: further tables that a function reads. (templated)
    :param schema_evolution: `fail`, or `add` the columns that the target lacks. (templated)
    :param quarantine: the table for rows of an append or merge that break a constraint of the target. It is created if
        it does not exist; see "Quarantine bad rows". (templated)
    :param targets: several targets that one Spark job writes, in place of the arguments above. Each is a dictionary of
        those: `target`, `write_as`, `keys`, `sql`, `tables`, `schema_evolution`, `quarantine`, and `stream` if it reads
        only one of several. (templated)
    :param max_commits: take at most this many versions of each source. (templated)
    :param max_rows: end the window before the commit that would exceed this many changes, as the log estimates them.
        The window has one commit at least. (templated)
    :param max_bytes: end the window before the commit whose files would exceed this many bytes. A long backlog then
        comes in slices, of one commit at least. (templated)
    :param until: take nothing that was committed after this time, which has a zone. (templated)
    :param dry_run: report what would be read, and change nothing. (templated)
    :param skip_when_empty: end as skipped, without an asset event, when nothing is new. (templated)
    """

    template_fields: Sequence[str] = (
        "stream", "target", "write_as", "keys", "sql", "tables", "schema_evolution", "quarantine", "targets",
        "max_commits", "max_rows", "max_bytes", "until", "only_plan", "skip_when_empty", "conn_id",
    )  # fmt: skip
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        stream: str | Sequence[str],
        write_as: str | None = None,
        target: str | Sequence[str] | None = None,
        keys: str | Sequence[str] = (),
        sql: str | None = None,
        tables: str | Sequence[str] = (),
        schema_evolution: str = "fail",
        quarantine: str | None = None,
        targets: Sequence[Mapping[str, Any]] | None = None,
        max_commits: int | str | None = None,
        max_rows: int | str | None = None,
        max_bytes: int | str | None = None,
        until: datetime | str | None = None,
        dry_run: bool | str = False,
        skip_when_empty: bool | str = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", default_outlets(stream))
        super().__init__(**kwargs)
        self.stream = stream
        self.target = target
        self.write_as = write_as
        self.keys = keys
        self.sql = sql
        self.tables = tables
        self.schema_evolution = schema_evolution
        self.quarantine = quarantine
        self.targets = targets
        self.max_commits = max_commits
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.until = until
        self.only_plan = dry_run  # BaseOperator.dry_run is a method
        self.skip_when_empty = skip_when_empty
        check_targets(self)
        check_bounds(self)
        check_constants(self, only_plan=lambda _, value: flag_of("dry_run", value), skip_when_empty=flag_of)

    @failures_counted("stream")
    def execute(self, context: Context) -> dict[str, Any]:
        """The window that was delivered; for a dry run what would be read."""
        from tidemark.streams.model.transaction_jobs import WRITE

        hook, uri = self.hook, cache(partial(self.table_uri, context))
        creation = self._creation()
        if creation is None:
            given = write_requests(vars(self))
            require_all_read(given, streams_of(given))
            requests = [over_views(hook, request) for request in given]
            for request in requests:
                planned_writes(replace(request, quarantine=None), uri)  # refuses, before a table is made
        else:
            requests = [creation.request]
            creation.planned(self, context)
        runtime = self.runtime(functions=True, leaves=(WRITE,))
        bound = bound_of(**bounds_given(self))
        if flag_of("dry_run", self.only_plan):
            return self._explained(runtime, requests, bound, context)
        if creation is None:
            consumed = self._consumed(runtime, requests, bound, context, uri)
        elif (filled := creation.run(self, context, runtime, bound)) is not None:
            consumed = filled
        else:
            return left_as_it_is(self, creation.table)
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

    def _creation(self) -> Creation | None:
        """The creation of the table, if the statement is CREATE TABLE … AS SELECT."""
        if self.targets is not None or self.write_as != WriteAs.SQL:
            return None
        return creation_of(WriteRequest.parse(vars(self)))

    def _consumed(
        self, runtime: Runtime, requests: Sequence[WriteRequest], bound: Bound, context: Context, uri: TableUri
    ) -> Consumed:
        from tidemark.streams.worker.consume import consume

        return consume(
            runtime,
            key=key_of(context),
            streams=streams_of(requests),
            writes=self._writes(runtime, requests, bound, context, uri),
            owner=owner_of(context),
            bound=bound,
        )

    def _explained(
        self, runtime: Runtime, requests: Sequence[WriteRequest], bound: Bound, context: Context
    ) -> dict[str, Any]:
        self.outlets = []  # a success with outlets would be an event
        told = explain(runtime, streams_of(requests), key=key_of(context), bound=bound)
        quarantines = [request.quarantine for request in requests if request.quarantine is not None]
        return {**told, "quarantine": ", ".join(quarantines)} if quarantines else told

    def _writes(
        self, runtime: Runtime, requests: Sequence[WriteRequest], bound: Bound, context: Context, uri: TableUri
    ) -> list[PlannedWrite]:
        """The planned writes. A quarantine that does not exist is created, once all columns are known to fit."""
        from tidemark.streams.worker.fitting import require_columns_of_writes

        streams, hook = streams_of(requests), self.hook
        for request in requests:
            create_quarantine(
                runtime,
                hook,
                request,
                uri,
                key=key_of(context),
                check=lambda writes: require_columns_of_writes(runtime, streams, writes, bound),
            )
        return [write for request in requests for write in planned_writes(request, uri)]

    def planned_lineage(self) -> Lineage | None:
        """The streams' sources and the targets; None for a dry run, which touches nothing."""
        from tidemark.lineage.facets import lineage_of_plan

        if flag_of("dry_run", self.only_plan):
            return None
        hook, creation = self.hook, self._creation()
        requests = write_requests(vars(self)) if creation is None else (creation.request,)
        writes = [write for request in requests for write in planned_writes(request, self.known_uri)]
        return lineage_of_plan(hook.open_store(), streams_of(requests), writes)

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The windows and what they became."""
        from tidemark.lineage.facets import lineage_of_transaction

        if flag_of("dry_run", self.only_plan):
            return None
        hook = self.hook
        return lineage_of_transaction(hook.open_store(), key_of_task(None), slice(None), hook.open_table)
