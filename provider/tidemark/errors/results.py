"""Errors of queries whose answers are kept."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = ["AnswerDamaged", "QueryNotReusable"]


class AnswerDamaged(TidemarkError):
    """A stored answer at {location} cannot be read: {problem}. Its files were changed or damaged. Remove the answer by
    `lake.forget_results(sql=…)` or `airflow tidemark results clear`. Then run the query again.
    """


class QueryNotReusable(TidemarkError):
    """The answer of the query cannot be kept ({why}): {problem}. Change the query, or run it by another operator.
    Query: {sql}
    """
