"""Columns that are qualified by more than the last part of their table's name, as in `shop.orders.id`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

__all__ = ["Qualifier", "full_qualifiers", "unclear"]


@dataclass(frozen=True)
class Qualifier:
    """The names before a column, in lower case. [start, end): the part of the text before the last of them."""

    names: tuple[str, ...]
    start: int
    end: int


def full_qualifiers(tree: exp.Expr, tables: Collection[tuple[str, ...]]) -> Iterator[Qualifier]:
    """Those of the columns and stars of these tables. `tables`: the parts of their names, in lower case."""
    for column in tree.find_all(exp.Column):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        for count in range(len(column.parts) - 1, 1, -1):
            names = tuple(part.name.lower() for part in parts[:count])
            if any(table[-count:] == names for table in tables):
                yield Qualifier(names, parts[0].meta["start"], parts[count - 1].meta["start"])
                break


def unclear(
    tree: exp.Expr, tables: Collection[tuple[str, ...]], columns: Collection[str]
) -> tuple[Qualifier, str] | None:
    """A qualifier whose last part alone may be another table, or whose first part may be a column; with the reason."""
    aliases = {str(node.name).lower() for node in tree.find_all(exp.TableAlias)}
    for found in full_qualifiers(tree, tables):
        last = found.names[-1]
        if last in aliases or sum(table[-1] == last for table in tables) > 1:
            return found, f"{last} is another name of the query, too"
        if found.names[0] in columns:
            return found, f"{found.names[0]} is a column, too"
    return None
