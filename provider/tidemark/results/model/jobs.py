"""The job that runs a query whose answer may be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.model.jobs import Job
from tidemark.results.model.answers import WrittenAnswer

__all__ = ["RUN_QUERY", "QueryReport", "QueryRequest"]


@dataclass(frozen=True)
class QueryRequest:
    """A query over tables at fixed versions. `titled`: the same query with the columns' titles of the user's text, if
    `text` may have others. `directory`: a URI that was never used. `settings`: values that the session is given.
    `tables`: name → path, of those that only a catalog knows.
    """

    text: str
    directory: str
    settings: Mapping[str, str]
    titled: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class QueryReport:
    """The written answer, and the settings that affected it. `unstored`: the type of a column that no file keeps, so
    that nothing was written.
    """

    written: WrittenAnswer | None
    settings: Mapping[str, str]
    unstored: str | None = None


RUN_QUERY = Job("run_query", QueryRequest, QueryReport, "results.driver.job_run_query:run_query")
