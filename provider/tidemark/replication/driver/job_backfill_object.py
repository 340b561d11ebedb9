"""Jobs that copy tables of a database, each as of one exact position, into their targets: of one object, or of many."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from tidemark.errors import JobError, TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.failures import named_failure
from tidemark.jobs.files import write_text
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.jobs.workspace import Workspace
from tidemark.model.codec import to_json
from tidemark.replication.driver.backfill import backfill_object as run_backfill
from tidemark.replication.model.jobs import (
    BackfilledObject,
    BackfilledObjects,
    BackfillObject,
    BackfillObjects,
    BackfillReport,
)
from tidemark.replication.model.replication import BackfillProgress

__all__ = ["backfill_object", "backfill_objects"]

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
        return _copied(job, request, workspace, leave)


def backfill_objects(job: JobContext, request: BackfillObjects) -> BackfilledObjects:
    """Copies one after another. An object whose copy fails stops no other; its result is the error. A second run finds
    the copies that were written and makes the others. Raises JobError if the job has to stop.
    """
    with job.new_workspace(f"{job.spec.kind}-{job.started_at:%Y%m%dT%H%M%S%f}") as workspace:
        return BackfilledObjects(tuple(_result(job, one, workspace) for one in request.objects))


def _result(job: JobContext, request: BackfillObject, workspace: Workspace) -> BackfilledObject:
    uid = request.object.uid
    job.stop_if_due()
    try:
        return BackfilledObject(uid, _copied(job, request, workspace, lambda _: None))
    except JobError:
        raise
    except TidemarkError as error:
        return BackfilledObject(uid, error=error.to_record())
    except SPARK_FAILURES as error:
        job.stop_if_due()
        return BackfilledObject(uid, error=named_failure(error).to_record())


def _copied(
    job: JobContext, request: BackfillObject, workspace: Workspace, leave: Callable[[BackfillProgress], None]
) -> BackfillReport:
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
