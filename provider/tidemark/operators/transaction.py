"""The explicit form: begin, any number of writing tasks, commit, rollback. `stream_transaction` puts them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark import metrics
from tidemark.delivery.model.transactions import QUARANTINED
from tidemark.errors import InvalidArgument, PlanChanged, TransactionNotFound
from tidemark.operators._announce import announce, default_outlets, taken_over, tell_lag, warn_of_quarantine
from tidemark.operators._base import (
    LineageMixin,
    TidemarkOperator,
    failures_counted,
    flag_of,
    key_of,
    owner_of,
)
from tidemark.operators._bounds import bound_of, bounds_given
from tidemark.operators._constants import check_bounds, check_constants, check_write, check_writes
from tidemark.operators._jobs import create_quarantine
from tidemark.operators._plans import WriteRequest, names_of, planned_writes, require_all_read
from tidemark.operators._reads_of_views import over_views
from tidemark.operators._spark import SparkOperator
from tidemark.streams.planning.plan_differences import differences

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import Context

    from tidemark.control.store import ControlStore
    from tidemark.delivery.model.transactions import Transaction
    from tidemark.model.statements import PlannedWrite, TransactionKey
    from tidemark.operators._base import Lineage

__all__ = [
    "BeginTransactionOperator",
    "CommitTransactionOperator",
    "RollbackTransactionOperator",
    "WriteStreamOperator",
]


class BeginTransactionOperator(SparkOperator):
    """Pins the windows of the streams and writes the whole plan ahead (PROTOCOL steps 1 to 7).

    A second run finds the same windows and plan. Windows without a change commit here, without a job: the writers then
    have nothing to do, and commit announces it.

    :param transaction: the name of the transaction within its run: the id of the group. (templated)
    :param streams: the streams that are consumed together, one name or several; the first is the lead. (templated)
    :param writes: the arguments of every writing task, in the order of the DAG file. (templated)
    :param max_commits: take at most this many versions of each source. (templated)
    :param max_rows: end the window before the commit that would exceed this many changes, as the log estimates them.
        The window has one commit at least. (templated)
    :param max_bytes: end the window before the commit whose files would exceed this many bytes. A long backlog then
        comes in slices, of one commit at least. (templated)
    :param until: take nothing that was committed after this time, which has a zone. (templated)
    """

    template_fields: Sequence[str] = (
        "transaction",
        "streams",
        "writes",
        "max_commits",
        "max_rows",
        "max_bytes",
        "until",
        "conn_id",
    )
    template_ext: Sequence[str] = (".sql",)  # as the writers, whose statements are in `writes`

    def __init__(
        self,
        *,
        transaction: str,
        streams: str | Sequence[str],
        writes: Sequence[Mapping[str, Any]] = (),
        max_commits: int | str | None = None,
        max_rows: int | str | None = None,
        max_bytes: int | str | None = None,
        until: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.transaction = transaction
        self.streams = streams
        self.writes = writes
        self.targets_when_parsed: Sequence[int] = ()  # of each write; given by the group
        self.max_commits = max_commits
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.until = until
        check_bounds(self)
        check_constants(self, streams=names_of, writes=check_writes)

    @failures_counted("streams")
    def execute(self, context: Context) -> list[dict[str, Any]]:
        """The pinned windows: [{stream, from, to, initial_rows, versions, files, estimated_rows}]; the last three as
        the logs estimate them.
        """
        from tidemark.streams.worker.begin import begin
        from tidemark.streams.worker.fitting import require_columns_of_writes
        from tidemark.streams.worker.outcomes import Delivered
        from tidemark.streams.worker.pinned import facts_of_delivered, facts_of_pinned, tell_pinned

        hook, uri = self.hook, partial(self.table_uri, context)
        runtime = self.runtime(functions=True)
        streams = names_of("streams", self.streams)
        bound = bound_of(**bounds_given(self))
        check = partial(require_columns_of_writes, runtime, streams, bound=bound)
        requests = self._requests(streams)
        for request in requests:
            create_quarantine(runtime, hook, request, uri, key=key_of(context, self.transaction), check=check)
        begun = begin(
            runtime,
            key=key_of(context, self.transaction),
            streams=streams,
            writes=[write for request in requests for write in planned_writes(request, uri)],
            owner=owner_of(context),
            bound=bound,
        )
        if begun.finished:
            self.log.warning("Finished %s transactions whose lease had run out.", len(begun.finished))
        metrics.taken_over(begun.finished)
        if isinstance(begun, Delivered):
            if begun.fresh:  # nothing to deliver: commit only announces it
                metrics.delivered(begun.result)
            return [facts_of_delivered(window) for window in begun.result.windows]
        pinned = tell_pinned(begun.transaction, hook.open_table)
        if runtime.sizing is not None:
            runtime.sizing.tell(begun.transaction.windows, hook.open_table)
        return [facts_of_pinned(one) for one in pinned]

    def _requests(self, streams: Sequence[str]) -> list[WriteRequest]:
        given = [WriteRequest.parse(one) for one in self.writes]
        for one, request in zip(self.writes, given, strict=True):
            if one.get("quarantine") is not None and request.quarantine is None:
                problem = "in a group it must be a name: the number of statements is settled when the DAG is parsed"
                raise InvalidArgument(argument="quarantine", value=one["quarantine"], problem=problem)
        for count, request in zip(self.targets_when_parsed, given, strict=False):
            if count != (len(request.targets) or 1):
                problem = f"in a group their number is settled when the DAG is parsed, and {count} was seen then"
                raise InvalidArgument(argument="target", value=list(request.targets), problem=problem)
        require_all_read(given, streams)
        return [over_views(self.hook, request) for request in given]


class WriteStreamOperator(LineageMixin, SparkOperator):
    """One writing task inside a `stream_transaction`: runs its own statements of the plan, each exactly once.

    A second run finds what is written and does not write again. The offset moves only with the group's commit.

    :param target: the table that is written: a path, `schema.table` or `catalog.schema.table`. A function may have
        several, and `sql` none. (templated)
    :param write_as: `append`, `merge`, `sql`, or a function as `package.module:function`; see "One target: one task".
        (templated)
    :param stream: the stream, one of the group's; None: all of them. (templated)
    :param keys: key columns of a merge, one name or several; only for a merge, and needed there. (templated)
    :param sql: an INSERT, MERGE, UPDATE or DELETE that names the group's streams like tables. A text that ends in
        `.sql` is the name of a file. (templated)
    :param tables: further tables that a function reads. (templated)
    :param schema_evolution: `fail`, or `add` the columns that the target lacks. (templated)
    :param quarantine: the table for rows of an append or merge that break a constraint of the target. It is created if
        it does not exist; see "Quarantine bad rows". (templated)
    """

    template_fields: Sequence[str] = (
        "stream", "target", "write_as", "keys", "sql", "tables", "schema_evolution", "quarantine", "transaction",
        "conn_id",
    )  # fmt: skip
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        write_as: str,
        target: str | Sequence[str] | None = None,
        stream: str | Sequence[str] | None = None,
        keys: str | Sequence[str] = (),
        sql: str | None = None,
        tables: str | Sequence[str] = (),
        schema_evolution: str = "fail",
        quarantine: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.target = target
        self.write_as = write_as
        self.keys = keys
        self.sql = sql
        self.tables = tables
        self.schema_evolution = schema_evolution
        self.quarantine = quarantine
        self.transaction: str | None = None  # given by the group that closes around the task
        self.first_statement = 0
        check_write(self)

    @property
    def request(self) -> dict[str, Any]:
        """The arguments that go into the plan, by name, as they are written in the DAG."""
        names = ("stream", "target", "write_as", "keys", "sql", "tables", "schema_evolution", "quarantine")
        return {name: getattr(self, name) for name in names}

    @failures_counted("stream")
    def execute(self, context: Context) -> dict[str, Any]:
        """Rows written by target: {target: {inserted, updated, deleted}}; {} where there was nothing to deliver."""
        from tidemark.streams.worker.submit import submit

        found = self._transaction(context)
        if found.result is not None:
            self.log.info("Transaction %s is delivered; there is nothing to write.", found.key)
            return {}
        request = over_views(self.hook, WriteRequest.parse(self.request))
        writes = planned_writes(request, partial(self.table_uri, context))
        numbers = _numbers(found, self.first_statement, writes)
        evidence = submit(self.runtime(functions=True), found, only=numbers)
        targets = {statement.number: statement.target.name for statement in found.plan.statements}
        for one in evidence:
            warn_of_quarantine(one.rows.get(QUARANTINED, 0), targets[one.number])
        return {targets[one.number]: dict(one.rows) for one in evidence}

    def planned_lineage(self) -> Lineage | None:
        """The streams' sources and the task's own targets."""
        from tidemark.lineage.facets import lineage_of_plan

        request, hook = WriteRequest.parse(self.request), self.hook
        return lineage_of_plan(hook.open_store(), request.streams, planned_writes(request, self.known_uri))

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The windows that its statements read, and what they became; commit and begin tell nothing a second time."""
        from tidemark.lineage.facets import lineage_of_transaction

        hook = self.hook
        count = len(planned_writes(WriteRequest.parse(self.request), self.known_uri))
        own = slice(self.first_statement, self.first_statement + count)
        return lineage_of_transaction(hook.open_store(), key_of_task(self.transaction), own, hook.open_table)

    def _transaction(self, context: Context) -> Transaction:
        from tidemark.streams.worker.begin import get_transaction

        if self.transaction is None:
            raise InvalidArgument(
                argument="task", value=self.task_id, problem="a WriteStreamOperator belongs into a stream_transaction"
            )
        return get_transaction(self.hook.open_store(), key_of(context, self.transaction))


