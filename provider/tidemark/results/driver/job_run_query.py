"""The RUN_QUERY job: an answer of a query becomes files of the lake."""

from __future__ import annotations

from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.results.driver.writing import write_answer
from tidemark.results.model.jobs import QueryReport, QueryRequest
from tidemark.streams.driver.catalog_tables import require_in_catalog

__all__ = ["run_query"]


def run_query(job: JobContext, request: QueryRequest) -> QueryReport:
    """A second run writes to another directory. Raises CatalogTableMoved, AnalysisException."""
    require_in_catalog(job.session, request.tables)
    report = write_answer(job.session, request, job.options)
    failpoint("answer.written")
    return report
