"""Errors of search optimization."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = ["SearchChanged", "SearchError", "SearchNotFound", "SearchRefused"]


class SearchError(TidemarkError):
    """{message}"""


class SearchNotFound(SearchError):
    """{table} has no search optimization{what}. Add it with ALTER TABLE … ADD SEARCH OPTIMIZATION."""


class SearchRefused(SearchError):
    """{table} cannot have the search optimization {said}: {problem}. Name other columns, or another search method."""


class SearchChanged(SearchError):
    """The search optimization of {table} was changed by somebody else at the same time. Repeat the statement."""
