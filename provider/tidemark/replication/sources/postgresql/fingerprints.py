"""The catalog's facts about a table's rows and types. By them a later look knows the changes that the log did not have.

Reads the catalog only, and waits for no lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.replication.model.catalog import SeenColumn, SeenPart, SeenTable
from tidemark.replication.sources.postgresql.catalog import generated_kinds

if TYPE_CHECKING:
    import psycopg2

__all__ = ["seen_tables"]

_PARTS = """
SELECT CASE WHEN c.relispartition AND c.oid <> ALL(%(oids)s::oid[]) THEN pg_partition_root(c.oid)::oid ELSE c.oid END
       ::bigint, c.oid::bigint, c.relfilenode::bigint, n.nspname || '.' || c.relname, c.reltoastrelid::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
  AND (c.oid = ANY(%(oids)s::oid[]) OR c.relispartition AND pg_partition_root(c.oid)::oid = ANY(%(oids)s::oid[]))
"""
_JOINED = """
SELECT c.oid::bigint, min(n.nspname || '.' || c.relname), string_agg(i.xmin::text, ' ' ORDER BY i.inhrelid),
       bool_or(NOT EXISTS (SELECT FROM pg_attribute own JOIN pg_attribute made ON made.attrelid = own.attrelid
                           WHERE own.attrelid = i.inhrelid AND own.attnum > 0 AND made.attnum = -6
                             AND own.xmin = made.xmin AND own.cmin = made.cmin)),
       min(c.xmin::text)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN pg_partition_ancestors(c.oid) AS above(relid) JOIN pg_inherits i ON i.inhrelid = above.relid
WHERE c.oid = ANY(%s::oid[]) AND c.relispartition
GROUP BY c.oid
"""  # an ATTACH writes all columns of a table anew, so that none is as it was when the table (-6: tableoid) was made
_HAS_ROWS = """
SELECT oid::bigint FROM unnest(%s::oid[]) AS oid
WHERE CASE WHEN EXISTS (SELECT FROM pg_locks WHERE relation = oid AND mode = 'AccessExclusiveLock') THEN true
           ELSE pg_relation_size(oid) > 0 END
