"""The VACUUM job: files that neither the table nor a stream needs are removed by Delta, so Spark does it."""

from __future__ import annotations

from tidemark.engine.retention.vacuum import vacuum as run_vacuum
from tidemark.jobs.context import JobContext
from tidemark.model.codec import from_json, to_plain
from tidemark.model.jobs import JobResult
from tidemark.planning.retention import VacuumPlan

__all__ = ["vacuum"]


def vacuum(job: JobContext) -> JobResult:
    """Carry out `options["plan"]` (a VacuumPlan as JSON); with `options["dry_run"]` "true" only count.

    Facts: a Vacuumed. A second run finds less to remove. Raises what `vacuum` of the engine does.
    """
    plan = from_json(VacuumPlan, job.spec.options["plan"])
    dry_run = job.spec.options["dry_run"] == "true"
    done = run_vacuum(job.session, plan, job.options, started_at=job.started_at, dry_run=dry_run, go_on=job.stop_if_due)
    return JobResult(facts=to_plain(done))
