"""Which numbers (attnum) the columns of a relation in the log have, by a catalog that is newer than it. Pure.

A Relation message has names only, and the catalog is as of now. A name may have been renamed, dropped or recreated in
between. Some facts are sure: numbers are given in rising order and never twice, and a relation lists its columns by
number. A column of now existed from the moment that a column with a higher number came. If that leaves several answers,
a column is taken to have kept the name that it had before and has now. A column that is gone is taken to have kept the
name it had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from tidemark.replication.model.replication import TableSchema

__all__ = ["numbers_of"]

_MOST_OPTIONAL = 12  # columns that may or may not have been there, beyond which nothing is tried


def numbers_of(
    names: Sequence[str], live: TableSchema, dropped: Collection[int], base: TableSchema
) -> list[int | None]:
    """The number of each of the relation's columns; None where the catalog of now does not tell it.

    `live`: the columns of now; `dropped`: numbers of columns that are gone. `base`: what was known before the relation,
    all of it numbered.
    """
    known = {column.number for column in base.columns if column.number is not None}
    last = max(known, default=0)
    now = {column.number for column in live.columns if column.number is not None}
    went = {number for number in dropped if number in known or number > last}
    back = {number for number in now if number <= last and number not in known}  # was generated, or excluded
    if len(went | back) > _MOST_OPTIONAL:
        return [None] * len(names)
    found = set(_possible(len(names), now - back, went | back, last))
    before = {column.number: column.name for column in base.columns}
    kept = {one.number: one.name for one in live.columns if before.get(one.number) == one.name}
    found = _with_names(found, names, kept)
    found = _with_names(found, names, {number: before[number] for number in went & known})
    return [
        numbers.pop() if len(numbers := {one[place] for one in found}) == 1 else None for place in range(len(names))
    ]


def _with_names(
    found: set[tuple[int, ...]], names: Sequence[str], kept: Mapping[int | None, str]
) -> set[tuple[int, ...]]:
    """Those in which columns have the names that they kept; all where there is none such."""
    fit = {one for one in found if all(kept.get(n, name) == name for n, name in zip(one, names, strict=True))}
    return fit or found


def _possible(count: int, sure: Collection[int], optional: Collection[int], last: int) -> Iterator[tuple[int, ...]]:
    """Every set of `count` numbers that a relation may have had, from when `last` was the highest number until now."""
    for highest in {last, *(number for number in {*sure, *optional} if number > last)}:
        must = [number for number in sure if number <= highest]
        may = [number for number in optional if number <= highest]
        for chosen in combinations(may, count - len(must)) if count >= len(must) else ():
            yield tuple(sorted((*must, *chosen)))
