"""The BACKFILL_TABLE job: a table's rows of one version into a target, once."""

from __future__ import annotations

from tidemark.engine.change_streams.backfill import backfill_table as run_backfill
from tidemark.jobs.context import JobContext
from tidemark.model.backfill import BackfillAsk
from tidemark.model.codec import from_json
from tidemark.model.jobs import JobResult

__all__ = ["backfill_table"]


def backfill_table(job: JobContext) -> JobResult:
    """Carry out `options["ask"]` (a BackfillAsk as JSON). Facts: rows, found, version of the target. A second run
    writes nothing. Raises what `backfill_table` of the engine does.
    """
    ask = from_json(BackfillAsk, job.spec.options["ask"])
    evidence = run_backfill(job.session, job.spec.store_id, ask, job.stop_if_due, job.options)
    rows = sum(evidence.rows.values())
    job.progress.say(f"{rows} rows of version {ask.version} {'were there already' if evidence.found else 'written'}")
    return JobResult(facts={"rows": rows, "found": evidence.found, "version": evidence.commit_version})