class CommitTransactionOperator(TidemarkOperator):
    """Moves all offsets at once, with evidence for every statement, then announces it (PROTOCOL step 15).

    A second run finds the stored result and announces it again.

    :param transaction: the name of the transaction, as BeginTransactionOperator has it. (templated)
    :param streams: the streams, for the default outlets; not a template, since assets must be known when the file is
        parsed.
    :param skip_when_empty: end as skipped, without an asset event, when nothing is new. (templated)
    """

    template_fields: Sequence[str] = ("transaction", "skip_when_empty", "conn_id")

    def __init__(
        self,
        *,
        transaction: str,
        streams: str | Sequence[str] = (),
        skip_when_empty: bool | str = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", default_outlets(streams))
        super().__init__(**kwargs)
        self.transaction = transaction
        self.streams = streams
        self.skip_when_empty = skip_when_empty
        check_constants(self, skip_when_empty=flag_of)

    @failures_counted("streams")
    def execute(self, context: Context) -> dict[str, Any]:
        """The windows that were delivered, as ConsumeStreamOperator returns them."""
        from tidemark.streams.worker.begin import get_transaction
        from tidemark.streams.worker.commit import commit

        hook = self.hook
        store = hook.open_store()
        key = key_of(context, self.transaction)
        delivered = get_transaction(store, key).result  # at begin, by an earlier attempt, or by whoever took it over
        result = delivered or commit(store, key, tables=hook.open_table)
        if delivered is None:
            metrics.delivered(result)
            tell_lag(hook, result)
        return announce(
            context,
            self,
            result,
            finished=taken_over(store, result),
            fresh=False,
            skip_when_empty=flag_of("skip_when_empty", self.skip_when_empty),
            found_now=context["ti"].try_number <= 1,  # begin found nothing new, just before
        )


class RollbackTransactionOperator(TidemarkOperator):
    """Releases the pinned windows of a transaction (PROTOCOL step 17); does nothing once the transaction is committed.

    No offset moves. If no target has rows of the windows, they are free, and a corrected group starts again. A window
    that is written, or may be, stays pinned. The next transaction finishes it, so nothing is delivered twice.

    :param transaction: the name of the transaction, as BeginTransactionOperator has it. (templated)
    """

    template_fields: Sequence[str] = ("transaction", "conn_id")

    def __init__(self, *, transaction: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.transaction = transaction

    def execute(self, context: Context) -> None:
        """A second run changes nothing."""
        from tidemark.streams.worker.unwritten import let_go

        hook = self.hook
        store = hook.open_store()
        key = key_of(context, self.transaction)
        held = _streams_held(store, key) if metrics.wanted() else ()
        let_go(store, key, tables=hook.open_table)
        if held:
            metrics.rolled_back(held)


def _numbers(transaction: Transaction, first: int, writes: Sequence[PlannedWrite]) -> list[int]:
    """The task's own statements; its arguments must still be those that begin stored (V2). Raises PlanChanged."""
    own = transaction.plan.statements[first : first + len(writes)]
    if [s.digest for s in own] != [w.digest for w in writes]:
        problem = differences([s.write for s in own], writes)
        reason = "only begin stores a plan"
        help_ = "Clear the group's begin, too: it takes the old plan back if no target has any of it."
        raise PlanChanged(key=str(transaction.key), problem=problem, reason=reason, help=help_)
    return [statement.number for statement in own]


def _streams_held(store: ControlStore, key: TransactionKey) -> tuple[str, ...]:
    from tidemark.delivery.model.transactions import TransactionState
    from tidemark.streams.worker.begin import get_transaction

    try:
        found = get_transaction(store, key)
    except TransactionNotFound:
        return ()
    open_ = found.state is TransactionState.OPEN and found.superseded_by is None
    return tuple(window.stream_name for window in found.windows) if open_ else ()
