"""Tables that an object of the store writes, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.store import ControlStore
from tidemark.errors import TargetIsKept

__all__ = ["require_not_kept"]


def require_not_kept(store: ControlStore, targets: Mapping[str, str]) -> None:
    """Say nothing if no object keeps a table of `targets`, name by canonical path. Raises TargetIsKept."""
    if targets:
        store.read(lambda connection: _require(connection, targets))


def _require(connection: sa.Connection, targets: Mapping[str, str]) -> None:
    for kind in map(kind_named, KINDS):
        for path, keeper in kind.keepers_of(connection, tuple(targets)).items():
            raise TargetIsKept(target=targets[path], kind=kind.name.replace("_", " "), keeper=keeper)
