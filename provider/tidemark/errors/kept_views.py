"""Errors of materialized views and dynamic tables."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "KeptViewError",
    "KeptViewExists",
    "KeptViewNotFound",
    "KeptViewNotReady",
    "KeptViewOutdated",
    "KeptViewRefused",
    "KeptViewSuspended",
    "RefreshesFailed",
    "StreamOfAView",
]


class KeptViewError(TidemarkError):
    """{message}"""


class KeptViewNotFound(KeptViewError):
    """There is no materialized view or dynamic table {view}. {hint}Create it with CREATE MATERIALIZED VIEW or CREATE
    DYNAMIC TABLE.
    """


class KeptViewExists(KeptViewError):
    """{kind} {view} exists already. Use CREATE OR REPLACE, or another name."""


class KeptViewRefused(KeptViewError):
    """{kind} {view} cannot be created: {problem}"""


class KeptViewSuspended(KeptViewError):
    """{view} is suspended and not refreshed: {why}. Remove the cause, then ALTER {kind} {view} RESUME."""


class KeptViewOutdated(KeptViewError):
    """{view} cannot be refreshed at the point in time of its wave: {problem}. The next wave refreshes it."""


class RefreshesFailed(KeptViewError):
    """{failed} of {total} refreshes failed; the others are done. Remove the causes, then run the task again.
    {problems}
    """


class StreamOfAView(KeptViewError):
    """The stream {stream} belongs to a materialized view or a dynamic table, and only its refreshes move it. Create
    another stream on the view.
    """


class KeptViewNotReady(KeptViewError):
    """{view} has no rows yet: its first refresh has not ended. Refresh it, or wait for the DAG that does."""
