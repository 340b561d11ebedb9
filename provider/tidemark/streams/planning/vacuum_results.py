"""The arguments and the result of a VACUUM, in plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import whole_number
from tidemark.streams.planning.retention import Holding, Losing, VacuumPlan
from tidemark.streams.planning.vacuum_job import Vacuumed

__all__ = ["VacuumResult", "extension_of", "result_of"]

_MOST_DAYS = 3650


@dataclass(frozen=True)
class VacuumResult:
    """The files that were removed, or in a dry run would be, and the files that stay for streams.

    `files`, `bytes`: removed; None where Delta's log does not say. `bytes_kept`: of data files that the table has no
    more and streams need; `bytes_past_retention` of them are past the table's own retention. `settings`: table
    properties that were set (None: unset); none were if others have set some after this was planned:
    `changed_meanwhile`.
    """

    table: str
    dry_run: bool
    retain_hours: int
    files: int | None
    bytes: int | None
    bytes_kept: int
    bytes_past_retention: int
    held_by: tuple[Holding, ...]
    losing: tuple[Losing, ...]
    settings: dict[str, str | None]
    changed_meanwhile: tuple[str, ...] = ()

    def __str__(self) -> str:
        would = "would remove" if self.dry_run else "removed"
        size = "" if self.bytes is None else f" of {self.bytes:,} bytes"
        what = "unneeded files" if self.files is None else f"{self.files:,} files{size}"
        kept = f"{self.bytes_kept:,} bytes stay for streams, {self.bytes_past_retention:,} of them for streams alone"
        return f"VACUUM of {self.table} {would} {what}; {kept}."


def result_of(plan: VacuumPlan, done: Vacuumed, *, dry_run: bool) -> VacuumResult:
    """The plan with what came of it."""
    return VacuumResult(
        table=plan.table.name,
        dry_run=dry_run,
        retain_hours=plan.retain_hours,
        files=done.files,
        bytes=done.bytes,
        bytes_kept=plan.kept.bytes,
        bytes_past_retention=plan.kept.bytes_past_retention,
        held_by=plan.held_by,
        losing=plan.losing,
        settings={} if done.changed_meanwhile else dict(plan.settings),
        changed_meanwhile=done.changed_meanwhile,
    )


def extension_of(days: int | str | None) -> timedelta | None:
    """A limit in whole days, also as a template renders it; None for none. Raises InvalidArgument."""
    said = "" if days is None else str(days).strip()
    if said.lower() in ("", "none"):
        return None
    limit = whole_number(said)
    if limit is None or limit > _MOST_DAYS:
        problem = f"it must be a whole number of days, at most {_MOST_DAYS}"
        raise InvalidArgument(argument="max_extension_days", value=days, problem=problem)
    return timedelta(days=limit)
