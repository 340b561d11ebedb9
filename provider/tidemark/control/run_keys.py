"""The tasks that a question is about, and the condition on the keys of their runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tidemark.control.schema import objects

__all__ = ["RunPart", "Touch"]


@dataclass(frozen=True)
class Touch:
    """The work of tasks on an object: `did`, in words, and `why`, the reason if the store has kept one."""

    did: str
    why: str | None = None


@dataclass(frozen=True)
class RunPart:
    """All tasks of a DAG; those of one run; one task of it; or one of its mapped instances. -1: it is not mapped."""

    dag_id: str
    run_id: str | None = None
    task_id: str | None = None
    map_index: int | None = None

    def owned(self, kind: str) -> sa.Select[tuple[str]]:
        """The uids of the objects of that kind that the DAG owns. Histories without an index by run are read of these
        alone.
        """
        return sa.select(objects.c.uid).where(objects.c.kind == kind, objects.c.owner_dag == self.dag_id)

    def has(self, run: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        """Whether the run in that column, a key `dag/run/task/index`, is one of these."""
        parts = (self.dag_id, self.run_id, self.task_id, None if self.map_index is None else str(self.map_index))
        said = [one for one in parts if one is not None]
        if len(said) == len(parts):
            return run == "/".join(said)
        start = "/".join(said) + "/"
        return sa.func.substr(run, 1, len(start)) == start  # LIKE takes each case in SQLite
