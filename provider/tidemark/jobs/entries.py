"""The function of a job. The spec names it, and its annotations have the types of its arguments."""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Callable
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.jobs.context import JobContext

__all__ = ["entry_of", "request_type"]

Entry = Callable[[JobContext, Any], Any]
_ENTRY = re.compile(r"[a-z_]+(\.[a-z_]+)*:[a-z_]+")


def entry_of(name: str) -> Entry:
    """The function `module:function` below `tidemark`. Raises InvalidArgument if there is none."""
    if _ENTRY.fullmatch(name):
        module, _, function = name.partition(":")
        try:
            found: Entry = getattr(importlib.import_module(f"tidemark.{module}"), function)
            return found
        except (ModuleNotFoundError, AttributeError) as error:
            if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("tidemark"):
                raise
    raise InvalidArgument(argument="entry", value=name, problem="this release has no such job")


def request_type(entry: Entry) -> type:
    """The dataclass of the function's request."""
    found: type = typing.get_type_hints(entry)["request"]
    return found
