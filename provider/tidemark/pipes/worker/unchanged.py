"""The value of an argument that leaves a property as it is, beside None, which removes it."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeGuard, TypeVar

__all__ = ["UNCHANGED", "Unchanged", "is_given"]

Given = TypeVar("Given")


class Unchanged(Enum):
    """Its only member is `UNCHANGED`."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


def is_given(value: Given | Unchanged) -> TypeGuard[Given]:
    """Whether the argument was given."""
    return value is not UNCHANGED
