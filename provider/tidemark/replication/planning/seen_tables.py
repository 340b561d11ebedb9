"""The changes that a table's log does not have, by two looks at it in the catalog of its source.

A rewrite of the rows leaves no event of a row. The catalog shows that there was one, by the identity of the storage,
and mostly whether it can have changed values. If it can, nobody but the source knows the values: the object needs a
backfill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tidemark.replication.model.catalog import SeenColumn, SeenTable
from tidemark.replication.model.replication import TableSchema
from tidemark.replication.planning.native import holds_all

__all__ = [
    "REWRITTEN",
    "REWRITTEN_BY_ALTER",
    "WENT",
    "beyond",
    "carried",
    "hidden",
    "parts_notices",
    "unlogged_notices",
    "was_rewritten",
    "why_lacking",
    "why_unlike",
]

_MOST_NAMES = 20
WENT = (
    "partitions of it were dropped or detached since its last backfill ({names}): their rows made no event, and stay in"
    " the target. Request a backfill to remove them"
)
REWRITTEN = (
    "partitions of it were rewritten since its last backfill ({names}). Nothing is wrong after a VACUUM FULL or"
    " CLUSTER. After a TRUNCATE of a partition, request a backfill: its rows made no event, and stay in the target"
)
REWRITTEN_BY_ALTER = (
    "an ALTER TABLE has written its rows again since its last backfill, and has changed no column. Nothing is wrong"
    " after pg_repack or SET ACCESS METHOD. After SET UNLOGGED and SET LOGGED, request a backfill: the changes in"
    " between made no event"
)


def was_rewritten(before: SeenTable, after: SeenTable) -> bool:
    """Whether a part that both have has other storage now. VACUUM FULL and TRUNCATE do that, too."""
    return any(after.files.get(part, file) != file for part, file in before.files.items())


def carried(before: SeenTable | None, after: SeenTable) -> SeenTable:
    """`after`, with the earlier knowledge of rows that are older than a column, which a rewrite forgets. It also has
    the partitions that went or were rewritten since the last copy.

    A column that is new since is known if the catalog has one value for it. It is known, too, if there is no value and
    nothing was rewritten: then such rows have NULL.
    """
    rewritten = before is not None and was_rewritten(before, after)
    columns = []
    for column in after.columns:
        same = None if before is None else before.column(column.number)
        if same is not None and _same_type(same, column) and (same.known or not column.fills):
            columns.append(replace(column, fills=same.fills, known=same.known))
        else:
            null = before is not None and same is None and not column.fills and not rewritten
            columns.append(replace(column, known=null or len(column.fills) == 1))
    if before is None:
        return replace(after, columns=tuple(columns))
    went = [part for part in before.files if part not in after.files]
    names = [before.parts[part].name if part in before.parts else f"OID {part}" for part in went]
    others = [after.parts[part].name for part in _rewritten_alone(before, after)]
    return replace(
        after,
        columns=tuple(columns),
        went=_more(before.went, names),
        rewritten=_more(before.rewritten, others),
        rewritten_by_alter=before.rewritten_by_alter or _was_rewritten_by_alter(before, after),
    )


def unlogged_notices(seen: SeenTable) -> Iterator[str]:
    """Whether the table may have been unlogged. A table of the replication's own publication cannot be."""
    if seen.rewritten_by_alter and seen.entry is not None:
        yield REWRITTEN_BY_ALTER


def parts_notices(seen: SeenTable) -> Iterator[str]:
    """The partitions that changed without an event, and may be otherwise in the target."""
    for notice, names in ((WENT, seen.went), (REWRITTEN, seen.rewritten)):
        if names:
            others = " and others" if len(names) == _MOST_NAMES else ""
            yield notice.format(names=", ".join(names) + others)


def _was_rewritten_by_alter(before: SeenTable, after: SeenTable) -> bool:
    """An ALTER TABLE gives the table another one for its long values; TRUNCATE, VACUUM FULL and CLUSTER do not."""
    if "" in (before.toast, after.toast) or before.toast == after.toast:
        return False
    pairs = ((before.column(one.number), one) for one in after.columns)
    return all(was is not None and _same_type(was, now) and not _was_altered(was, now) for was, now in pairs)


def _more(before: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*before, *names)))[:_MOST_NAMES]


