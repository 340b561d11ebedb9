"""A table's rows as of one version, put into a target before the records of a change stream follow."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.streams import TableRef

__all__ = ["BackfillAsk"]


@dataclass(frozen=True)
class BackfillAsk:
    """What a BACKFILL_TABLE job does. `version`: of the watched table; the group's records begin behind it.

    `columns`: those that are watched, with the keys; None: all. `overwrite`: rows that the target has may go.
    """

    group_uid: str
    source: TableRef
    version: int
    columns: tuple[str, ...] | None
    target: TableRef
    overwrite: bool
