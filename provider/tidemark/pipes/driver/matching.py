"""MATCH_BY_COLUMN_NAME: the columns of files that belong to the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql.types import StructField

from tidemark.pipes.model.copying import MatchBy

__all__ = ["matched", "mismatch"]

_MOST_SHOWN = 20


def matched(names: Iterable[str], fields: Sequence[StructField], how: MatchBy) -> Mapping[str, tuple[str, ...]]:
    """Column of the table → names in the files, all spellings of it; columns without a name are left out.

    Names of the files that the table does not have are ignored.
    """

    def folded(name: str) -> str:
        return name.casefold() if how is MatchBy.CASE_INSENSITIVE else name

    spellings: dict[str, list[str]] = {}
    for name in sorted(names):
        spellings.setdefault(folded(name), []).append(name)
    found = ((field.name, tuple(spellings.get(folded(field.name), ()))) for field in fields)
    return {column: there for column, there in found if there}


def mismatch(names: Sequence[str], fields: Sequence[StructField], how: MatchBy) -> str | None:
    """Why a file with these names has no value for the table. None if a name matches, or if it has no names."""
    if not names or matched(names, fields, how):
        return None
    there, wanted = _shown([name for name in names if name]), _shown([field.name for field in fields])
    return f"no column of the file has the name of a column of the table; the file has {there}, the table has {wanted}"


def _shown(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _MOST_SHOWN:,} more"] if len(names) > _MOST_SHOWN else []
    return ", ".join([*names[:_MOST_SHOWN], *more]) or "no names"
