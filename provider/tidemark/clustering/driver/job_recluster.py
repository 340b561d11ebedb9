"""The RECLUSTER job: an OPTIMIZE of Delta, bounded by the sizes of earlier results."""

from __future__ import annotations

import time

from tidemark.clustering.driver.statements import open_same
from tidemark.clustering.model.jobs import ReclusterReport, ReclusterRequest
from tidemark.delivery.driver.exactly_once import CONFLICTS
from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.jobs.settings import USER_METADATA, under
from tidemark.sql.statements import path_name

__all__ = ["recluster"]

_ATTEMPTS = 3
_LONGEST_CONFLICT = 300  # characters
_MERGE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize"
_REWRITTEN_BELOW = f"{_MERGE}.threshold"
_ONE_RESULT_UP_TO = f"{_MERGE}.targetCubeSize"
_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
_NOISE = "spark.databricks.io.skipping.mdc.addNoise"
_RANGES = "spark.databricks.io.skipping.mdc.rangeId.max"
_LEAST_RESULT = 1 << 37  # bytes; Delta's own bound is about as large
_RANGES_PER_FILE = 32
_MOST_RANGES = 1 << 16
_FILE_BYTES = 1 << 30  # Delta's own


def recluster(job: JobContext, request: ReclusterRequest) -> ReclusterReport:
    """Rewrite the new files, and earlier results below `cube_bytes`, into one result, by one commit without changes of
    data.

    A second run rewrites nothing, or what is left. If other writers come first, it tries again a few times, and then
    leaves the table as it is. Raises ClusteredTableRecreated, TableNotFound, NotADeltaTable.
    """
    log = open_same(request.table, job.options)
    began, conflict = time.monotonic(), ""
    for attempt in range(1, _ATTEMPTS + 1):
        job.stop_if_due()
        try:
            with under(job.session, _settings(request)):
                full = " FULL" if request.full else ""
                job.session.sql(f"OPTIMIZE {path_name(log.uri)}{full}").collect()
            failpoint("recluster.committed")
            return ReclusterReport(time.monotonic() - began, lost=attempt - 1)
        except CONFLICTS as error:
            conflict = f"{type(error).__name__}: {str(error).splitlines()[0]}"[:_LONGEST_CONFLICT]
            job.progress.say(f"attempt {attempt} of {_ATTEMPTS} met other writers: {conflict}")
    return ReclusterReport(time.monotonic() - began, conflict, _ATTEMPTS)


def _settings(request: ReclusterRequest) -> dict[str, str | None]:
    """Settings of Delta for this OPTIMIZE. Without noise, rows of one range of the key are in one file. So the files
    of a result do not overlap.
    """
    files = request.most_bytes // (request.file_bytes or _FILE_BYTES) + 1
    settings: dict[str, str | None] = {
        USER_METADATA: request.mark,
        _REWRITTEN_BELOW: str(request.cube_bytes),
        _ONE_RESULT_UP_TO: str(max(_LEAST_RESULT, 2 * request.most_bytes)),
        _NOISE: "false",
        _RANGES: str(min(_MOST_RANGES, max(1000, _RANGES_PER_FILE * files))),
    }
    if request.file_bytes is not None:
        settings[_FILE_SIZE] = str(request.file_bytes)
    return settings
