"""The root of the tree: a class whose docstring is its message."""

from __future__ import annotations

from typing import Any

from tidemark.model.codec import to_plain
from tidemark.model.jobs import ErrorRecord

__all__ = ["InvalidArgument", "NotYetSupported", "TidemarkError"]


class TidemarkError(Exception):
    """{message}"""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)
        super().__init__(_message(type(self), facts))

    def to_record(self) -> ErrorRecord:
        """The form in which a job hands the error to the worker."""
        return ErrorRecord(error=type(self).__name__, facts=to_plain(self.facts), message=str(self))


def _message(kind: type[TidemarkError], facts: dict[str, Any]) -> str:
    text = " ".join((kind.__doc__ or "").split())
    return text.format_map({name: value for name, value in facts.items()})


class NotYetSupported(TidemarkError):
    """{feature} is not supported yet. {instead}"""


class InvalidArgument(TidemarkError):
    """{argument}={value!r}: {problem}"""