"""  # the size is asked under a lock
_COLUMNS = """
SELECT a.attrelid::bigint, a.attnum::int, a.attname::text, format_type(a.atttypid, a.atttypmod),
       a.atttypid::bigint::text, a.atttypmod, a.xmin::text, (SELECT d.oid::bigint::text FROM pg_attrdef d
       WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
FROM pg_attribute a
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> ALL(%s)
ORDER BY a.attrelid, a.attnum
"""
_FILLS = """
SELECT a.attrelid::bigint, a.attname::text, array_to_string(a.attmissingval, '')
FROM pg_attribute a
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.atthasmissing
"""
_TYPES = """
SELECT t.oid::bigint, nullif(t.typbasetype, 0)::bigint,
       CASE WHEN t.typcategory = 'A' THEN nullif(t.typelem, 0)::bigint END,
       (SELECT r.rngsubtype::bigint FROM pg_range r WHERE r.rngtypid = t.oid), t.typrelid::bigint, t.typtype::text
FROM pg_type t WHERE t.oid = ANY(%s::oid[]) AND t.oid >= 16384
"""
_LABELS = "SELECT enumtypid::bigint, oid::bigint, enumlabel::text FROM pg_enum WHERE enumtypid = ANY(%s::oid[])"
_ATTRIBUTES = """
SELECT a.attrelid::bigint, a.attnum::int, a.attname::text, a.atttypid::bigint, a.atttypmod
FROM pg_attribute a WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
"""


def seen_tables(connection: psycopg2.extensions.connection, oids: Iterable[int]) -> Mapping[str, SeenTable]:
    """Those of the tables that exist, by their OIDs as text, as one moment has them if the transaction does."""
    asked = sorted(set(oids))
    if not asked:
        return {}
    names: dict[int, str] = {}
    toasts: dict[int, str] = {}
    parts: dict[int, dict[int, str]] = defaultdict(dict)
    for table, part, file, name, toast in _rows(connection, _PARTS, {"oids": asked}):
        if part == table:
            names[table], toasts[table] = name, str(toast or "")
        if file:  # a partitioned table has none itself
            parts[table][part] = str(file)
    columns = _columns(connection, asked, parts)
    joined = _joined(connection, [part for found in parts.values() for part in found])
    return {
        str(oid): SeenTable(
            name,
            {str(part): file for part, file in sorted(parts[oid].items())},
            tuple(columns.get(oid, ())),
            {str(part): joined[part] for part in sorted(parts[oid]) if part in joined and part != oid},
            toast=toasts[oid],
        )
        for oid, name in names.items()
    }


def _joined(connection: psycopg2.extensions.connection, parts: Sequence[int]) -> Mapping[int, SeenPart]:
    """The tables that are partitions. A partition that is locked may have rows."""
    rows = _rows(connection, _JOINED, (list(parts),)) if parts else []
    attached = [oid for oid, _, _, was_table, _ in rows if was_table]
    brought = {oid for (oid,) in _rows(connection, _HAS_ROWS, (attached,))} if attached else set()
    return {oid: SeenPart(name, joined, oid in brought, version) for oid, name, joined, _, version in rows}


def _columns(
    connection: psycopg2.extensions.connection, asked: Sequence[int], parts: Mapping[int, Mapping[int, str]]
) -> Mapping[int, list[SeenColumn]]:
    rows = _rows(connection, _COLUMNS, (list(asked), list(generated_kinds(connection))))
    shapes = _shapes(connection, {int(row[4]) for row in rows})
    root = {part: table for table, found in parts.items() for part in found}
    fills: dict[tuple[int, str], set[str]] = defaultdict(set)
    for part, name, text in _rows(connection, _FILLS, (list(root),)):
        if text is not None:
            fills[root[part], name].add(text)
    columns: dict[int, list[SeenColumn]] = defaultdict(list)
    for oid, number, name, native, kind, modifier, version, default in rows:
        known = tuple(sorted(fills[oid, name])[:2])
        shape = shapes.get(int(kind), {})
        columns[oid].append(SeenColumn(number, name, native, kind, modifier, version, default, known, shape=shape))
    return columns


def _shapes(connection: psycopg2.extensions.connection, asked: set[int]) -> Mapping[int, Mapping[str, str]]:
    """Labels and attributes of what each type consists of: of a domain its base, of an array its items."""
    within: dict[int, set[int]] = {}
    own: dict[int, dict[str, str]] = defaultdict(dict)
    left = set(asked)
    while left:
        found = _rows(connection, _TYPES, (sorted(left),))
        within.update({oid: set() for oid in left})
        for oid, *inner, _, _ in found:
            within[oid].update(one for one in inner if one)
        enums = [oid for oid, *_, kind in found if kind == "e"]
        for oid, label, text in _rows(connection, _LABELS, (enums,)) if enums else ():
            own[oid][f"label {label}"] = text
        composites = {relation: oid for oid, *_, relation, kind in found if kind == "c"}
        for relation, number, name, kind, modifier in (
            _rows(connection, _ATTRIBUTES, (list(composites),)) if composites else ()
        ):
            oid = composites[relation]
            own[oid][f"attribute {oid}.{number} {kind} {modifier}"] = name
            within[oid].add(kind)
        left = {one for inner in within.values() for one in inner} - within.keys()
    return {oid: _gathered(oid, within, own) for oid in asked}


def _gathered(oid: int, within: Mapping[int, set[int]], own: Mapping[int, Mapping[str, str]]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    done, left = set[int](), {oid}
    while left:
        one = left.pop()
        done.add(one)
        texts.update(own.get(one, {}))
        left |= within.get(one, set()) - done
    return dict(sorted(texts.items()))


def _rows(connection: psycopg2.extensions.connection, statement: str, values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
