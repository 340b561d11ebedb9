"""Which tables and columns of a source a replication takes, by patterns of names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tidemark.errors import InvalidArgument, ObjectNotReplicable, ReplicationRefused
from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import (
    FoundObject,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    ReplicationOptions,
    Selection,
    Shown,
    TableSchema,
    WriteMode,
)
from tidemark.replication.planning.patterns import fits, parts_of
from tidemark.replication.planning.showing import chosen_columns, held_columns, renamed_notices, rules_of, shown
from tidemark.replication.planning.target_names import DEFAULT_TABLE, table_of

__all__ = [
    "KnownNames",
    "held_names",
    "is_backfilled",
    "is_included",
    "mode_of",
    "names_object",
    "require_column_patterns",
    "require_patterns",
    "require_targets",
    "select",
    "selects",
    "under_known_names",
    "unmatched",
    "unmatched_excludes",
    "why_no_target",
]


def require_patterns(argument: str, patterns: Iterable[str], *, columns: bool = True) -> None:
    """Each is `schema`, `schema.table` or, with `columns`, `schema.table.column`. Raises InvalidArgument."""
    most = 3 if columns else 2
    for pattern in patterns:
        parts = parts_of(pattern)
        if not 1 <= len(parts) <= most:
            forms = "schema, schema.table" + (" or schema.table.column" if columns else "")
            problem = f'each is {forms}; * stands for any text, and a name with a dot goes into double quotes: "a.b"'
            raise InvalidArgument(argument=argument, value=pattern, problem=problem)


def require_column_patterns(argument: str, patterns: Iterable[str]) -> None:
    """Each is `schema.table.column`. Raises InvalidArgument."""
    for pattern in patterns:
        if len(parts_of(pattern)) != 3:
            problem = (
                "each is schema.table.column; * stands for any text, and a name with a dot goes into double quotes"
            )
            raise InvalidArgument(argument=argument, value=pattern, problem=problem)


def names_object(patterns: Iterable[str], name: ObjectName, *, any_case: bool = False) -> bool:
    """Whether a pattern of a schema or a table names the object."""
    path = (name.schema, name.table)
    listed = (parts_of(pattern) for pattern in patterns)
    return any(fits(path, parts, any_case=any_case) for parts in listed if len(parts) < 3)


def is_included(selection: Selection, name: ObjectName, *, any_case: bool = False) -> bool:
    """Whether an include names the object or a column of it; an exclude may still leave it out."""
    path = (name.schema, name.table)
    listed = (parts_of(one)[:2] for one in selection.include)
    return not selection.include or any(fits(path, parts, any_case=any_case) for parts in listed)


def select(
    selection: Selection,
    found: Sequence[FoundObject],
    *,
    options: ReplicationOptions | None = None,
    held: Mapping[str, tuple[HeldColumn, ...]] = MappingProxyType({}),
) -> tuple[FoundObject, ...]:
    """The objects that are taken, each with the columns that are, in the order of their names. `options`: which columns
    are masked and hashed; `held`: by source id, columns that a name of before hides.

    An include of columns takes these and the key. Raises ObjectNotReplicable for a key column that is excluded or
    masked, and for an object with no column left. It does not for an object that is unsupported anyway.
    """
    taken = (one for one in found if selects(selection, one.name, any_case=one.folds_tables))
    return tuple(
        _with_columns(rules_of(selection, options, held.get(one.source_id, ()), by_name=one.folds_columns), one)
        for one in sorted(taken, key=lambda one: one.name)
    )


@dataclass(frozen=True)
class KnownNames:
    """The found tables, under the names by which objects are registered. `renamed`: such a name → the one it has now.

    `taken`: names of others that now belong to an object which was renamed; they are not in `found`.
    """

    found: tuple[FoundObject, ...]
    renamed: Mapping[str, str]
    taken: tuple[str, ...]


def under_known_names(known: Mapping[str, ObjectName], found: Sequence[FoundObject]) -> KnownNames:
    """An object is known by its id (`known`: id → name), so a renamed table continues under its old name. A new table
    that has taken that name since has to wait until the old one is gone.
    """
    there = {one.source_id for one in found}
    held = {name for source_id, name in known.items() if source_id in there}
    renamed: dict[str, str] = {}
    taken: list[str] = []
    kept: list[FoundObject] = []
    for one in found:
        name = known.get(one.source_id, one.name)
        if one.source_id not in known and name in held:
            taken.append(name.text)
            continue
        if name != one.name:
            renamed[name.text] = one.name.text
        kept.append(replace(one, name=name))
    return KnownNames(tuple(kept), renamed, tuple(taken))


def unmatched(selection: Selection, found: Sequence[FoundObject]) -> tuple[str, ...]:
    """The includes that match no existing name: most likely they are misspelt."""
    there = {one: parts_of(one) for one in selection.include}
    return tuple(pattern for pattern, parts in there.items() if not any(_is_there(parts, one) for one in found))


def unmatched_excludes(
    selection: Selection, found: Iterable[FoundObject], before: Iterable[ObjectName] = ()
) -> tuple[str, ...]:
    """The same of excludes of schemas and tables. `before`: names that excluded tables had."""
    there = {(one.name, one.folds_tables) for one in found} | {(name, False) for name in before}
    tables = (one for one in selection.exclude if len(parts_of(one)) < 3)
    return tuple(
        one for one in tables if not any(names_object((one,), name, any_case=any_case) for name, any_case in there)
    )


def is_backfilled(options: ReplicationOptions, name: ObjectName) -> bool:
    """Whether the object is backfilled without a request."""
    return options.backfill and not names_object(options.backfill_exclude, name)


def mode_of(options: ReplicationOptions, name: ObjectName, schema: TableSchema) -> WriteMode:
    """The mode that the options name for the table. Else a table without a key is append-only, unless the replication
    mirrors such tables, too.
    """
    if names_object(options.append_only_tables, name):
        return WriteMode.APPEND_ONLY
    if names_object(options.merge_tables, name):
        return WriteMode.MERGE
    if schema.keys or options.mode is WriteMode.APPEND_ONLY:
        return options.mode
    return options.without_key


def require_targets(replication: str, names: Iterable[ObjectName], *, target_table: str = DEFAULT_TABLE) -> None:
    """Each object has a target of its own. `a_b.c` and `a.b_c` would share one. So would names that differ in case
    only, or by a slash, which no table has in its name. Raises ReplicationRefused.
    """
    owners: dict[str, ObjectName] = {}
    for name in sorted(names):
        table = table_of(name, target_table)
        other = owners.setdefault(table.casefold(), name)
        if other != name:
            problem = (
                f"{other.text} and {name.text} would be written to one target, {table}. Exclude one of them, "
                "or give it a replication of its own with another target."
            )
            raise ReplicationRefused(replication=replication, problem=problem)


def held_names(known: Iterable[ReplicatedObject]) -> set[ObjectName]:
    """The objects whose target is theirs; one that was never replicated has none."""
    return {one.name for one in known if one.state is not ObjectState.UNSUPPORTED or one.applied is not None}


def why_no_target(
    held: Collection[ObjectName], wanted: Iterable[ObjectName], *, target_table: str = DEFAULT_TABLE
) -> Mapping[ObjectName, str]:
    """The names in `wanted` whose target belongs to one in `held`, or to another in `wanted`: why, and the fix."""
    owners = {table_of(name, target_table).casefold(): name for name in sorted(held)}
    rivals: dict[str, list[ObjectName]] = defaultdict(list)
    for name in sorted(set(wanted) - set(held)):
        rivals[table_of(name, target_table).casefold()].append(name)
    return {
        name: (
            f"It would be written to {table_of(name, target_table)}, as {other.text} is. Rename it, exclude one of "
            "them, or give it a replication of its own with another target."
        )
        for target, names in rivals.items()
        for name in names
        for other in [owners.get(target) or next((one for one in names if one != name), name)]
        if other != name
    }


def selects(selection: Selection, name: ObjectName, *, any_case: bool = False) -> bool:
    """Whether the selection takes the object, or columns of it."""
    if not is_included(selection, name, any_case=any_case):
        return False
    return not names_object(selection.exclude, name, any_case=any_case)


def _with_columns(rules: ColumnRules, found: FoundObject) -> FoundObject:
    chosen = chosen_columns(rules, found.name, found.schema, ())
    masked = [column.name for column in chosen.schema.columns if column.key and column.shown is Shown.MASKED]
    keys = [column.name for column in chosen.left if column.key]
    if found.unsupported is None and (masked or keys or not chosen.schema.columns):
        what = "all of its columns are excluded"
        remedy = "Leave it in the selection, or exclude the whole table."
        if keys:
            what = f"the key column {', '.join(keys)} is excluded"
        elif masked:
            what = f"the key column {', '.join(masked)} is masked, so that nothing would identify its rows"
            remedy = "Hash it (hash_columns), leave it plain, or exclude the whole table."
        raise ObjectNotReplicable(object=found.name.text, problem=what, remedy=remedy)
    return replace(
        found,
        schema=chosen.schema,
        excluded=(*found.excluded, *(column.name for column in chosen.left)),
        generated=tuple(one for one in found.generated if shown(rules, found.name, one) is not Shown.EXCLUDED),
        held=held_columns(rules, found.name, found.schema),
        notices=(*found.notices, *renamed_notices(rules, found.name, found.schema)),
    )


def _is_there(parts: tuple[str, ...], one: FoundObject) -> bool:
    path = (one.name.schema, one.name.table)
    if not fits(path, parts[:2], any_case=one.folds_tables):
        return False
    names = (column.name for column in one.schema.columns)
    return len(parts) < 3 or any(fits((name,), parts[2:], any_case=one.folds_columns) for name in names)
