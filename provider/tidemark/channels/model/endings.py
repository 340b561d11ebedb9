"""The end of a client or a channel as a context manager."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["ClosedUnlessFailed"]


class ClosedUnlessFailed:
    """A context manager that is closed at its end, unless there was an error."""

    def close(self) -> None:
        """End well."""
        raise NotImplementedError

    def _end_after_error(self) -> None:
        """Nothing, unless a class needs more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._end_after_error()
