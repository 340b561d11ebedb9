"""Predicates on a table by which files can be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemark.search.model.paths import SearchColumn

__all__ = ["AllOf", "AnyOf", "Anything", "Holds", "IsIn", "Like", "Term", "Within", "is_exact"]


@dataclass(frozen=True)
class Anything:
    """A predicate by which no file can be left out. `said`: its text."""

    said: str


@dataclass(frozen=True)
class AllOf:
    """Predicates joined by AND."""

    parts: tuple[Term, ...]


@dataclass(frozen=True)
class AnyOf:
    """Predicates joined by OR."""

    parts: tuple[Term, ...]


@dataclass(frozen=True)
class IsIn:
    """The column has one of the values."""

    column: SearchColumn
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Holds:
    """The array has one of the values."""

    column: SearchColumn
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Like:
    """The text has the form of the pattern, in which % is any text and _ any character."""

    column: SearchColumn
    pattern: str


@dataclass(frozen=True)
class Within:
    """The value is between two bounds, None for none. `with_least`, `with_most`: whether the bound belongs to them."""

    column: SearchColumn
    least: Any = None
    most: Any = None
    with_least: bool = True
    with_most: bool = True


Term = Anything | AllOf | AnyOf | IsIn | Holds | Like | Within


def is_exact(term: Term) -> bool:
    """Whether the term says all that its text says."""
    if isinstance(term, AllOf | AnyOf):
        return all(map(is_exact, term.parts))
    return not isinstance(term, Anything)
