"""The APPLY_EVENTS job: events of objects into their targets, each once."""

from __future__ import annotations

from tidemark.errors import JobError, TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.failures import named_failure
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.model.jobs import AppliedObject, AppliedObjects, ApplyEvents, ApplyObjects

__all__ = ["apply_objects"]


def apply_objects(job: JobContext, request: ApplyObjects) -> AppliedObjects:
    """An object whose apply fails stops no other; its result is the error. A second run finds the segments that were
    written and writes the others. Raises JobError if the job has to stop.
    """
    return AppliedObjects(tuple(_applied(job, one) for one in request.objects))


def _applied(job: JobContext, request: ApplyEvents) -> AppliedObject:
    say, due = job.progress.say, job.stop_if_due
    try:
        report = apply_events(job.session, job.spec.store_id, request, job.options, say=say, stop_if_due=due)
    except JobError:
        raise
    except TidemarkError as error:
        return AppliedObject(request.object_uid, error=error.to_record())
    except SPARK_FAILURES as error:
        job.stop_if_due()
        return AppliedObject(request.object_uid, error=named_failure(error).to_record())
    return AppliedObject(request.object_uid, report)
