"""Patterns that should hide columns and match none. Most likely they are misspelt, so the values would be shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.replication import FoundObject, ReplicationOptions, Selection
from tidemark.replication.planning.patterns import fits, parts_of, pattern_of
from tidemark.sql.alike import alike

__all__ = ["HidingPattern", "hiding_patterns", "unmatched_columns", "unmatched_notices"]


@dataclass(frozen=True)
class HidingPattern:
    """A pattern of columns, and the argument that has it."""

    argument: str
    pattern: str

    @property
    def exact(self) -> bool:
        """Whether it names one column: without a `*`."""
        return "*" not in self.pattern

    @property
    def parts(self) -> tuple[str, ...]:
        """Of the schema, the table and the column."""
        return parts_of(self.pattern)


def hiding_patterns(selection: Selection, options: ReplicationOptions) -> tuple[HidingPattern, ...]:
    """Those of `exclude`, `mask_columns` and `hash_columns` that are of columns."""
    listed = {"exclude": selection.exclude, "mask_columns": options.mask_columns, "hash_columns": options.hash_columns}
    found = (HidingPattern(argument, pattern) for argument, patterns in listed.items() for pattern in patterns)
    return tuple(one for one in found if len(one.parts) == 3)


def unmatched_columns(
    patterns: Sequence[HidingPattern],
    found: Sequence[FoundObject],
    held: Mapping[str, Sequence[HeldColumn]] = MappingProxyType({}),
) -> Mapping[HidingPattern, str]:
    """The patterns that match no column of a table, each with this in words and the names that were most likely meant.
    `held`: by source id, hidden columns that a name of before explains.
    """
    columns = [(one, _columns(one, held.get(one.source_id, ()))) for one in found]
    return {
        one: _told(one, columns)
        for one in patterns
        if not any(_matches(one.parts, table, names) for table, names in columns)
    }


def unmatched_notices(patterns: Sequence[HidingPattern], found: FoundObject) -> Iterator[str]:
    """Of the patterns that name one column of the object: those that match none."""
    own = [one for one in patterns if one.exact and _is_of(one.parts, found)]
    yield from unmatched_columns(own, (found,), {found.source_id: found.held}).values()


def _columns(one: FoundObject, held: Sequence[HeldColumn]) -> tuple[str, ...]:
    """Also those that the lake or the log does not have."""
    before = (name for column in held for name in column.names)
    return tuple(
        dict.fromkeys((*(column.name for column in one.schema.columns), *one.excluded, *one.generated, *before))
    )


def _is_of(parts: Sequence[str], one: FoundObject) -> bool:
    return fits((one.name.schema, one.name.table), parts[:2], any_case=one.folds_columns)


def _matches(parts: Sequence[str], one: FoundObject, columns: Sequence[str]) -> bool:
    return _is_of(parts, one) and any(fits((name,), parts[2:], any_case=one.folds_columns) for name in columns)


def _told(one: HidingPattern, columns: Sequence[tuple[FoundObject, Sequence[str]]]) -> str:
    near = _near(one.parts, columns) if one.exact else []
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"{one.argument} names {one.pattern}, which matches no column of the source and hides nothing.{meant}"


def _near(parts: Sequence[str], columns: Sequence[tuple[FoundObject, Sequence[str]]]) -> list[str]:
    """Columns of the table, or of the most similar tables."""
    schema, table, column = parts
    tables = {pattern_of((one.name.schema, one.name.table)): names for one, names in columns}
    asked = pattern_of((schema, table))
    return [
        f"{name}.{pattern_of((like,))}"
        for name in ([asked] if asked in tables else alike(asked, tables))
        for like in alike(column, tables[name])
    ]
