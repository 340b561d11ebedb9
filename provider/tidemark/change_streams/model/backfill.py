"""A table's rows as of one version, put into a target before the records of a change stream follow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemark.model.jobs import Job
from tidemark.model.streams import TableRef

__all__ = ["BACKFILL_TABLE", "Backfill", "BackfillRequest", "BackfilledTable"]


@dataclass(frozen=True)
class BackfillRequest:
    """The work of a BACKFILL_TABLE job. `version`: of the watched table; the group's records begin behind it.

    `keys`, `columns`: those that are watched, None: all that Delta does not generate. `overwrite`: rows that the target
    has may go.
    """

    group_uid: str
    source: TableRef
    version: int
    keys: tuple[str, ...]
    columns: tuple[str, ...] | None
    target: TableRef
    overwrite: bool


@dataclass(frozen=True)
class Backfill:
    """The lasting record of a consumer group's backfill of one table: from which version (-1: before its first), into
    which table. `rows`, `done_at`: None until the backfill is finished.
    """

    group_uid: str
    source_id: str
    target_id: str
    version: int
    rows: int | None = None
    done_at: datetime | None = None


@dataclass(frozen=True)
class BackfilledTable:
    """`found`: an earlier attempt had written the rows; `version`: the target's."""

    rows: int
    found: bool
    version: int


BACKFILL_TABLE = Job(
    "backfill_table",
    BackfillRequest,
    BackfilledTable,
    "change_streams.driver.job_backfill_table:backfill_table",
    is_long=True,
)
