"""Looks at a table since an earlier one: a bound of its depth, or none if only a look at all files can tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lake.delta_directories import add, commit, remove, singers
from tidemark.clustering.model.tables import Seen
from tidemark.clustering.worker.looking import look_at, seen_now
from tidemark.lake.delta_log import DeltaLog

KEY = ("SingerId",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table with a clustering key, and two deep files among flat ones."""
    found = singers(tmp_path, "shop.singers")
    key = json.dumps({"clusteringColumns": [["SingerId"]], "domainName": "delta.clustering"})
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": key, "removed": False}}
    flat = [file(f"flat-{n}", 10 * n + 10, 10 * n + 15) for n in range(4)]
    commit(found, 1, domain, file("a", 1, 5), file("b", 1, 5), *flat)
    return found


def file(name: str, least: int, greatest: int) -> dict[str, Any]:
    ends = {"minValues": {"SingerId": least}, "maxValues": {"SingerId": greatest}}
    return add(name, stats=json.dumps({"numRecords": 2, **ends}))


def now(path: Path, seen: Seen) -> Seen | None:
    log = DeltaLog.open(str(path))
    return seen_now(log, log.state(), KEY, seen, table="t")


def whole(path: Path) -> Seen:
    log = DeltaLog.open(str(path))
    return look_at(log, log.state(), KEY, None, table="t").seen


def test_new_files_bound_the_depth(path: Path) -> None:
    seen = whole(path)
    commit(path, 2, file("c", 1, 5))
    found = now(path, seen)
    assert found is not None
    assert not found.exact
    assert found.depth >= whole(path).depth


def test_after_commits_that_removed_files_all_files_are_measured(path: Path) -> None:
    seen = whole(path)
    commit(path, 2, *(remove(f"flat-{n}") for n in range(4)))
    assert whole(path).depth == 2 > seen.depth
    assert now(path, seen) is None


def test_a_look_of_an_earlier_release_did_not_count_files_without_statistics(path: Path) -> None:
    commit(path, 2, add("bare"))
    seen = whole(path)
    assert seen.without == 1
    assert now(path, seen) == seen
    assert now(path, replace(seen, without=None)) is None
