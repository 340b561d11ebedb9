"""The means by which tasks create, change and refresh views."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument, TableNotFound
from tidemark.operators._base import key_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.materialized.model.refreshes import Refreshed
    from tidemark.materialized.worker.defining import Lakes
    from tidemark.materialized.worker.statements import Desk
    from tidemark.operators._spark import SparkOperator
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["desk_of"]


def desk_of(
    operator: SparkOperator, context: Context, runtime: Callable[[], Runtime], *, tracked: bool, once: bool = False
) -> Desk:
    """The desk of a task. `runtime`: of its steps, for those that start a job. `tracked`: jobs turn row tracking on in
    bases without it. `once`: a view that this run has created or dropped is left as it is.
    """
    from tidemark.materialized.worker.refresh import refresh_view
    from tidemark.materialized.worker.statements import Desk

    key = key_of(context)

    def refresh(name: str) -> tuple[Refreshed, ...]:
        return refresh_view(runtime(), name, key=key)

    return Desk(
        store=operator.hook.open_store(),
        who=str(key),
        lakes=_lakes(operator, context, runtime, tracked=tracked),
        path=operator.hook.table_path,
        refresh=refresh,
        once=once,
    )


def _lakes(operator: SparkOperator, context: Context, runtime: Callable[[], Runtime], *, tracked: bool) -> Lakes:
    from tidemark.lake.external_tables import find_external_table
    from tidemark.lake.tables import resolve
    from tidemark.materialized.model.jobs import RESOLVE_QUERY
    from tidemark.materialized.worker.defining import Lakes

    settings, key = operator.hook.settings, key_of(context)

    def locate(name: str) -> str | None:
        try:
            return resolve(name, settings.lake_root, settings.storage_options)[0]
        except (TableNotFound, InvalidArgument):
            return None

    return Lakes(
        resolve=lambda request: runtime().run_job(RESOLVE_QUERY, request, key=key),
        locate=locate,
        open=operator.hook.open_table,
        files=lambda name: find_external_table(settings.workspace, name, settings.storage_options),
        turn_on=partial(operator.turn_on_row_tracking, context) if tracked else None,
    )
