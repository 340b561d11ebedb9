"""VACUUM from a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.jobs.remote import is_remote
from tidemark.jobs.spark_work import own_session
from tidemark.streams.driver.vacuum import vacuum
from tidemark.streams.planning.vacuum_results import VacuumResult, extension_of, result_of
from tidemark.streams.worker.vacuum import plan_table_vacuum

if TYPE_CHECKING:
    from tidemark.client.surroundings import Surroundings

__all__ = ["vacuum_table"]


def vacuum_table(
    around: Surroundings, table: str, max_extension_days: int | None, *, dry_run: bool, stretch: bool
) -> VacuumResult:
    """Plan by the store's streams, and vacuum in a session of its own where there can be one."""
    plan = plan_table_vacuum(
        around.store,
        around.tables.reference(table),
        around.tables,
        extension=extension_of(max_extension_days),
        stretch=stretch,
    )
    session = around.spark if is_remote(around.spark) else own_session(around.spark)
    done = vacuum(session, plan, around.options, started_at=around.store.clock(), dry_run=dry_run)
    return result_of(plan, done, dry_run=dry_run)
