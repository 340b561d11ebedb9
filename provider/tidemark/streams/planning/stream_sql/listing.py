"""Which streams SHOW STREAMS lists (R131), by their names alone."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.sql.like import like_pattern

__all__ = ["listed", "name_parts"]


def name_parts(name: str) -> tuple[str | None, str | None, str]:
    """(database, schema, name) of a stream's whole name (R12); None where it does not say."""
    *outer, last = name.split(".")
    return (outer[-2] if len(outer) > 1 else None), (outer[-1] if outer else None), last


def listed(
    names: Iterable[str],
    *,
    like: str | None = None,
    database: str | None = None,
    schema: str | None = None,
    starts_with: str | None = None,
    limit: int | None = None,
    from_name: str | None = None,
) -> tuple[str, ...]:
    """The whole names that pass the filters, by database, schema and name.

    `like` knows % and _ and no case, `starts_with` knows case; both look at the last part of the name. At most `limit`
    are listed, those behind `from_name`.
    """
    pattern = None if like is None else like_pattern(like)
    kept = []
    for name in sorted(names, key=_order):
        in_database, in_schema, last = name_parts(name)
        if (
            (pattern is None or pattern.fullmatch(last))
            and _same(database, in_database)
            and _same(schema, in_schema)
            and (starts_with is None or last.startswith(starts_with))
            and (from_name is None or last.casefold() > from_name.casefold())
        ):
            kept.append(name)
    return tuple(kept[:limit])


def _order(name: str) -> tuple[str, str, str]:
    database, schema, last = name_parts(name)
    return (database or "").casefold(), (schema or "").casefold(), last.casefold()


def _same(wanted: str | None, actual: str | None) -> bool:
    return wanted is None or (actual is not None and actual.casefold() == wanted.casefold())
