"""VACUUM from a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.jobs.remote import is_remote
from tidemark.jobs.spark_work import own_session
from tidemark.streams.driver.vacuum import vacuum
from tidemark.streams.planning.vacuum_results import VacuumResult, extension_of, result_of
from tidemark.streams.worker.vacuum import plan_table_vacuum

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["vacuum_table"]


def vacuum_table(
    context: ClientContext, table: str, max_extension_days: int | None, *, dry_run: bool, stretch: bool
) -> VacuumResult:
    """Plan by the store's streams, and vacuum in a session of its own where there can be one."""
    plan = plan_table_vacuum(
        context.store,
        context.tables.reference(table),
        context.tables,
        extension=extension_of(max_extension_days),
        stretch=stretch,
    )
    session = context.spark if is_remote(context.spark) else own_session(context.spark)
    done = vacuum(session, plan, context.options, started_at=context.store.clock(), dry_run=dry_run)
    return result_of(plan, done, dry_run=dry_run)
