"""A window with changes of one row under two ids is refused by name; other windows with a renumbering are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.lake.delta_directories import add, born, commit, remove
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.planning.sets.plan import Candidate
from tidemark.errors import RowsRenumbered
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode

Actions = list[dict[str, Any]]
IDS = {"baseRowId": 0, "defaultRowCommitVersion": 0, "stats": '{"numRecords": 1}'}


def new(path: str, *, data_change: bool = True) -> dict[str, Any]:
    return add(path, data_change=data_change, **IDS)


def gone(path: str, *, data_change: bool = True) -> dict[str, Any]:
    body = remove(path, data_change=data_change)["remove"]
    return {"remove": {**body, **IDS, "size": 1, "partitionValues": {}}}


def table(path: Path, *commits: tuple[str, Actions]) -> DeltaLog:
    tracked = {"delta.enableRowTracking": "true"}
    log = born(path, new("old"), **tracked)
    for version, (operation, actions) in enumerate(commits, start=1):
        commit(path, version, {"commitInfo": {"operation": operation}}, *actions)
    return log


INSERT = ("WRITE", [new("a")])
OVERWRITE = ("WRITE", [gone("a", data_change=False), new("b", data_change=False)])
OPTIMIZE = ("OPTIMIZE", OVERWRITE[1])
MOVED_ON = ("OPTIMIZE", [gone("b", data_change=False), new("c", data_change=False)])


@pytest.mark.parametrize(
    ("commits", "last"),
    [
        ((INSERT, OVERWRITE, ("DELETE", [gone("b")])), 2),
        ((INSERT, OVERWRITE, MOVED_ON, ("DELETE", [gone("c")])), 3),
        ((INSERT, ("OPTIMIZE", [gone("a", data_change=False), new("x", data_change=False)]),
          ("WRITE", [gone("x", data_change=False), new("b", data_change=False)]), ("MERGE", [gone("b"), new("d")])), 3),
    ],
)  # fmt: skip
def test_a_row_that_was_changed_and_numbered_again_is_not_changed_in_the_same_window(
    tmp_path: Path, commits: tuple[tuple[str, Actions], ...], last: int
) -> None:
    log = table(tmp_path, *commits)
    with pytest.raises(RowsRenumbered, match=f"with max_commits={last}") as error:
        plan_changes(log, 0, log.head(), StreamMode.STANDARD)
    assert error.value.facts["last"] == last
    assert [plan_changes(log, *ends, StreamMode.STANDARD).empty for ends in ((0, last), (last, log.head()))] == [
        False
    ] * 2


@pytest.mark.parametrize(
    "commits",
    [
        (INSERT, OVERWRITE, ("WRITE", [new("e")])),
        (INSERT, OVERWRITE, ("DELETE", [gone("old")])),
        (INSERT, OPTIMIZE, ("DELETE", [gone("b")])),
        (("WRITE", [gone("old", data_change=False), new("b", data_change=False)]), INSERT, ("DELETE", [gone("b")])),
    ],
)
def test_rows_that_are_changed_under_one_id_are_read_in_one_window(
    tmp_path: Path, commits: tuple[tuple[str, Actions], ...]
) -> None:
    log = table(tmp_path, *commits)
    plan_changes(log, 0, log.head(), StreamMode.STANDARD)


RENUMBERED = ("WRITE", [gone("old", data_change=False), new("b", data_change=False)])
UPDATE = ("UPDATE", [gone("b"), new("d")])
RESTORED = ("RESTORE", [gone("b"), new("old")])


@pytest.mark.parametrize(
    ("commits", "candidate", "files"),
    [
        ((RENUMBERED, RESTORED), Candidate.NOTHING, set()),
        ((RENUMBERED, MOVED_ON, ("RESTORE", [gone("c"), new("old")])), Candidate.NOTHING, set()),
        ((RENUMBERED, UPDATE, ("RESTORE", [gone("d"), new("old")])), Candidate.NOTHING, set()),
        ((RENUMBERED, RESTORED, INSERT), Candidate.STATE, {"a"}),
        ((RENUMBERED, ("DELETE", [gone("b")])), Candidate.STATE, {"old"}),
        ((RENUMBERED, UPDATE), Candidate.DATA_CHANGE, {"b", "d"}),
        ((RENUMBERED, RESTORED, ("WRITE", [gone("old", data_change=False), new("e", data_change=False)])),
         Candidate.DATA_CHANGE, {"b", "old"}),
    ],
)  # fmt: skip
def test_states_are_compared_again_once_no_row_lives_under_the_second_id(
    tmp_path: Path, commits: tuple[tuple[str, Actions], ...], candidate: Candidate, files: set[str]
) -> None:
    log = table(tmp_path, *commits)
    plan = plan_changes(log, 0, log.head(), StreamMode.STANDARD)
    assert (plan.candidate, {Path(file.path).name for file in plan.files}) == (candidate, files)
