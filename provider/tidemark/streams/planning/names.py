"""Names that users give to streams, consumer groups and replications."""

from __future__ import annotations

from tidemark.errors import InvalidArgument

__all__ = ["require_name"]

LONGEST_NAME = 255


def require_name(name: str, argument: str = "name") -> None:
    """Say nothing if every store can keep the name and find it by its index. Raises InvalidArgument."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument(argument=argument, value=name, problem="give a name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        problem = f"it must be at most {LONGEST_NAME} characters, all of them printable"
        raise InvalidArgument(argument=argument, value=name[:LONGEST_NAME], problem=problem)
