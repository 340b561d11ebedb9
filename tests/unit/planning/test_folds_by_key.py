"""The state fold where row ids do not count: what a commit only says again is no insert."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from tidemark.changes.planning.sets.folds import fold_states
from tidemark.model.table_log import AddFile, Commit, Metadata, RemoveFile

TABLE = Metadata("id", json.dumps({"type": "struct", "fields": []}), (), {})


def add(path: str, *, data_change: bool, base_row_id: int | None = None) -> AddFile:
    return AddFile(path, 1, {}, 0, data_change, '{"numRecords": 1}', None, base_row_id, None)


def remove(path: str, *, data_change: bool) -> RemoveFile:
    return RemoveFile(path, data_change, 0, 1, {}, None, None, None, None)


def commit(version: int, *, adds: tuple[AddFile, ...] = (), removes: tuple[RemoveFile, ...] = ()) -> Commit:
    return Commit(version, datetime(2026, 1, 1, tzinfo=UTC), None, adds, removes, None, None, None, None)


def folded(*commits: Commit) -> list[tuple[str, int]]:
    fold = fold_states(commits, TABLE, None, row_ids=False)
    assert fold.sound
    return [(change.path, sum(count for _, count in change.forms)) for change in fold.changes]


def test_row_tracking_given_to_live_files_adds_none() -> None:
    backfill = commit(2, adds=tuple(add(name, data_change=False, base_row_id=n) for n, name in enumerate("ab")))
    assert folded(backfill) == []
    assert folded(commit(1, adds=(add("a", data_change=True),)), backfill) == [("a", 1)]
    assert folded(backfill, commit(3, removes=(remove("a", data_change=True),))) == [("a", -1)]


def test_a_rewrite_is_read_on_both_sides() -> None:
    rewrite = commit(2, adds=(add("c", data_change=False),), removes=(remove("a", data_change=False),))
    assert sorted(folded(rewrite)) == [("a", -1), ("c", 1)]
