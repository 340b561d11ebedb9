"""Search paths of a table as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.model.codec import to_json
from tidemark.model.streams import TableRef

__all__ = ["COVERAGE", "EVERYWHERE", "GRAM", "Method", "Search", "SearchColumn", "SearchPath", "ValueKind"]

COVERAGE = 0  # the path id of rows that say which files a path covers
EVERYWHERE = -1  # in place of a file: this many files hold the value that all are read; of COVERAGE: a path's meaning
GRAM = 5  # characters


class Method(StrEnum):
    """The searches that a path serves."""

    EQUALITY = "EQUALITY"
    SUBSTRING = "SUBSTRING"
    RANGE = "RANGE"
    ORDER = "ORDER"


class ValueKind(StrEnum):
    """Types whose values are compared, and hashed, in the same way."""

    WHOLE = "whole"
    TEXT = "text"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    DECIMAL = "decimal"


@dataclass(frozen=True)
class SearchColumn:
    """A column, or a field of a struct. `parts`: its names, the outermost first. `physical`: those in files.
    `is_array`: its values are the elements. `type`: as Delta's schema has it.
    """

    parts: tuple[str, ...]
    physical: tuple[str, ...]
    kind: ValueKind
    type: str
    is_array: bool = False

    @property
    def name(self) -> str:
        """The name with dots, as it is shown."""
        return ".".join(self.parts)


@dataclass(frozen=True)
class SearchPath:
    """One path of a table. An `id` is never used twice for a definition. Another store, or one that was put back, may
    use it for another path.
    """

    id: int
    method: Method
    column: SearchColumn

    @property
    def has_rows(self) -> bool:
        """Whether the search table has rows of the path; others are served by the log of the base."""
        return self.method in (Method.EQUALITY, Method.SUBSTRING)

    @property
    def meaning(self) -> str:
        """The values of a file that its rows in the search table have; equal in any store."""
        return to_json((self.method, self.column.physical, self.column.kind, self.column.is_array))

    @property
    def said(self) -> str:
        """The path as a statement names it."""
        return f"{self.method.value}({self.column.name})"


@dataclass(frozen=True)
class Search:
    """The search optimization of a table. `location`: its search table. `kept_version`: the version of the base that
    the last upkeep covers, and `kept_ids` the paths that it covers; None before the first. `files`, `rows`, `size`: of
    the search table after it, `files` those of the base that it covers.
    """

    uid: str
    table: TableRef
    location: str
    paths: tuple[SearchPath, ...]
    next_id: int
    created_at: datetime
    kept_version: int | None = None
    kept_ids: tuple[int, ...] = ()
    kept_at: datetime | None = None
    files: int = 0
    rows: int = 0
    size: int = 0
    problem: str | None = None
    problem_at: datetime | None = None
    problem_run: str | None = None

    @property
    def app_id(self) -> str:
        """The application under which Delta's log numbers the upkeep."""
        return f"tidemark.search.{self.uid}"

    @property
    def stored_paths(self) -> tuple[SearchPath, ...]:
        """The paths with rows in the search table."""
        return tuple(path for path in self.paths if path.has_rows)
