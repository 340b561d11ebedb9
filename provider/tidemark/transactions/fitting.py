"""Columns and keys that cannot go together are refused before anything is stored, and before a job is started."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.errors import LogIncomplete
from tidemark.planning.write_fit import require_fit
from tidemark.transactions.sources import SourceHead
from tidemark.transactions.targets import TargetHead

__all__ = ["require_columns"]


def require_columns(sources: Sequence[SourceHead], targets: Sequence[TargetHead]) -> None:
    """Each append and merge fits its target by the two logs. An idle stream, one on a view and one on files is not
    looked at. Raises TargetDoesNotFit, MissingMergeKey.
    """
    read = {source.stream_name.casefold(): source.schema for source in sources}
    schemas: dict[str, str] = {}
    for target in targets:
        name = (target.write.source or "").casefold()
        schema = read.get(name)
        if schema is None:
            continue
        try:
            found = schemas.setdefault(name, schemas.get(name) or schema())
        except LogIncomplete:  # the window is read by its commits, which are there
            continue
        require_fit(target.write, found, target.schema_json)
