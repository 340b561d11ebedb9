"""The reason why a value does not fit its column."""

from __future__ import annotations

from typing import Any

from tidemark.channels.model.rows import RowErrorKind

__all__ = ["ValueProblem", "shown"]

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
    text = ascii(value) if isinstance(value, str | bytes | bool | int | float) or value is None else str(value)
    return f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'} ({type(value).__name__})"
