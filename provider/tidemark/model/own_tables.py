"""Names of tables that Tidemark keeps beside those of its users."""

from __future__ import annotations

__all__ = ["HISTORY_SUFFIX", "PARTIALS_SUFFIX", "SEARCH_SUFFIX"]

HISTORY_SUFFIX = "__channel_history"
"""Of the table with the history of another table's channels, after that table's name."""

PARTIALS_SUFFIX = "__partials"
"""Of the table with the partial aggregates of a view, after that view's name."""

SEARCH_SUFFIX = "__search"
"""Of the table with the search paths of another table, after that table's name."""
