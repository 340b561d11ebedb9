"""The rooms of the package: each is a subject, with those of the five words that it may have."""

from __future__ import annotations

__all__ = ["ROOMS", "WORDS"]

WORDS = {"model", "planning", "store", "worker", "driver"}
ROOMS = {
    "acceleration": WORDS - {"driver"},
    "change_streams": WORDS,
    "changes": WORDS,
    "channels": WORDS,
    "clustering": WORDS,
    "delivery": WORDS,
    "materialized": WORDS,
    "pipes": WORDS,
    "replication": WORDS | {"sources"},
    "results": WORDS,
    "search": WORDS,
    "streams": WORDS,
}
"""A new subject is a new line here, in pyproject.toml, and in `tidemark.hooks._archive`."""
