"""The files that can hold rows of a predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.model.table_log import AddFile
from tidemark.search.model.paths import GRAM, Method, SearchColumn, SearchPath, ValueKind
from tidemark.search.model.terms import AllOf, AnyOf, Anything, Holds, IsIn, Like, Term, Within
from tidemark.search.planning.bounds import bounds_of, can_hold
from tidemark.search.planning.hashes import grams_of, hash_of

__all__ = ["Choice", "Entry", "Lookup", "Step", "choose", "entries_of"]

Entry = tuple[int, int]
"""The id of a path, and a hash."""


@dataclass(frozen=True)
class Lookup:
    """The answers of a search table. `covered`: path id → files that it covers. `found`: entry → files that hold it;
    None if so many do that they are not listed. An entry without an answer is in no covered file.
    """

    covered: Mapping[int, frozenset[str]] = field(default_factory=dict)
    found: Mapping[Entry, frozenset[str] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """The files that are left by one part of a predicate, and the reason."""

    said: str
    why: str
    left: int
    of: int


@dataclass(frozen=True)
class Choice:
    """The files that can hold rows, in the order of the table, among `total`, and the `steps` that left others out."""

    files: tuple[AddFile, ...]
    total: int
    steps: tuple[Step, ...]

    @property
    def pruned(self) -> bool:
        """Whether a file is left out."""
        return len(self.files) < self.total


def entries_of(term: Term, paths: Sequence[SearchPath]) -> frozenset[Entry]:
    """All entries of the search table that decide on files of the term."""
    return frozenset(entry for part in _leaves(term) for entries in _entries(part, paths) for entry in entries)


def choose(
    term: Term,
    files: Mapping[str, AddFile],
    statistics: Callable[[AddFile], Mapping[str, Any]],
    paths: Sequence[SearchPath],
    lookup: Lookup,
) -> Choice:
    """The files that may have a row for which the term is true. `files`: path → file of the table."""
    chooser = _Chooser(files, statistics, paths, lookup, [])
    left = chooser.of(term, files.keys())
    kept = tuple(file for path, file in files.items() if path in left)
    return Choice(kept, len(files), tuple(chooser.steps))


def _leaves(term: Term) -> Iterator[Term]:
    waiting = [term]
    while waiting:
        one = waiting.pop()
        if isinstance(one, AllOf | AnyOf):
            waiting += one.parts
        else:
            yield one


def _entries(term: Term, paths: Sequence[SearchPath]) -> list[frozenset[Entry]]:
    """Sets of entries: a file that has rows of the term holds all entries of at least one set. Empty: the paths say
    nothing about the term.
    """
    path = _path_for(term, paths)
    if path is None:
        return []
    if path.method is Method.EQUALITY:
        assert isinstance(term, IsIn | Holds)
        return [frozenset({(path.id, hash_of(term.column.kind, value))}) for value in term.values]
    patterns = [term.pattern] if isinstance(term, Like) else [str(value) for value in _values(term)]
    grams = [grams_of(pattern) for pattern in patterns]
    if not all(grams):
        return []
    return [frozenset((path.id, hash_of(ValueKind.TEXT, gram)) for gram in one) for one in grams]


def _values(term: Term) -> tuple[Any, ...]:
    return term.values if isinstance(term, IsIn) else ()


def _path_for(term: Term, paths: Sequence[SearchPath]) -> SearchPath | None:
    """The path that serves the term: EQUALITY for values, else SUBSTRING for texts without wildcards of their own."""
    if not isinstance(term, IsIn | Holds | Like):
        return None
    same = [path for path in paths if path.has_rows and _is_same(path.column, term.column)]
    if not isinstance(term, Like):
        equal = next((path for path in same if path.method is Method.EQUALITY), None)
        if equal is not None:
            return equal
    if isinstance(term, Holds) or not all(map(_can_be_parted, _values(term))):
        return None
    return next((path for path in same if path.method is Method.SUBSTRING), None)


def _can_be_parted(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= GRAM and "%" not in value and "_" not in value


def _is_same(one: SearchColumn, other: SearchColumn) -> bool:
    return (one.physical, one.kind, one.is_array) == (other.physical, other.kind, other.is_array)


@dataclass(frozen=True)
class _Chooser:
    files: Mapping[str, AddFile]
    statistics: Callable[[AddFile], Mapping[str, Any]]
    paths: Sequence[SearchPath]
    lookup: Lookup
    steps: list[Step]

    def of(self, term: Term, among: Collection[str]) -> Collection[str]:
        """Those of the files that can hold rows of the term."""
        if isinstance(term, AllOf):
            left = among
            for part in sorted(term.parts, key=self._order):
                left = self.of(part, left)
            return left
        if isinstance(term, AnyOf):
            return {path for part in term.parts for path in self.of(part, among)}
        if isinstance(term, Anything):
            self.steps.append(Step(term.said, "no part of a search path: no file is left out", len(among), len(among)))
            return among
        return self._by_bounds(term, self._by_path(term, among))

    def _order(self, term: Term) -> int:
        """The parts that a path answers come first, since they leave few files to look at."""
        return 0 if _entries(term, self.paths) else 1 if not isinstance(term, Anything) else 2

    def _by_path(self, term: IsIn | Holds | Like | Within, among: Collection[str]) -> Collection[str]:
        wanted = _entries(term, self.paths)
        if not wanted:
            return among
        path = next(path for path in self.paths if path.id == next(iter(wanted[0]))[0])
        covered = self.lookup.covered.get(path.id, frozenset())
        holding = [self._holding(entries) for entries in wanted]
        if any(one is None for one in holding):
            self.steps.append(Step(_said(term), f"{path.said}: most files hold it", len(among), len(among)))
            return among
        found = frozenset().union(*(one for one in holding if one is not None))
        left = {one for one in among if one in found or one not in covered}
        newer = sum(one not in covered for one in left)
        why = f"{path.said}: {len(left) - newer} files hold it, {newer} are newer than the path"
        self.steps.append(Step(_said(term), why, len(left), len(among)))
        return left

    def _holding(self, entries: frozenset[Entry]) -> frozenset[str] | None:
        """The covered files that hold all of the entries; None if each of them is in most files."""
        listed = [found for entry in entries if (found := self.lookup.found.get(entry, frozenset())) is not None]
        return frozenset.intersection(*listed) if listed else None

    def _by_bounds(self, term: IsIn | Holds | Like | Within, among: Collection[str]) -> Collection[str]:
        left = {one for one in among if self._may_hold(term, self.files[one])}
        if len(left) < len(among):
            why = f"least and greatest {term.column.name} in the log"
            self.steps.append(Step(_said(term), why, len(left), len(among)))
        return left

    def _may_hold(self, term: IsIn | Holds | Like | Within, file: AddFile) -> bool:
        bounds = bounds_of(file, self.statistics(file), term.column)
        return bounds is None or can_hold(term, bounds)


def _said(term: IsIn | Holds | Like | Within) -> str:
    name = term.column.name
    if isinstance(term, Like):
        return f"{name} LIKE {term.pattern!r}"
    if isinstance(term, Within):
        signs = (">=" if term.with_least else ">", "<=" if term.with_most else "<")
        pairs = zip(signs, (term.least, term.most), strict=True)
        return " AND ".join(f"{name} {sign} {value!r}" for sign, value in pairs if value is not None)
    shown = ", ".join(repr(value) for value in term.values[:3]) + (", …" if len(term.values) > 3 else "")
    word = "holds one of" if isinstance(term, Holds) else "IN"
    return f"{name} {word} ({shown})"
