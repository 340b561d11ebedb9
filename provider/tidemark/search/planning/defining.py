"""The paths of a table after an ADD or a DROP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemark.errors import SearchNotFound, SearchRefused
from tidemark.model.own_tables import SEARCH_SUFFIX
from tidemark.model.table_log import Metadata
from tidemark.search.model.paths import Method, SearchColumn, SearchPath, ValueKind
from tidemark.search.model.requests import Target
from tidemark.search.planning.columns import NotSearched, column_of, equality_columns

__all__ = ["paths_added", "paths_left", "search_location", "targets_without_paths"]

_ALL = (Target(Method.EQUALITY),)
_BY_BOUNDS = (ValueKind.WHOLE, ValueKind.TEXT, ValueKind.DATE, ValueKind.DECIMAL)


def search_location(table_path: str) -> str:
    """The path of the search table of a table."""
    return f"{table_path.rstrip('/')}{SEARCH_SUFFIX}"


def paths_added(
    table: str, metadata: Metadata, paths: Sequence[SearchPath], next_id: int, targets: Sequence[Target]
) -> tuple[tuple[SearchPath, ...], int]:
    """All paths with the new ones, and the next id. A path that exists is not added again. Raises SearchRefused."""
    found = list(paths)
    for method, column in _wanted(table, metadata, targets or _ALL):
        if not any((path.method, path.column.physical) == (method, column.physical) for path in found):
            found.append(SearchPath(next_id, method, column))
            next_id += 1
    return tuple(found), next_id


def paths_left(table: str, paths: Sequence[SearchPath], targets: Sequence[Target]) -> tuple[SearchPath, ...]:
    """The paths without those of the targets; none for no targets. Raises SearchNotFound for a target without one."""
    for target in targets_without_paths(paths, targets):
        raise SearchNotFound(table=table, what=f" {target.said}")
    return tuple(path for path in paths if targets and not any(_is_meant(path, target) for target in targets))


def targets_without_paths(paths: Sequence[SearchPath], targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets that none of the paths is meant by."""
    return tuple(target for target in targets if not any(_is_meant(path, target) for path in paths))


def _is_meant(path: SearchPath, target: Target) -> bool:
    if target.id is not None:
        return path.id == target.id
    names = tuple(part.lower() for part in path.column.parts)
    same = not target.parts or names == tuple(part.lower() for part in target.parts)
    return same and target.method in (None, path.method)


def _wanted(table: str, metadata: Metadata, targets: Sequence[Target]) -> Iterator[tuple[Method, SearchColumn]]:
    for target in targets:
        assert target.method is not None
        if not target.parts:
            columns = [one for one in equality_columns(metadata) if _against(target.method, one) is None]
            if not columns:
                raise SearchRefused(table=table, said=target.said, problem="no column has a type that is searched")
            yield from ((target.method, column) for column in columns)
            continue
        try:
            column = column_of(metadata, target.parts)
        except NotSearched as error:
            raise SearchRefused(table=table, said=target.said, problem=str(error)) from error
        against = _against(target.method, column)
        if against is not None:
            raise SearchRefused(table=table, said=target.said, problem=against)
        yield target.method, column


def _against(method: Method, column: SearchColumn) -> str | None:
    if method is Method.EQUALITY:
        return None
    if column.is_array:
        return f"{column.name} is an array, whose elements are searched by EQUALITY"
    if method is Method.SUBSTRING and column.kind is not ValueKind.TEXT:
        return f"{column.name} is of the type {column.type}, and parts are searched in texts"
    if method in (Method.RANGE, Method.ORDER) and column.kind not in _BY_BOUNDS:
        return f"the log has no exact least and greatest values of the type {column.type}"
    return None
