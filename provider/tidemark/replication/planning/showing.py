"""Which columns of an object the lake has, and how: plain, hashed, masked, or not at all.

Patterns are of names, and a name can change between two looks. So a column that some pattern hides is remembered by its
number, with the name that did it. It stays hidden under any next name, until no pattern names the old name either. Of
several answers the one that hides more counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import (
    Column,
    FoundObject,
    ObjectName,
    ReplicationOptions,
    Selection,
    Shown,
    TableSchema,
    TypeKind,
    UnifiedType,
)
from tidemark.replication.planning.patterns import fits, parts_of

__all__ = [
    "ChosenColumns",
    "chosen_columns",
    "held_columns",
    "in_the_lake",
    "is_held_by_others",
    "most_hidden",
    "renamed_notices",
    "rules_of",
    "shown",
    "shown_otherwise",
]

_MORE = (Shown.PLAIN, Shown.HASHED, Shown.MASKED, Shown.EXCLUDED)
_TEXT = UnifiedType(TypeKind.STRING)
_ARGUMENTS = {Shown.HASHED: "hash_columns", Shown.MASKED: "mask_columns", Shown.EXCLUDED: "exclude"}


def rules_of(
    selection: Selection,
    options: ReplicationOptions | None,
    held: tuple[HeldColumn, ...],
    *,
    by_name: bool = False,
) -> ColumnRules:
    """Of an object, by the selection and options of its replication."""
    if options is None:
        return ColumnRules(selection, held=held, by_name=by_name)
    return ColumnRules(selection, options.mask_columns, options.hash_columns, held, options.hash_mark, by_name)


def shown(rules: ColumnRules, of: ObjectName, name: str, number: int | None = None, *, key: bool = False) -> Shown:
    """How the lake has the column. `key`: part of the primary key, which an include of other columns does not leave
    out.
    """
    names = dict.fromkeys((name, *_held(rules, name, number)))
    return most_hidden(_under(rules, of, one, key) for one in names)


def most_hidden(several: Iterable[Shown]) -> Shown:
    """Of several answers the one that hides more."""
    return max(several, key=_MORE.index)


@dataclass(frozen=True)
class ChosenColumns:
    """`schema`: columns as the lake has them; `left`: those that it does not have."""

    schema: TableSchema
    left: tuple[Column, ...]


def chosen_columns(rules: ColumnRules, of: ObjectName, schema: TableSchema, excluded: Collection[str]) -> ChosenColumns:
    """`excluded`: names of more columns that are left out."""
    kept, left = [], []
    for column in schema.columns:
        how = shown(rules, of, column.name, column.number, key=column.key)
        if how is Shown.EXCLUDED or column.name in excluded:
            left.append(column)
        else:
            kept.append(in_the_lake(column, how))
    return ChosenColumns(TableSchema(tuple(kept)), tuple(left))


def in_the_lake(column: Column, how: Shown) -> Column:
    """The column as the lake has it. The value in rows older than the column is left out for a hidden one."""
    if how is Shown.PLAIN:
        return column
    unknown = column.unknown_fill or column.filled is not None
    return replace(column, type=_TEXT, shown=how, filled=None, unknown_fill=unknown)


def held_columns(rules: ColumnRules, of: ObjectName, schema: TableSchema) -> tuple[HeldColumn, ...]:
    """Those to be remembered from now on: also such as are gone, since a backlog of the log may have them. Without
    numbers it has them under their names, so those that are gone are forgotten.
    """
    if rules.by_name:
        return tuple(_held_by_name(rules, of, schema))
    found = {column.number: column for column in schema.columns if column.number is not None}
    before = {one.number: one.names for one in rules.held}
    hidden = []
    for number in sorted({*found, *before}):
        column = found.get(number)
        names = dict.fromkeys((*before.get(number, ()), *(() if column is None else (column.name,))))
        key = column is not None and column.key
        if hiding := _hiding(rules, of, names, key):
            hidden.append(HeldColumn(number, tuple(hiding), most_hidden(hiding.values())))
    return tuple(hidden)


def _held_by_name(rules: ColumnRules, of: ObjectName, schema: TableSchema) -> Iterator[HeldColumn]:
    for column in schema.columns:
        names = dict.fromkeys((*_held(rules, column.name, None), column.name))
        if hiding := _hiding(rules, of, names, column.key):
            yield HeldColumn(0, tuple(hiding), most_hidden(hiding.values()), column=column.name)


def _hiding(rules: ColumnRules, of: ObjectName, names: Iterable[str], key: bool) -> dict[str, Shown]:
    return {one: how for one in names if (how := _under(rules, of, one, key)) is not Shown.PLAIN}


def renamed_notices(rules: ColumnRules, of: ObjectName, schema: TableSchema) -> Iterator[str]:
    """Columns that only a name of before hides."""
    for column in schema.columns:
        now = _under(rules, of, column.name, column.key)
        how = shown(rules, of, column.name, column.number, key=column.key)
        if now is not how:
            was = ", ".join(one for one in _held(rules, column.name, column.number) if one != column.name)
            called = f"{of.text}.{column.name}"
            if rules.by_name:
                yield (
                    f"column {column.name} came when {was} went, and may be the same, so it is {how.value}."
                    f" Name {called} in {_ARGUMENTS[how]}, too, or no longer name {was}"
                )
                continue
            yield (
                f"column {was} is called {column.name} now, and stays {how.value}: name {called} in"
                f" {_ARGUMENTS[how]}, too"
            )


def shown_otherwise(
    held: Iterable[HeldColumn], found: FoundObject, there: Collection[int | str | None]
) -> tuple[str, ...]:
    """Names of the columns whose values the lake has otherwise than it is to have them now. `held`: those that were
    hidden; `there`: numbers of the columns that existed, or names, if the source gives no numbers. A column that was
    excluded has no value in the lake.
    """
    known = {one.casefold() if isinstance(one, str) else one for one in there}
    before = {_identity(one.number, one.column or ""): one.shown for one in held}
    left = (one for one in found.held if one.shown is Shown.EXCLUDED)
    now = (
        *((_identity(one.number, one.name), one.name, one.shown) for one in found.schema.columns),
        *((_identity(one.number, one.column or ""), one.column or one.names[-1], one.shown) for one in left),
    )
    return tuple(
        name for one, name, how in now if one in known and before.get(one, Shown.PLAIN) not in (how, Shown.EXCLUDED)
    )


def _identity(number: int | None, name: str) -> int | str:
    return number or name.casefold()


def is_held_by_others(rules: ColumnRules, name: str) -> bool:
    """Whether names of before hide a column without a number."""
    return any(one.casefold() != name.casefold() for one in _held(rules, name, None))


def _held(rules: ColumnRules, name: str, number: int | None) -> Sequence[str]:
    if number is not None:
        return next((one.names for one in rules.held if one.number == number), ())
    named = (one for one in rules.held if one.column is not None) if rules.by_name else ()
    return next((one.names for one in named if str(one.column).casefold() == name.casefold()), ())


def _under(rules: ColumnRules, of: ObjectName, name: str, key: bool) -> Shown:
    path = (of.schema, of.table, name)
    if _named(rules, rules.selection.exclude, path) or not (key or _included(rules, path)):
        return Shown.EXCLUDED
    if _named(rules, rules.mask, path):
        return Shown.MASKED
    return Shown.HASHED if _named(rules, rules.hash, path) else Shown.PLAIN


def _named(rules: ColumnRules, patterns: Sequence[str], path: Sequence[str]) -> bool:
    """In any case, the schema and the table are so, too: nobody here knows whether the server distinguishes them."""
    return any(len(parts := parts_of(one)) == 3 and fits(path, parts, any_case=rules.by_name) for one in patterns)


def _included(rules: ColumnRules, path: Sequence[str]) -> bool:
    """An object that is included by its columns alone has these."""
    wanted = _of_table(rules, path, any_case=False) or _of_table(rules, path, any_case=rules.by_name)
    some = bool(wanted) and all(len(parts) == 3 for parts in wanted)
    return not some or any(fits(path, parts, any_case=rules.by_name) for parts in wanted)


def _of_table(rules: ColumnRules, path: Sequence[str], *, any_case: bool) -> list[tuple[str, ...]]:
    include = (parts_of(one) for one in rules.selection.include)
    return [parts for parts in include if fits(path[:2], parts[:2], any_case=any_case)]
