"""The CREATE_TABLE job: make the table of CREATE TABLE … AS SELECT, ahead of the plan that names its id."""

from __future__ import annotations

from contextlib import closing

from tidemark.jobs.context import JobContext
from tidemark.sql.statements import parse_statement
from tidemark.streams.driver.pinned_streams import PinnedStreams
from tidemark.streams.driver.sql import query_text, require_understood
from tidemark.streams.model.transaction_jobs import TableReport, TableRequest

__all__ = ["create_table"]


def create_table(job: JobContext, request: TableRequest) -> TableReport:
    """The table exists then, without rows if it did not before. A second run changes nothing.

    Raises StatementRefused with Spark's own words, and what reading the windows raises.
    """
    assert job.spec.key is not None  # the worker asks as the task that it runs
    job.stop_if_due()
    with (
        job.new_workspace(f"create-table-{job.spec.key.run_id}") as workspace,
        closing(PinnedStreams(job.session, request.windows, workspace, job.options)) as streams,
    ):
        query = query_text(parse_statement(request.query), streams, request.tables)
        text = f"{request.head} AS SELECT * FROM (\n{query}\n) LIMIT 0"
        require_understood(job.session, text, request.query)
        job.session.sql(text)
        return TableReport(tuple(job.session.sql(query).columns))
