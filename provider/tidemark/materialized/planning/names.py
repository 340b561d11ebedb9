"""Names of views: one or two parts below the lake root, since no catalog knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument
from tidemark.materialized.model.definitions import KeptKind
from tidemark.sql.table_names import table_name
from tidemark.streams.planning.names import require_name

if TYPE_CHECKING:
    from tidemark.sql.text import Cursor

__all__ = ["read_name", "require_view_name", "title_of", "without_catalog", "words_of"]

_PROBLEM = "a view is below the lake root and in no catalog, so its name is schema.name"


def require_view_name(name: str, argument: str = "name") -> None:
    """Say nothing if a view can have the name. Raises InvalidArgument."""
    require_name(name, argument)
    if table_name(name).only_in_catalog:
        raise InvalidArgument(argument=argument, value=name, problem=_PROBLEM)


def read_name(cursor: Cursor, kind: KeptKind) -> str:
    """The name of a view in a statement. Raises SqlCompilationError with its place."""
    found = cursor.name(f"the name of {words_of(kind)}")
    meant = table_name(found.text)
    if meant.only_in_catalog or meant.path is not None:
        raise cursor.fails(_PROBLEM, found.span)
    return found.text


def without_catalog(name: str) -> str | None:
    """The name in a catalog as a view could have it; None for any other name."""
    meant = table_name(name)
    return ".".join(meant.parts[-2:]) if meant.only_in_catalog else None


def title_of(kind: KeptKind) -> str:
    """The kind at the beginning of a sentence."""
    return "Materialized view" if kind is KeptKind.MATERIALIZED_VIEW else "Dynamic table"


def words_of(kind: KeptKind) -> str:
    """The kind in words, with its article."""
    return "a materialized view" if kind is KeptKind.MATERIALIZED_VIEW else "a dynamic table"
