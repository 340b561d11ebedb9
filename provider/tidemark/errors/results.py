"""Errors of queries whose answers are kept."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = ["QueryNotReusable"]


class QueryNotReusable(TidemarkError):
    """The answer of the query cannot be kept ({why}): {problem}. Change the query, or run it by another operator.
    Query: {sql}
    """
