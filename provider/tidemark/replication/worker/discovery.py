"""The tables that the source has now of a replication's selection, and which of them can be replicated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tidemark.control.store import ControlStore
from tidemark.errors import ObjectNotReplicable, ReplicationRefused
from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.replication import (
    Column,
    FoundObject,
    HeldTable,
    ObjectName,
    ReplicatedObject,
    Replication,
    Selection,
    Shown,
)
from tidemark.replication.planning.another_cluster import Elsewhere, elsewhere, unsure_tables
from tidemark.replication.planning.kept_out import held_tables, without_renamed
from tidemark.replication.planning.problems import judge
from tidemark.replication.planning.selection import (
    held_names,
    select,
    under_known_names,
    unmatched,
    unmatched_excludes,
    why_no_target,
)
from tidemark.replication.planning.unmatched import hiding_patterns, unmatched_columns
from tidemark.replication.planning.unnumbered import held_now
from tidemark.replication.sources.open import Source
from tidemark.replication.worker.objects import Remembered, remembered

__all__ = ["Discovery", "discover", "missing_from_log", "postpone", "rediscover"]

_NAMES = frozenset(
    {
        "regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator", "regproc",
        "regprocedure", "regrole", "regtype",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Discovery:
    """`everything` that the source has, under its own names; `selected`, under the names by which objects are known.
    `stops`: problems with which the replication cannot continue; `warnings`: problems that need a look. `there`: what
    is known of another cluster, if the source is one.
    """

    everything: tuple[FoundObject, ...]
    selected: tuple[FoundObject, ...]
    stops: tuple[str, ...]
    warnings: tuple[str, ...]
    there: Elsewhere | None = None


def discover(source: Source, replication: Replication) -> Discovery:
    """Of one that has not started: it starts without any problem, and with an object at least. A pattern that names
    one column to hide, and matches none, is a problem, too. Without a catalog it is a warning. Raises
    ObjectNotReplicable.
    """
    everything = source.discover(replication)
    selected = select(replication.selection, everything, options=replication.options)
    shown = unmatched_columns(hiding_patterns(replication.selection, replication.options), everything)
    misspelt = [text for one, text in shown.items() if one.exact and not replication.kind.is_landed]
    warnings = (
        *_warnings(replication.selection, everything, selected),
        *_unmatched_excludes(replication.selection, everything),
        *(text for text in shown.values() if text not in misspelt),
    )
    stops = (*(problem.text for problem in source.problems(replication, selected)), *misspelt)
    if all(one.unsupported is not None for one in selected):
        stops = (*stops, "Its selection names nothing that can be replicated.", *warnings)
    return Discovery(everything, selected, stops, warnings)


def rediscover(store: ControlStore, source: Source, replication: Replication, *, by_name: bool = False) -> Discovery:
    """Of a replication that has started: a table with a problem of any kind is unsupported, and stops no other.

    A problem of the server is a warning: the part that cannot continue fails by itself, and says so. Its own slot and
    publication are another matter. `by_name`: the source is another cluster, whose ids are of other tables. Raises
    ReplicationRefused where it may have what is hidden, under a name that nobody knows.
    """
    before = remembered(store, replication.name)
    everything = _with_remembered(replication, source.discover(replication), before.objects)
    objects, held, tables, there = before.objects, before.held, before.tables, None
    if by_name:
        _require_sure(replication, before, everything)
        there = elsewhere(before.last_seen, before.tables, everything)
        objects = tuple(replace(one, source_id=there.ids.get(one.uid, "")) for one in objects)
        held, tables = {there.ids[uid]: columns for uid, columns in there.held.items()}, there.tables
    known = _Known(replication.selection, objects, tables)
    held = held_now(held, before.column_names, everything)
    chosen = partial(select, replication.selection, options=replication.options, held=held)
    everything = _without(everything, _unselectable(chosen, everything, known))
    selected = chosen(known.of(everything))
    everything = _without(everything, _unplaced(selected, objects, replication.options.target_table))
    selected = chosen(known.of(everything))
    verdict = judge(source.problems(replication, selected), objects)
    everything = _without(everything, verdict.unsupported)
    selected = chosen(known.of(everything))
    warnings = (
        *_warnings(replication.selection, everything, selected, {one.name for one in objects}),
        *_that_hide_nothing(replication, (*everything, *known.of(everything)), held, tables),
        *verdict.warnings,
    )
    return Discovery(everything, selected, verdict.stops, warnings, there)


def _with_remembered(
    replication: Replication, found: Sequence[FoundObject], known: Sequence[ReplicatedObject]
) -> tuple[FoundObject, ...]:
    """Envelopes and event files show the tables that changed. A table that they do not show has not changed."""
    if not replication.kind.is_landed:
        return tuple(found)
    shown = {one.source_id for one in found}
    kept = (FoundObject(one.name, one.source_id, one.schema) for one in known if one.source_id not in shown)
    return (*found, *kept)


def _require_sure(replication: Replication, before: Remembered, everything: Sequence[FoundObject]) -> None:
    """Raises ReplicationRefused."""
    lost, new = unsure_tables(replication.selection, before.last_seen, before.tables, everything)
    if new:
        problem = (
            f"the source is another cluster, where {', '.join(lost)} is not found, and values of it are hidden. One of"
            f" {', '.join(new)} may be that table under another name. Name each of these in include, by exactly its"
            " name, to replicate it, or in exclude. Then recover the replication again."
        )
        raise ReplicationRefused(replication=replication.name, problem=problem)


@dataclass(frozen=True)
class _Known:
    """Objects and excluded tables, by their ids."""

    selection: Selection
    objects: Sequence[ReplicatedObject]
    tables: Sequence[HeldTable]

    def of(self, everything: Sequence[FoundObject]) -> tuple[FoundObject, ...]:
        """The tables that can be selected; a renamed table is selected by the name it is known by."""
        known = {one.source_id: one.name for one in self.objects}
        held = held_tables(self.selection, self.tables, everything, known)
        return under_known_names(known, without_renamed(self.selection, held, everything, known)).found


def postpone(discovery: Discovery, source_ids: Collection[str], why: str) -> Discovery:
    """The same without these tables, which the next run looks at again."""
    unsupported = dict.fromkeys(source_ids, why)
    everything, selected = _without(discovery.everything, unsupported), _without(discovery.selected, unsupported)
    added = (f"{one.name.text} is not replicated yet: {why}" for one in selected if one.source_id in unsupported)
    return replace(discovery, everything=everything, selected=selected, warnings=(*discovery.warnings, *added))


def _unselectable(
    chosen: Callable[[Sequence[FoundObject]], object], everything: Sequence[FoundObject], known: _Known
) -> Mapping[str, str]:
    """Tables that lack, by the selection, columns that a replication cannot do without."""
    found: dict[str, str] = {}
    for one in known.of(everything):
        try:
            chosen((one,))
        except ObjectNotReplicable as error:
            found[one.source_id] = str(error)
    return found


def _unplaced(
    selected: Sequence[FoundObject], known: Sequence[ReplicatedObject], target_table: str
) -> Mapping[str, str]:
    wanted = {one.name: one.source_id for one in selected if one.unsupported is None}
    refused = why_no_target(held_names(known), wanted, target_table=target_table)
    return {wanted[name]: why for name, why in refused.items()}


def _without(everything: Sequence[FoundObject], unsupported: Mapping[str, str]) -> tuple[FoundObject, ...]:
    """The same, and why some of them are not replicated."""
    return tuple(replace(one, unsupported=unsupported.get(one.source_id, one.unsupported)) for one in everything)


def _warnings(
    selection: Selection,
    everything: Sequence[FoundObject],
    selected: Sequence[FoundObject],
    known: Collection[ObjectName] = (),
) -> Iterator[str]:
    for pattern in unmatched(selection, everything):
        yield f"The selection names {pattern}, and the source has nothing of that name."
    for one in selected:
        if one.unsupported is not None:
            yield f"{one.name.text} is not replicated: {one.unsupported}"
        else:
            yield from missing_from_log(one, known)


def _that_hide_nothing(
    replication: Replication,
    found: Sequence[FoundObject],
    held: Mapping[str, tuple[HeldColumn, ...]],
    tables: Sequence[HeldTable],
) -> Iterator[str]:
    """Patterns that no name of a table or a column explains, nor one of before. Landed events do not show what is
    excluded, once they were read.
    """
    selection = replication.selection
    if replication.kind.is_landed:
        selection = replace(selection, exclude=())
    yield from _unmatched_excludes(selection, found, [name for one in tables for name in one.names])
    yield from unmatched_columns(hiding_patterns(selection, replication.options), found, held).values()


def _unmatched_excludes(
    selection: Selection, found: Sequence[FoundObject], before: Collection[ObjectName] = ()
) -> Iterator[str]:
    for pattern in unmatched_excludes(selection, found, before):
        yield f"The selection excludes {pattern}, and the source has nothing of that name."


def missing_from_log(one: FoundObject, known: Collection[ObjectName] = ()) -> Iterator[str]:
    """The changes and columns that the log of a replicated object does not have. Of partitions one that is `known` is
    not told.
    """
    if one.parted and one.name not in known:
        yield (
            f"{one.name.text} is partitioned: TRUNCATE, DROP, DETACH and ATTACH of a single partition make no event."
            " The next run alerts if a partition was dropped or rewritten. If a partition with rows was attached, the"
            " table needs a backfill. Partitions that were created and dropped between two runs stay unseen."
        )
    if one.generated:
        names = ", ".join(one.generated)
        yield (
            f"{one.name.text} is replicated without its generated columns, which the log does not have: {names}."
            " Exclude them, to say that they are not needed."
        )
    if named := [column.name for column in one.schema.columns if _is_name(column)]:
        yield (
            f"{one.name.text} has columns whose values are names of other things ({', '.join(named)}): when these are"
            " renamed, the log does not tell. Exclude them, or request a backfill then."
        )


def _is_name(column: Column) -> bool:
    return column.shown is Shown.PLAIN and column.native.removesuffix("[]") in _NAMES
