"""The upkeep of all registered tables, or of some: planned in one task, done in one task for each table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tidemark.clustering.model.tables import ClusteredTable, How, Reclustered, ReclusterState
from tidemark.clustering.worker.recluster import recluster_table
from tidemark.clustering.worker.tables import list_clustered
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, ReclusteringsFailed, TidemarkError
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.runtime import Runtime

__all__ = ["keep_clustered", "tables_to_keep"]


def tables_to_keep(store: ControlStore, names: Sequence[str] | None = None) -> tuple[ClusteredTable, ...]:
    """The registered tables, or those of these names or paths. Names that are not registered are left out. A path or
    name as it is written comes before one in another case. Raises InvalidArgument for a name of several tables.
    """
    found = list_clustered(store)
    if names is None:
        return found
    wanted = [_called(found, name.strip()) for name in names]
    return tuple(one for one in found if one in wanted)


def _called(tables: Sequence[ClusteredTable], name: str) -> ClusteredTable | None:
    """The table of the path or name."""
    ways: tuple[Callable[[ClusteredTable], bool], ...] = (
        lambda one: one.table.path == name,
        lambda one: one.name == name,
        lambda one: name.casefold() in (one.name.casefold(), one.table.path.casefold()),
    )
    for is_called in ways:
        same = [one for one in tables if is_called(one)]
        if len(same) > 1:
            paths = ", ".join(one.table.path for one in same)
            raise InvalidArgument(argument="tables", value=name, problem=f"name one of these by its path: {paths}")
        if same:
            return same[0]
    return None


def keep_clustered(
    runtime: Runtime,
    clustered: Sequence[ClusteredTable],
    *,
    key: TransactionKey,
    bounds: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Reclustered, ...]:
    """Recluster those of the tables for which it pays now. `bounds`: fields of a `Goal`, in place of the tables' own.

    Retries as for one table. An error of one table lets the others be done, and is raised after them. Of several tables
    it is ReclusteringsFailed.
    """
    done: list[Reclustered] = []
    errors: list[tuple[ClusteredTable, TidemarkError]] = []
    for table in clustered:
        of_table = replace(key, task_id=f"{key.task_id}/{table.uid}")
        try:
            done.append(recluster_table(runtime, table, key=of_table, goal=replace(table.goal, **bounds)))
        except TidemarkError as error:
            errors.append((table, error))
            done.append(Reclustered(table.name, How.NOTHING, str(error), ReclusterState.FAILED))
    _raise(errors, len(clustered))
    return tuple(done)


def _raise(errors: Sequence[tuple[ClusteredTable, TidemarkError]], total: int) -> None:
    if len(errors) == 1 and total == 1:
        raise errors[0][1]
    if errors:
        problems = " ".join(f"{table.name}: {type(error).__name__}: {error}" for table, error in errors)
        raise ReclusteringsFailed(failed=len(errors), total=total, problems=problems)
