"""Types of a database by OID and modifier: domains, enums, composites and arrays of them, as unified types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.replication.model.replication import UnifiedType
from tidemark.replication.sources.postgresql.types import STRING, numeric_choice, unified_type

if TYPE_CHECKING:
    import psycopg2

__all__ = ["NativeType", "types_of"]

_TYPES = """
SELECT t.oid::bigint, t.typtype::text, t.typbasetype::bigint, t.typtypmod,
       CASE WHEN e.typarray = t.oid THEN e.oid::bigint END
FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE t.oid = ANY(%s::oid[])
"""
_NAMES = "SELECT o::bigint, m, format_type(o, m) FROM unnest(%s::oid[], %s::int[]) AS pair(o, m)"


@dataclass(frozen=True)
class NativeType:
    """A type in the words of the source, with its schema where it is not built in, and the unified one."""

    text: str
    unified: UnifiedType


@dataclass(frozen=True)
class _Type:
    kind: str
    base: int
    base_modifier: int
    element: int | None


def types_of(
    connection: psycopg2.extensions.connection, types: Iterable[tuple[int, int]], *, numeric_as: str | None = None
) -> Mapping[tuple[int, int], NativeType]:
    """Each (OID, modifier), as a Relation message or the catalog has it. A type that is gone is STRING.

    Raises InvalidArgument for a `numeric_as` that is no decimal.
    """
    numeric_choice(numeric_as)
    asked = sorted(set(types))
    if not asked:
        return {}
    known = _closure(connection, {oid for oid, _ in asked})
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, ([oid for oid, _ in asked], [modifier for _, modifier in asked]))
        return {
            (oid, modifier): NativeType(text, _unified(oid, modifier, known, numeric_as))
            for oid, modifier, text in cursor.fetchall()
        }


def _closure(connection: psycopg2.extensions.connection, asked: set[int]) -> dict[int, _Type]:
    """These types, those that they are domains over, and those of their items."""
    known: dict[int, _Type] = {}
    with connection.cursor() as cursor:
        while asked:
            cursor.execute(_TYPES, (sorted(asked),))
            found = {oid: _Type(*rest) for oid, *rest in cursor.fetchall()}
            known.update(found)
            asked = {oid for one in found.values() for oid in (one.base, one.element) if oid} - known.keys()
    return known


def _unified(oid: int, modifier: int, known: Mapping[int, _Type], numeric_as: str | None) -> UnifiedType:
    one = known.get(oid)
    if one is None:
        return STRING
    if one.kind == "d":
        return _unified(one.base, one.base_modifier, known, numeric_as)
    element = _unified(one.element, modifier, known, numeric_as) if one.element else None
    return unified_type(oid, modifier, element=element, numeric_as=numeric_as)
