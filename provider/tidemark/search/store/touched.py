"""The search optimization that tasks kept up, and the last task of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.newest import newest_value, values_of_each
from tidemark.control.run_keys import RunPart, Touch
from tidemark.search.store.schema import searches, upkeeps

__all__ = ["search_runs", "searches_of_runs"]

_of, _upkeep = searches.c, upkeeps.c


def search_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task of the last upkeep of each; before it was kept, the one that read its newest commit. One query."""
    newest = newest_value(_upkeep.run, _upkeep.search_uid == _of.uid, of=_of.uid, order=_upkeep.version)
    return values_of_each(connection, _of.uid, uids, _of.kept_run, newest)


def searches_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The search optimization that these tasks kept up, by uid, with its commits and its problem. Of upkeeps that had
    nothing to do, or failed, the last alone is known. Two queries, which read those that the DAG owns.
    """
    owned, met = part.owned("search_optimization"), part.has(_of.problem_run)
    last = sa.select(_of.uid, sa.case((met, _of.problem)).label("problem"))
    rows = connection.execute(last.where(_of.uid.in_(owned), sa.or_(part.has(_of.kept_run), met)))
    found = {row.uid: Touch("nothing to do" if row.problem is None else "upkeep failed", row.problem) for row in rows}
    query = (
        sa.select(_upkeep.search_uid, sa.func.sum(_upkeep.files), sa.func.sum(_upkeep.rows))
        .where(_upkeep.search_uid.in_(owned), part.has(_upkeep.run))
        .group_by(_upkeep.search_uid)
    )
    for uid, files, written in connection.execute(query):
        problem = found[uid].why if uid in found else None
        found[uid] = Touch(f"upkeep: {files:,} files indexed, {written:,} rows", problem)
    return found
