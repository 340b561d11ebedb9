"""Names that users give to streams, consumer groups and replications."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.errors import InvalidArgument, StreamOfAView

__all__ = ["OF_A_VIEW", "is_of_a_view", "require_name", "require_own", "require_stream_name", "view_stream"]

LONGEST_NAME = 255
OF_A_VIEW = "tidemark$view$"  # names of streams that belong to materialized views and dynamic tables begin so


def view_stream(uid: str) -> str:
    """The name of the stream that pins the bases of the view with that uid."""
    return OF_A_VIEW + uid


def is_of_a_view(name: str) -> bool:
    """Whether the stream of that name belongs to a materialized view or a dynamic table."""
    return name.strip().casefold().startswith(OF_A_VIEW)


def require_own(names: Iterable[str]) -> None:
    """Say nothing if users may move the streams of these names. Raises StreamOfAView."""
    for name in names:
        if is_of_a_view(name):
            raise StreamOfAView(stream=name)


def require_name(name: str, argument: str = "name") -> None:
    """Say nothing if every store can keep the name and find it by its index. Raises InvalidArgument."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument(argument=argument, value=name, problem="give a name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        problem = f"it must be at most {LONGEST_NAME} characters, all of them printable"
        raise InvalidArgument(argument=argument, value=name[:LONGEST_NAME], problem=problem)
    if is_of_a_view(name):
        problem = f"names that begin with {OF_A_VIEW} are those of streams that belong to views"
        raise InvalidArgument(argument=argument, value=name, problem=problem)


def require_stream_name(name: str, argument: str = "name") -> None:
    """The same for a new stream, which must be found without blanks around its name: lists of names have none. Raises
    InvalidArgument.
    """
    require_name(name, argument)
    if name != name.strip():
        raise InvalidArgument(argument=argument, value=name, problem="it must not begin or end with a blank")
