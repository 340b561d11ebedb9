"""The BACKFILL_OBJECT job: a table of a database, as of one exact position, into its target."""

from __future__ import annotations

from datetime import UTC, datetime

from tidemark.jobs.context import JobContext
from tidemark.jobs.files import write_text
from tidemark.model.codec import to_json
from tidemark.replication.driver.backfill import backfill_object as run_backfill
from tidemark.replication.model.jobs import BackfillObject, BackfillReport
from tidemark.replication.model.replication import BackfillProgress

__all__ = ["backfill_object"]

PROGRESS = ".progress"


def backfill_object(job: JobContext, request: BackfillObject) -> BackfillReport:
    """Carried out on the database of the environment; while it runs, `<result_uri>.progress` has a BackfillProgress.

    A second run finds what the first has written, or starts from the beginning. Raises what `backfill_object` of the
    engine does.
    """
    place = job.spec.result_uri + PROGRESS

    def leave(progress: BackfillProgress) -> None:
        write_text(place, to_json(progress))

    with job.new_workspace(f"{request.object.uid}-{request.number}") as workspace:
        return run_backfill(
            job.session,
            job.spec.store_id,
            request,
            job.require_source(),
            workspace,
            job.options,
            now=lambda: datetime.now(UTC),
            say=job.progress.say,
            stop_if_due=job.stop_if_due,
            leave=leave,
        )
