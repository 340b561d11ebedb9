"""MATCH_BY_COLUMN_NAME: the columns of files that belong to the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import StructField

from tidemark.errors import CopyRefused
from tidemark.pipes.model.copying import MatchBy

__all__ = ["matched"]


def matched(
    names: Sequence[str], fields: Sequence[StructField], how: MatchBy, table: str
) -> Mapping[str, tuple[str, ...]]:
    """Column of the table → names in the files, all spellings of it; columns without a name are left out.

    Names of the files that the table does not have are ignored. Raises CopyRefused if no name matches.
    """

    def folded(name: str) -> str:
        return name.casefold() if how is MatchBy.CASE_INSENSITIVE else name

    found = {
        field.name: tuple(sorted(name for name in names if folded(name) == folded(field.name))) for field in fields
    }
    there = {column: spellings for column, spellings in found.items() if spellings}
    if names and not there:
        problem = (
            f"no column of the files has the name of a column of the table; the files have {', '.join(names[:20])},"
            f" the table has {', '.join(field.name for field in fields)}."
        )
        raise CopyRefused(table=table, problem=problem)
    return there
