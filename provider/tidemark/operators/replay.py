"""Delivering a past window again, into another table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.operators._announce import facts_of, warn_of_quarantine
from tidemark.operators._base import failures_counted, key_of, owner_of
from tidemark.operators._constants import check_write
from tidemark.operators._jobs import create_quarantine
from tidemark.operators._plans import WriteRequest, planned_writes
from tidemark.operators._reads_of_views import over_views
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


__all__ = ["ReplayWindowOperator"]


class ReplayWindowOperator(SparkOperator):
    """Delivers what an earlier run took from a stream again, into another table, exactly once; no offset moves.

    For a target that came later, or that must be recreated. The source must still have the files and commits of that
    window (by default 7 and 30 days). The stream and other replays may run at the same time. A retry finds what is
    written; after the end it delivers nothing again.

    Raises TransactionNotFound for a run that committed nothing of the stream, and InvalidArgument for a target that has
    the window already. Raises PastWindowLost or VersionVacuumed if the window can no longer be read.

    :param stream: name of the stream. (templated)
    :param run: the run id that Airflow shows, or dag/run/task/map index if that id matches several tasks. (templated)
    :param target: the table that is written, not one that the run wrote. A function may have several, and `sql` none.
        (templated)
    :param write_as: `append`, `merge`, `sql`, or a function as `package.module:function`; see "One target: one task".
        (templated)
    :param keys: key columns of a merge, one name or several; only for a merge, and needed there. (templated)
    :param sql: an INSERT, MERGE, UPDATE or DELETE that names the stream like a table. A text that ends in `.sql` is the
        name of a file. (templated)
    :param tables: further tables that a function reads. (templated)
    :param schema_evolution: `fail`, or `add` the columns that the target lacks. (templated)
    :param quarantine: the table for rows of an append or merge that break a constraint of the target. It is created if
        it does not exist; see "Quarantine bad rows". (templated)
    """

    template_fields: Sequence[str] = (
        "stream", "run", "target", "write_as", "keys", "sql", "tables", "schema_evolution", "quarantine",
        "conn_id",
    )  # fmt: skip
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        stream: str,
        run: str,
        write_as: str,
        target: str | Sequence[str] | None = None,
        keys: str | Sequence[str] = (),
        sql: str | None = None,
        tables: str | Sequence[str] = (),
        schema_evolution: str = "fail",
        quarantine: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.run = run
        self.target = target
        self.write_as = write_as
        self.keys = keys
        self.sql = sql
        self.tables = tables
        self.schema_evolution = schema_evolution
        self.quarantine = quarantine
        check_write(self)

    @failures_counted("stream", consuming=False)
    def execute(self, context: Context) -> dict[str, Any]:
        """The repeated delivery: {stream, from, to, initial_rows, rows, quarantined, serial, lag, committed_at}."""
        from tidemark.streams.worker.replay import find_run, replay, require_replayable

        hook = self.hook
        request, uri = over_views(hook, WriteRequest.parse(vars(self))), partial(self.table_uri, context)
        planned_writes(replace(request, quarantine=None), uri)  # refuses, before a table is made
        past = find_run(hook.open_store(), self.stream, self.run)
        runtime = self.runtime(functions=True)
        self.log.info("Replaying what %s took.", past.key)
        create_quarantine(
            runtime,
            hook,
            request,
            uri,
            key=key_of(context),
            check=lambda writes: require_replayable(runtime, past, writes),
        )
        done = replay(
            runtime,
            past,
            key=key_of(context),
            writes=planned_writes(request, uri),
            owner=owner_of(context),
        )
        if done.delivered_before:
            self.log.warning("It was replayed at %s and is not delivered again.", done.result.committed_at)
        warn_of_quarantine(done.result.quarantined, request.quarantine)
        return facts_of(done.result)
