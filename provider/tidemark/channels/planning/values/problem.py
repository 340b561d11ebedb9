"""The reason why a value does not fit its column."""

from __future__ import annotations

from typing import Any

from tidemark.channels.model.rows import RowErrorKind
from tidemark.model.foreign_json import plain_text

__all__ = ["ValueProblem", "cut", "shown"]

_SHOWN = 40


class ValueProblem(ValueError):
    """A value's problem. `path`: the place within a nested value, such as `.price` or `[3]`; empty for the value."""

    def __init__(self, kind: RowErrorKind, message: str, path: str = "") -> None:
        self.kind, self.message, self.path = kind, message, path
        super().__init__(message)

    def below(self, step: str) -> ValueProblem:
        """The same problem, seen from the value that has this one at `step`."""
        return ValueProblem(self.kind, self.message, step + self.path)


def shown(value: Any) -> str:
    """The value as an error shows it, shortened, with its type."""
    try:
        text = ascii(value) if isinstance(value, str | bytes | bool | int | float) or value is None else str(value)
    except (ValueError, RecursionError):  # a number of more than 4,300 digits, or lists in lists in lists
        text = "a value that Python does not show"
    return f"{cut(text)} ({type(value).__name__})"


def cut(text: str, most: int = _SHOWN) -> str:
    """The beginning of a text that a writer chose, as a message can have it: without lone surrogates."""
    return plain_text(text if len(text) <= most else text[:most] + "…")
