"""Which tables and columns of a source a replication takes, by patterns of names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tidemark.errors import InvalidArgument, ObjectNotReplicable, ReplicationRefused
from tidemark.model.replication import (
    FoundObject,
    ObjectName,
    ObjectState,
    Replicated,
    ReplicationOptions,
    Selection,
    TableSchema,
    WriteMode,
)
from tidemark.planning.replication.target_names import table_of

__all__ = [
    "KnownNames",
    "held_names",
    "is_backfilled",
    "mode_of",
    "names_object",
    "require_patterns",
    "require_targets",
    "select",
    "under_known_names",
    "unmatched",
    "why_no_target",
]

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


def require_patterns(argument: str, patterns: Iterable[str], *, columns: bool = True) -> None:
    """Each is `schema`, `schema.table` or, with `columns`, `schema.table.column`. Raises InvalidArgument."""
    most = 3 if columns else 2
    for pattern in patterns:
        parts = _parts(pattern)
        if not 1 <= len(parts) <= most:
            forms = "schema, schema.table" + (" or schema.table.column" if columns else "")
            problem = f'each is {forms}; * stands for any text, and a name with a dot goes into double quotes: "a.b"'
            raise InvalidArgument(argument=argument, value=pattern, problem=problem)


def names_object(patterns: Iterable[str], name: ObjectName) -> bool:
    """Whether a pattern of a schema or a table names the object."""
    return any(_names((name.schema, name.table), _parts(pattern)) for pattern in patterns if len(_parts(pattern)) < 3)


def select(selection: Selection, found: Sequence[FoundObject]) -> tuple[FoundObject, ...]:
    """The objects that are taken, each with the columns that are, in the order of their names.

    An include of columns takes these and the key. Raises ObjectNotReplicable for a key column that is excluded, and
    for an object of which no column is left; not for one that is unsupported anyway.
    """
    taken = (one for one in found if _takes(selection, one.name))
    return tuple(_with_columns(selection, one) for one in sorted(taken, key=lambda one: one.name))


@dataclass(frozen=True)
class KnownNames:
    """What was found, under the names by which objects are registered. `renamed`: such a name → the one it has now.

    `taken`: names of others that now belong to an object which was renamed; they are not in `found`.
    """

    found: tuple[FoundObject, ...]
    renamed: Mapping[str, str]
    taken: tuple[str, ...]


def under_known_names(known: Mapping[str, ObjectName], found: Sequence[FoundObject]) -> KnownNames:
    """An object is known by its id (`known`: id → name), so a table that was renamed goes on under its old name. A new
    table that has taken that name since has to wait until the old one is gone.
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
    """The includes that name nothing which is there: most likely they are misspelt."""
    return tuple(pattern for pattern in selection.include if not any(_is_there(_parts(pattern), one) for one in found))


def is_backfilled(options: ReplicationOptions, name: ObjectName) -> bool:
    """Whether the object is backfilled without being asked for."""
    return options.backfill and not names_object(options.backfill_exclude, name)


def mode_of(options: ReplicationOptions, schema: TableSchema) -> WriteMode:
    """A mirror needs a key: a table without one is append-only in every replication."""
    return options.mode if schema.keys else WriteMode.APPEND_ONLY


def require_targets(replication: str, names: Iterable[ObjectName]) -> None:
    """Each object has a target of its own: `a_b.c` and `a.b_c` would share one, and so would names that differ in case
    only, or by a slash, which no table has in its name. Raises ReplicationRefused.
    """
    owners: dict[str, ObjectName] = {}
    for name in sorted(names):
        other = owners.setdefault(table_of(name).casefold(), name)
        if other != name:
            problem = (
                f"{other.text} and {name.text} would be written to one target, {table_of(name)}. Exclude one of them, "
                "or give it a replication of its own with another target."
            )
            raise ReplicationRefused(replication=replication, problem=problem)


def held_names(known: Iterable[Replicated]) -> set[ObjectName]:
    """The objects whose target is theirs; one that was never replicated has none."""
    return {one.name for one in known if one.state is not ObjectState.UNSUPPORTED or one.applied is not None}


def why_no_target(held: Collection[ObjectName], wanted: Iterable[ObjectName]) -> Mapping[ObjectName, str]:
    """Those of `wanted` that would be written where one of `held` is, or another of them: why, and what mends it."""
    owners = {table_of(name).casefold(): name for name in sorted(held)}
    rivals: dict[str, list[ObjectName]] = defaultdict(list)
    for name in sorted(set(wanted) - set(held)):
        rivals[table_of(name).casefold()].append(name)
    return {
        name: (
            f"It would be written to {table_of(name)}, as {other.text} is. Rename it, exclude one of them, or give it "
            "a replication of its own with another target."
        )
        for target, names in rivals.items()
        for name in names
        for other in [owners.get(target) or next((one for one in names if one != name), name)]
        if other != name
    }


def _takes(selection: Selection, name: ObjectName) -> bool:
    path = (name.schema, name.table)
    included = not selection.include or any(_names(path, _parts(one)[:2]) for one in selection.include)
    return included and not names_object(selection.exclude, name)


def _with_columns(selection: Selection, found: FoundObject) -> FoundObject:
    columns = found.schema.columns
    path = (found.name.schema, found.name.table)
    wanted = [parts for one in selection.include if _names(path, (parts := _parts(one))[:2])]
    some = bool(wanted) and all(len(parts) == 3 for parts in wanted)
    unwanted = [_parts(one) for one in selection.exclude if len(_parts(one)) == 3]
    kept = [
        column
        for column in columns
        if (not some or column.key or any(_names((*path, column.name), parts) for parts in wanted))
        and not any(_names((*path, column.name), parts) for parts in unwanted)
    ]
    left = [column for column in columns if column not in kept]
    keys = [column.name for column in left if column.key]
    if found.unsupported is None and (keys or not kept):
        what = f"the key column {', '.join(keys)} is excluded" if keys else "all of its columns are excluded"
        remedy = "Leave it in the selection, or exclude the whole table."
        raise ObjectNotReplicable(object=found.name.text, problem=what, remedy=remedy)
    excluded = tuple(column.name for column in left)
    return replace(found, schema=TableSchema(tuple(kept)), excluded=(*found.excluded, *excluded))


def _is_there(parts: tuple[str, ...], one: FoundObject) -> bool:
    path = (one.name.schema, one.name.table)
    if len(parts) < 3:
        return _names(path, parts)
    return any(_names((*path, column.name), parts) for column in one.schema.columns)


def _names(path: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the parts fit the beginning of the path."""
    return len(parts) <= len(path) and all(_fits(part, name) for part, name in zip(parts, path, strict=False))


def _fits(part: str, name: str) -> bool:
    return part == name or ("*" in part and _like(part).fullmatch(name) is not None)


@lru_cache(maxsize=1024)
def _like(part: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(text) for text in part.split("*")), re.DOTALL)


@lru_cache(maxsize=1024)
def _parts(pattern: str) -> tuple[str, ...]:
    """What the dots outside quotes divide; () for a text that is no pattern."""
    parts: list[str] = []
    at = 0
    while True:
        found = _PART.match(pattern, at)
        if found is None:
            return ()
        quoted, bare = found.groups()
        parts.append(bare if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if at == len(pattern):
            return tuple(parts)
        if pattern[at] != ".":
            return ()
        at += 1
