"""Tables that an object of the store writes, and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.control.object_kinds import resolved
from tidemark.control.store import ControlStore
from tidemark.errors import TargetIsKept

__all__ = ["Keeper", "partial_tables", "require_not_kept"]

_KEEPERS = (
    "materialized.store.views:keepers",
)  # as `KINDS`: the store imports no subject, and a begin loads these alone
_PARTIALS = "materialized.store.views:partial_tables"


@dataclass(frozen=True)
class Keeper:
    """The object that keeps a table."""

    kind: str
    name: str


KeepersOf = Callable[[sa.Connection, Sequence[str]], Mapping[str, Keeper]]


def partial_tables(connection: sa.Connection) -> frozenset[tuple[str, str]]:
    """Path and id of each table of partial aggregates that a view has made for itself, also of dropped views."""
    found: Callable[[sa.Connection], frozenset[tuple[str, str]]] = resolved(_PARTIALS)
    return found(connection)


def require_not_kept(store: ControlStore, targets: Mapping[str, str]) -> None:
    """Say nothing if no object keeps a table of `targets`, name by canonical path. Raises TargetIsKept."""
    if targets:
        store.read(lambda connection: _require(connection, targets))


def _require(connection: sa.Connection, targets: Mapping[str, str]) -> None:
    for name in _KEEPERS:
        found: KeepersOf = resolved(name)
        for path, keeper in found(connection, tuple(targets)).items():
            raise TargetIsKept(target=targets[path], kind=keeper.kind.replace("_", " "), keeper=keeper.name)
