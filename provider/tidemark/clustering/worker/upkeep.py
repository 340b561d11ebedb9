"""The upkeep of all registered tables, or of some: planned in one task, done in one task for each table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemark.clustering.model.tables import ClusteredTable, Goal, How, Reclustered, ReclusterState
from tidemark.clustering.worker.recluster import recluster_table
from tidemark.clustering.worker.tables import list_clustered
from tidemark.control.store import ControlStore
from tidemark.errors import ReclusteringsFailed, TidemarkError
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.runtime import Runtime

__all__ = ["keep_clustered", "tables_to_keep"]


def tables_to_keep(store: ControlStore, names: Sequence[str] | None = None) -> tuple[ClusteredTable, ...]:
    """The registered tables, or those of these names or paths. Names that are not registered are left out."""
    found = list_clustered(store)
    if names is None:
        return found
    wanted = {name.strip().casefold() for name in names}
    return tuple(one for one in found if one.name.casefold() in wanted or one.table.path.casefold() in wanted)


def keep_clustered(
    runtime: Runtime,
    clustered: Sequence[ClusteredTable],
    *,
    key: TransactionKey,
    goal: Goal | None = None,
    most_bytes: int | None = None,
) -> tuple[Reclustered, ...]:
    """Recluster those of the tables for which it pays now. `most_bytes`: of all together.

    Retries as for one table. An error of one table lets the others be done, and is raised after them: itself if there
    is one table, else ReclusteringsFailed.
    """
    done: list[Reclustered] = []
    errors: list[tuple[ClusteredTable, TidemarkError]] = []
    left = most_bytes
    for table in clustered:
        of_table = replace(key, task_id=f"{key.task_id}/{table.uid}")
        try:
            one = recluster_table(runtime, table, key=of_table, goal=goal, most_bytes=left)
        except TidemarkError as error:
            errors.append((table, error))
            done.append(Reclustered(table.name, How.NOTHING, str(error), ReclusterState.FAILED))
            continue
        done.append(one)
        left = None if left is None else max(0, left - one.bytes)
    _raise(errors, len(clustered))
    return tuple(done)


def _raise(errors: Sequence[tuple[ClusteredTable, TidemarkError]], total: int) -> None:
    if len(errors) == 1 and total == 1:
        raise errors[0][1]
    if errors:
        problems = " ".join(f"{table.name}: {type(error).__name__}: {error}" for table, error in errors)
        raise ReclusteringsFailed(failed=len(errors), total=total, problems=problems)
