"""Choices as people write them."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from tidemark.errors import InvalidArgument

__all__ = ["choice_of"]

Choice = TypeVar("Choice", bound=StrEnum)


def choice_of(choices: type[Choice], argument: str, value: object) -> Choice:
    """The choice of that name, in any case. Raises InvalidArgument."""
    try:
        return choices(str(value).strip().lower())
    except ValueError as error:
        problem = f"one of {', '.join(choices)}"
        raise InvalidArgument(argument=argument, value=value, problem=problem) from error
