"""Names of tables that Tidemark keeps beside those of its users."""

from __future__ import annotations

__all__ = ["HISTORY_SUFFIX"]

HISTORY_SUFFIX = "__channel_history"
"""Of the table with the history of another table's channels, after that table's name."""