def _rewritten_alone(before: SeenTable, after: SeenTable) -> Sequence[str]:
    """Partitions with other storage, unless one transaction gave it to all of several. That was a TRUNCATE of the
    table, which made an event, or an ALTER TABLE, which the columns show.
    """
    both = [part for part in before.files if part in after.parts and part in after.files]
    other = [part for part in both if before.files[part] != after.files[part]]
    together = len(other) > 1 and other == both and len({after.parts[part].version for part in other}) == 1
    return () if together else other


def hidden(seen: SeenTable, plain: Callable[[SeenColumn], bool]) -> SeenTable:
    """The same, without values of columns that are not `plain`: what is seen is kept, and goes to jobs."""

    def without(column: SeenColumn) -> SeenColumn:
        return replace(column, fills=(), known=column.known and not column.fills)

    return replace(seen, columns=tuple(one if plain(one) else without(one) for one in seen.columns))


def beyond(seen: SeenTable, known: TableSchema | None) -> SeenTable:
    """The part for a reader of the log that knows the columns of `known`: the values of old rows in other columns."""
    numbers = {column.number for column in (known.columns if known is not None else ())}
    columns = tuple(replace(one, shape={}) for one in seen.columns if one.number not in numbers)
    return replace(seen, columns=columns, parts={}, went=(), rewritten=(), unsure=None)


def why_lacking(before: SeenTable, after: SeenTable) -> str | None:
    """Why the table has rows that made no event, which a target without rows lacks, too; None if it has not."""
    return next(_attached(before, after), None)


def why_unlike(before: SeenTable, after: SeenTable, replicated: Callable[[SeenColumn], bool]) -> str | None:
    """Why existing rows may have values now that their events did not have; None if they cannot.

    `after`: as `carried`; `replicated`: whether the lake has the column's values, or hashes of them.
    """
    return next(_reasons(before, after, replicated), None)


def _reasons(before: SeenTable, after: SeenTable, replicated: Callable[[SeenColumn], bool]) -> Iterator[str]:
    rewritten = was_rewritten(before, after)
    yield from _attached(before, after)
    for column in after.columns:
        if not replicated(column):
            continue
        was = before.column(column.number)
        if was is None:
            if not column.known:
                yield f"column {column.name} was added, and the table was rewritten: its rows may have any value in it"
        elif not _same_type(was, column):
            if rewritten or not holds_all(was.native, column.native):
                rows = ", and its rows were rewritten" if rewritten else ""
                yield f"column {column.name} changed its type from {was.native} to {column.native}{rows}"
        else:
            if rewritten and _was_altered(was, column):
                yield f"column {column.name} was altered and its rows were rewritten, by a USING clause perhaps"
            yield from _of_type(was, column)


def _attached(before: SeenTable, after: SeenTable) -> Iterator[str]:
    """A partition that is made as one is filled by events. A look of a release before this one does not say since when
    a partition is attached.
    """
    for part, now in after.parts.items():
        was = before.parts.get(part)
        there = part in before.files and (was is None or was.joined == now.joined)
        if now.brought and not there:
            yield f"partition {now.name} was attached with rows, or has got them since: those that it had made no event"


def _of_type(was: SeenColumn, now: SeenColumn) -> Iterator[str]:
    """An enum's label that is another, or the attributes of a composite type. All rows are written with them, but
    without the names of attributes.
    """
    for key, value in was.shape.items():
        if key not in now.shape or (_is_label(key) and now.shape[key] != value):
            yield f"type {now.native} of column {now.name} has another label or attribute: {value} is gone or changed"
    for key, value in now.shape.items():
        if key not in was.shape and not _is_label(key):
            yield f"type {now.native} of column {now.name} has a new attribute {value}"


def _is_label(key: str) -> bool:
    """A label that is new is in no row that is old."""
    return key.startswith("label ")


def _same_type(one: SeenColumn, other: SeenColumn) -> bool:
    return (one.type, one.modifier) == (other.type, other.modifier)


def _was_altered(was: SeenColumn, now: SeenColumn) -> bool:
    """Its entry is another. If it has a default, an ALTER TYPE recreates that, and no other rewrite does."""
    return was.version != now.version and (was.default is None or was.default != now.default)
