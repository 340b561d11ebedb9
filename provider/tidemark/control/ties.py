"""The ties of objects to tables and to each other, as the subjects' rows have them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Flow", "TableAt", "Tie"]


class Flow(StrEnum):
    """The direction of a tie, as the object has it."""

    READS = "reads"
    WRITES = "writes"
    IS = "is"  # the object is that table for those who read it
    KEEPS = "keeps"  # the object keeps that table clustered, or fast to search, and lets no rows flow


@dataclass(frozen=True)
class TableAt:
    """A table in a tie. `path`: None if only its name is known."""

    name: str
    path: str | None = None


@dataclass(frozen=True)
class Tie:
    """An object of a kind, by its uid, and a table or another object, by its kind and its uid.

    `dag`: the DAG whose runs let it flow; None: no such DAG is known.
    """

    uid: str
    flow: Flow
    other: TableAt | tuple[str, str]
    dag: str | None = None
