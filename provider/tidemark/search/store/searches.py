"""Search optimization in the store: each move by name, with its condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import touch
from tidemark.model.codec import from_json, to_json
from tidemark.model.streams import Addressing, TableRef
from tidemark.search.model.jobs import KeepReport, Kept, UpkeepMark
from tidemark.search.model.paths import Search, SearchPath
from tidemark.search.store.schema import searches, upkeeps

__all__ = [
    "add_search",
    "any_lives",
    "end_search",
    "keep_commits",
    "live_searches",
    "newest_commit",
    "note_kept",
    "note_problem",
    "search_of",
    "searches_with_uids",
    "set_paths",
    "upkeeps_of",
]

_of = searches.c
_KIND = "search_optimization"
_NO_PROBLEM = {"problem": None, "problem_at": None, "problem_run": None}


def search_of(connection: sa.Connection, table_path: str) -> Search | None:
    """The live search optimization of the table at the canonical path, or None."""
    row = connection.execute(_live().where(_of.table_path == table_path)).mappings().first()
    return None if row is None else _of_row(row)


def live_searches(connection: sa.Connection) -> tuple[Search, ...]:
    """All that are not dropped, by the names of their tables; sorted here, since databases differ in how they sort."""
    found = map(_of_row, connection.execute(_live()).mappings())
    return tuple(sorted(found, key=lambda search: search.table.name.casefold()))


def any_lives(connection: sa.Connection) -> bool:
    """Whether any is not dropped."""
    return connection.execute(sa.select(_of.uid).where(_of.ended_at.is_(None)).limit(1)).first() is not None


def searches_with_uids(connection: sa.Connection, uids: Sequence[str]) -> tuple[Search, ...]:
    """Those of the uids that live."""
    return tuple(_of_row(row) for row in connection.execute(_live().where(_of.uid.in_(uids))).mappings())


def add_search(connection: sa.Connection, search: Search, *, by: str) -> None:
    """Add a search optimization; its table must have none. `by`: the key of the run, or who does it."""
    connection.execute(searches.insert().values(_values(search)))
    touch(connection, _KIND, [search.uid], by=by)


def set_paths(connection: sa.Connection, search: Search, paths: Sequence[SearchPath], next_id: int, *, by: str) -> bool:
    """Give it other paths; True if it had those that were read."""
    same = (_of.next_id == search.next_id, _of.paths == to_json(search.paths))
    return _change(connection, search, *same, by=by, paths=to_json(tuple(paths)), next_id=next_id)


def end_search(connection: sa.Connection, search: Search, *, at: datetime, by: str) -> bool:
    """End it; True if it lived. Its row and its history stay."""
    return _change(connection, search, by=by, ended_at=at)


def note_kept(
    connection: sa.Connection,
    search: Search,
    *,
    base_version: int,
    table_id: str,
    ids: Sequence[int],
    report: KeepReport | None,
    at: datetime,
    by: str,
) -> bool:
    """An upkeep has ended well; without a report it had nothing to do. False if a later version was noted of the table,
    which may be another than before, in the same place.
    """
    newest = _of.kept_version.is_(None) | (_of.kept_version <= base_version) | (_of.table_id != table_id)
    found: dict[str, Any] = {
        "table_id": table_id,
        "kept_version": base_version,
        "kept_ids": to_json(tuple(ids)),
        "kept_at": at,
        "kept_run": by,
    }
    if report is not None:
        found |= {"files": report.files, "rows": report.rows, "size": report.size}
    problem = None if report is None else report.problem
    said = _NO_PROBLEM if problem is None else {"problem": problem, "problem_at": at, "problem_run": by}
    kept = {} if report is None else said
    return _change(connection, search, newest, by=by, **found, **kept)


def note_problem(connection: sa.Connection, search: Search, *, problem: str, at: datetime, by: str) -> bool:
    """An upkeep has failed. False if it was dropped, or a later problem was noted."""
    newest = _of.problem_at.is_(None) | (_of.problem_at <= at)
    return _change(connection, search, newest, by=by, problem=problem, problem_at=at, problem_run=by)


def newest_commit(connection: sa.Connection, search: Search) -> int:
    """The newest version of the search table that is in the history; -1 for none."""
    found = connection.execute(sa.select(sa.func.max(upkeeps.c.version)).where(upkeeps.c.search_uid == search.uid))
    newest = found.scalar()
    return -1 if newest is None else int(newest)


def keep_commits(connection: sa.Connection, search: Search, commits: Sequence[Kept], *, run: str) -> None:
    """Add these commits to the history. A second time changes nothing."""
    known = newest_commit(connection, search)
    new = [_commit_values(search, commit, run) for commit in commits if commit.version > known]
    if new:
        connection.execute(upkeeps.insert(), new)


def upkeeps_of(connection: sa.Connection, search: Search, limit: int) -> tuple[Kept, ...]:
    """The newest commits of the upkeep, newest first."""
    query = sa.select(upkeeps).where(upkeeps.c.search_uid == search.uid)
    found = connection.execute(query.order_by(upkeeps.c.version.desc()).limit(limit)).mappings()
    return tuple(_commit_of(search, row) for row in found)


def _live() -> sa.Select[Any]:
    return sa.select(searches).where(_of.ended_at.is_(None))


def _change(connection: sa.Connection, search: Search, *conditions: Any, by: str, **values: Any) -> bool:
    standing = searches.update().where(_of.uid == search.uid, _of.ended_at.is_(None), *conditions)
    changed = connection.execute(standing.values(**values)).rowcount == 1
    if changed:
        touch(connection, _KIND, [search.uid], by=by)
    return changed


def _values(search: Search) -> dict[str, Any]:
    return {
        "uid": search.uid,
        "table_name": search.table.name,
        "table_path": search.table.path,
        "table_id": search.table.table_id,
        "addressing": search.table.addressing.value,
        "location": search.location,
        "paths": to_json(search.paths),
        "next_id": search.next_id,
        "created_at": search.created_at,
        "kept_ids": to_json(search.kept_ids),
        "files": search.files,
        "rows": search.rows,
        "size": search.size,
    }


def _of_row(row: sa.RowMapping) -> Search:
    return Search(
        uid=row["uid"],
        table=TableRef(row["table_name"], row["table_path"], row["table_id"], Addressing(row["addressing"])),
        location=row["location"],
        paths=from_json(tuple[SearchPath, ...], row["paths"]),
        next_id=row["next_id"],
        created_at=row["created_at"],
        kept_version=row["kept_version"],
        kept_ids=from_json(tuple[int, ...], row["kept_ids"]),
        kept_at=row["kept_at"],
        files=row["files"],
        rows=row["rows"],
        size=row["size"],
        problem=row["problem"],
        problem_at=row["problem_at"],
        problem_run=row["problem_run"],
    )


def _commit_values(search: Search, commit: Kept, run: str) -> dict[str, Any]:
    return {
        "search_uid": search.uid,
        "version": commit.version,
        "run": run,
        "at": commit.at,
        "base_version": commit.mark.base_version,
        "files": commit.mark.files,
        "read_bytes": commit.mark.read,
        "rows": commit.rows,
        "written_bytes": commit.size,
        "seconds": commit.seconds,
        "rebuilt": commit.mark.rebuilt,
    }


def _commit_of(search: Search, row: sa.RowMapping) -> Kept:
    started_at = row["at"] - timedelta(seconds=row["seconds"])
    mark = UpkeepMark(
        search.app_id, row["base_version"], row["files"], row["read_bytes"], bool(row["rebuilt"]), started_at
    )
    return Kept(row["version"], mark, row["rows"], row["written_bytes"], row["at"])
