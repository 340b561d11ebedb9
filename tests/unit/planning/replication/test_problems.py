"""What problems of a source mean for a replication that runs."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import (
    Hinders,
    LogPosition,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    SourceProblem,
    TableSchema,
    WriteMode,
)
from tidemark.replication.planning.problems import judge

COPIED = ReplicatedObject(
    "uid", "r", ObjectName("s", "a"), "1", TableSchema(()), WriteMode.MERGE, TableRef("lake.s_a", "/a", ""),
    ObjectState.COMPLETED, applied=LogPosition("5"),
)  # fmt: skip
WAITING = replace(COPIED, uid="other", source_id="2", state=ObjectState.PENDING, applied=None)


def test_only_its_own_slot_and_publication_stop_it() -> None:
    problems = [SourceProblem("slot", Hinders.REPLICATION), SourceProblem("wal_level", Hinders.SERVER)]
    found = judge(problems, (COPIED,))
    assert (found.stops, found.warnings, dict(found.unsupported)) == (("slot",), ("wal_level",), {})


def test_a_table_is_unsupported_with_all_that_is_wrong_with_it() -> None:
    problems = [SourceProblem("case", Hinders.TABLE, ("1",)), SourceProblem("owner", Hinders.TABLE, ("1",))]
    assert judge(problems, (COPIED,)).unsupported == {"1": "case; owner"}


def test_of_two_that_are_in_each_others_way_the_one_that_is_replicated_goes_on() -> None:
    clash = SourceProblem("one target", Hinders.TABLE, ("1", "3"))
    assert set(judge([clash], (COPIED,)).unsupported) == {"3"}
    assert set(judge([clash], ()).unsupported) == {"1", "3"}


def test_one_that_was_copied_goes_on_though_it_may_not_be_read_any_more() -> None:
    hidden = [SourceProblem("hidden", Hinders.BACKFILL, (number,)) for number in "123"]
    found = judge(hidden, (COPIED, WAITING))
    assert (set(found.unsupported), found.warnings) == ({"2", "3"}, ("hidden",))
