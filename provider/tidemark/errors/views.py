"""Errors of views that streams read."""

from __future__ import annotations

from typing import Any

from tidemark.errors.tree import TidemarkError

__all__ = ["ViewChanged", "ViewError", "ViewNotUnderstood", "ViewRefused", "ViewTextMissing"]


class ViewError(TidemarkError):
    """{message}"""


class ViewRefused(ViewError):
    """Change tracking is not supported on queries with {construct}. View {view}, line {line}, column {column}:
    {fragment!r}. {instead}
    """


class ViewTextMissing(ViewError):
    """{view!r} has no stored text ({problem}), and a stream lives longer than a session. Create a view that
    is not temporary, and create the stream on it.
    """


class ViewNotUnderstood(ViewError):
    """The query of view {view} could not be parsed: {problem}. Rewrite it, or create the stream on its base tables."""


class ViewChanged(ViewError):
    """View {view!r}, or a view in it, has a different text than when the stream {stream!r} was created. {remedy}"""

    def __init__(self, *, remedy: str = "Re-base or recreate the stream.", **facts: Any) -> None:
        super().__init__(remedy=remedy, **facts)
