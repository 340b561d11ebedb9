"""The BACKFILL_OBJECT job: a table of a database, as of one exact position, into its target."""

from __future__ import annotations

from datetime import UTC, datetime

from tidemark.engine.replication.backfill import backfill_object as run_backfill
from tidemark.errors import InvalidArgument
from tidemark.jobs.context import JobContext
from tidemark.jobs.files import write_text
from tidemark.model.codec import from_json, to_json, to_plain
from tidemark.model.jobs import JobResult
from tidemark.model.replication import BackfillProgress
from tidemark.model.replication_jobs import BackfillObject

__all__ = ["backfill_object"]

PROGRESS = ".progress"


def backfill_object(job: JobContext) -> JobResult:
    """Carry out `options["ask"]` (a BackfillObject as JSON) on the database of the environment. Facts: a
    BackfillReport; meanwhile `<result_uri>.progress` has a BackfillProgress.

    A second run finds what the first has written, or starts from the beginning. Raises what `backfill_object` of the
    engine does.
    """
    ask = from_json(BackfillObject, job.spec.options["ask"])
    if job.source is None:
        raise InvalidArgument(argument="source", value=None, problem="a backfill needs the address of its database")
    place = job.spec.result_uri + PROGRESS

    def leave(progress: BackfillProgress) -> None:
        write_text(place, to_json(progress))

    with job.new_workspace(f"{ask.object.uid}-{ask.number}") as workspace:
        report = run_backfill(
            job.session,
            job.spec.store_id,
            ask,
            job.source,
            workspace,
            job.options,
            now=lambda: datetime.now(UTC),
            say=job.progress.say,
            stop_if_due=job.stop_if_due,
            leave=leave,
        )
    return JobResult(facts=to_plain(report))
