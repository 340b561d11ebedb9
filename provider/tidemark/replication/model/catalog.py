"""A table as it was last seen in the catalog of its source. By it the next look knows the changes that the log does not
have.

Rows can change without an event. The causes are a rewrite with a USING clause, the label of an enum, and an attribute
of a composite type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["HeldColumn", "SeenColumn", "SeenPart", "SeenTable", "Shown"]


class Shown(StrEnum):
    """How the lake has a column; a later one hides more."""

    PLAIN = "plain"
    HASHED = "hashed"  # HMAC-SHA256 of its text, in hexadecimal digits, by a secret of the connection
    MASKED = "masked"  # the same text for every value but NULL
    EXCLUDED = "excluded"  # not at all


@dataclass(frozen=True)
class SeenColumn:
    """A column that is in the log. `number`: which a rename keeps. `type` and `modifier`: its type's identity, `native`
    in the words of the source. `version`: of its entry in the catalog, another after each alteration. `default`: the
    identity of its default, None for none.

    `fills`: the texts, as the source writes them, that rows older than the column have according to the catalog, two at
    most. `known`: whether these are what such rows have: `fills`, or NULL for none. `shape`: of its enums and composite
    types: label or attribute → what it is.
    """

    number: int
    name: str
    native: str
    type: str
    modifier: int
    version: str
    default: str | None = None
    fills: tuple[str, ...] = ()
    known: bool = False
    shape: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SeenPart:
    """A partition with rows. `joined`: the identity of its being one, another after each ATTACH. `brought`: it was a
    table before and has rows, which made no event. `version`: of its entry in the catalog.
    """

    name: str
    joined: str
    brought: bool
    version: str


@dataclass(frozen=True)
class SeenTable:
    """`name`: `schema.table`, as it was called. `files`: of each part the identity of its storage, which a rewrite
    changes. `columns`: in the order of their numbers. `parts`: of a partitioned table, as `files`.

    `went`, `rewritten`: names of partitions that were dropped or detached, or got other storage, since the last copy.
    `entry`: the identity of its entry in a publication that others alter; each change of the entry gives another. None
    in the replication's own publication. `unsure`: a change that old rows do not have, seen while the target had no
    row. Events from before it may still come. `toast`: the identity of the table with its long values, "" for none.
    `rewritten_by_alter`: since the last copy an ALTER TABLE has written all rows again, and has changed no column.
    """

    name: str
    files: Mapping[str, str]
    columns: tuple[SeenColumn, ...]
    parts: Mapping[str, SeenPart] = field(default_factory=dict)
    went: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    entry: str | None = None
    unsure: str | None = None
    toast: str = ""
    rewritten_by_alter: bool = False

    def column(self, number: int | None) -> SeenColumn | None:
        """The column of that number; None if there is none."""
        return next((one for one in self.columns if one.number == number), None)


@dataclass(frozen=True)
class HeldColumn:
    """A column that is not shown as it is because of these names of it; its name now does not matter.

    `column`: its name at the last look, if the source gives columns no number; `number` is 0 then.
    """

    number: int
    names: tuple[str, ...]
    shown: Shown
    column: str | None = None
