"""How the tables that streams read are found by names, by one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.statements import TransactionKey
    from tidemark.streams.worker.defining import SourceTables
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["source_tables_of"]


def source_tables_of(
    hook: TidemarkHook, runtime: Callable[[], Runtime], *, key: TransactionKey | None = None
) -> SourceTables:
    """Names are those that the hook knows; for one of Spark's catalog a job is run through `runtime`."""
    from tidemark.streams.worker.catalog import asking_the_catalog
    from tidemark.streams.worker.defining import SourceTables

    return SourceTables(asking_the_catalog(hook.table, runtime, key=key), hook.external_table, hook.open_table)
