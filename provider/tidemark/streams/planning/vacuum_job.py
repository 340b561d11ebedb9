"""The VACUUM job: files that neither the table nor a stream needs are removed by Delta, so Spark does it."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.jobs import Job
from tidemark.streams.planning.retention import VacuumPlan

__all__ = ["VACUUM", "VacuumRequest", "Vacuumed"]


@dataclass(frozen=True)
class VacuumRequest:
    """`dry_run`: only count."""

    plan: VacuumPlan
    dry_run: bool


@dataclass(frozen=True)
class Vacuumed:
    """How many files were removed (in a dry run: would be), and their bytes. None if Delta's log does not say, as on
    storages where it does not log VACUUM.

    `changed_meanwhile`: table properties that somebody has set since the plan was made; then none of its settings was.
    """

    files: int | None
    bytes: int | None
    changed_meanwhile: tuple[str, ...] = ()


VACUUM = Job("vacuum", VacuumRequest, Vacuumed, "streams.driver.job_vacuum:vacuum")
