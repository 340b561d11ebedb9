"""What a target's log says of a statement, as a pure function of its commits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tidemark.delivery.model.marks import Mark, MarkedWindow, MarkKind
from tidemark.delivery.planning.delivery import Finding, bytes_written, judge, row_counts
from tidemark.model.table_log import AddFile, Commit, RemoveFile

MARK = Mark(
    store_id="store",
    windows=(MarkedWindow("uid", 3, 7),),
    statement=1,
    digest="d",
    app_id="tidemark/uid/1",
    txn_version=5,
    kind=MarkKind.WRITE,
)


def commit(version, operation="WRITE", *, mark=None, parameters=None, metrics=None, transactions=None):
    return Commit(
        version=version,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        operation=operation,
        adds=(),
        removes=(),
        metadata=None,
        protocol=None,
        row_id_high_water_mark=None,
        user_metadata=mark.to_text() if mark else None,
        operation_parameters=parameters or {},
        operation_metrics=metrics or {},
        transactions=transactions or {},
    )


def written(version, mark=MARK):
    return commit(version, mark=mark, transactions={mark.app_id: mark.txn_version})


def restored(version, to):
    return commit(version, "RESTORE", parameters={"version": str(to), "timestamp": "None"})


def finding(*commits, mark=MARK, found_id="id", version_at=lambda when: 0):
    return judge(mark, expected_id="id", found_id=found_id, commits=commits, version_at=version_at)


def test_no_trace_means_free():
    assert finding().finding is Finding.FREE
    other = replace(MARK, app_id="tidemark/other/1", txn_version=9)
    assert finding(commit(4), written(5, other)).finding is Finding.FREE


def test_the_write_mark_of_this_window_means_delivered():
    found = finding(commit(4), written(5), commit(6))
    assert (found.finding, found.version) == (Finding.DELIVERED, 5)


def test_a_mark_without_an_entry_is_as_good_since_entries_expire():
    assert finding(commit(5, mark=MARK)).finding is Finding.DELIVERED


@pytest.mark.parametrize("entry", [{MARK.app_id: MARK.txn_version}, {}])
def test_a_compaction_that_repeats_the_mark_is_not_the_write(entry):
    write = commit(5, mark=MARK, metrics={"numOutputRows": "3"}, transactions=entry)
    compacted = commit(6, "OPTIMIZE", mark=MARK)
    found = finding(write, compacted)
    assert (found.finding, found.version, found.rows) == (Finding.DELIVERED, 5, {"inserted": 3})
    assert finding(write, compacted, restored(7, 5)).finding is Finding.DELIVERED


def test_a_fence_is_never_read_as_a_write():
    assert finding(written(5, replace(MARK, kind=MarkKind.FENCE))).finding is Finding.FENCED


def test_another_table_is_changed_whatever_its_log_says():
    assert finding(written(5), found_id="other").finding is Finding.CHANGED


def test_a_later_number_supersedes():
    later = finding(written(5), written(6, replace(MARK, txn_version=6)))
    assert (later.finding, later.number) == (Finding.SUPERSEDED, 6)
    assert finding(commit(5, transactions={MARK.app_id: 8})).finding is Finding.SUPERSEDED


@pytest.mark.parametrize(
    "other",
    [
        replace(MARK, windows=(MarkedWindow("uid", 3, 8),)),
        replace(MARK, digest="another statement"),
        replace(MARK, store_id="another store"),
    ],
)
def test_the_same_number_for_something_else_is_foreign(other):
    assert finding(written(5, other)).finding is Finding.FOREIGN
    assert finding(commit(5, transactions={MARK.app_id: MARK.txn_version})).finding is Finding.FOREIGN


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([restored(6, 4)], Finding.REWOUND),
        ([restored(6, 5)], Finding.DELIVERED),
        ([commit(6), restored(7, 6)], Finding.DELIVERED),
        ([commit(6), restored(7, 4), restored(8, 6)], Finding.DELIVERED),
        ([commit(6), restored(7, 4), commit(8), restored(9, 8)], Finding.REWOUND),
        ([restored(6, 4), restored(7, 5), restored(8, 6)], Finding.REWOUND),
        ([commit(6, "CREATE OR REPLACE TABLE AS SELECT")], Finding.REWOUND),
        ([commit(6, "REPLACE TABLE"), restored(7, 5)], Finding.DELIVERED),
        ([commit(6, "CLONE")], Finding.REWOUND),
        ([commit(6, "RESTORE")], Finding.REWOUND),
        ([commit(6, "DELETE"), commit(7, "OPTIMIZE")], Finding.DELIVERED),
    ],
)
def test_a_restore_is_followed_through_the_versions(after, expected):
    assert finding(commit(4), written(5), *after).finding is expected


def test_a_restore_by_time_goes_to_the_version_of_that_time():
    asked = []

    def version_at(when):
        asked.append(when)
        return 5

    by_time = commit(6, "RESTORE", parameters={"version": "None", "timestamp": "2026-01-01 10:00:00.5"})
    assert finding(written(5), by_time, version_at=version_at).finding is Finding.DELIVERED
    assert asked == [datetime(2026, 1, 1, 10, 0, 0, 500_000, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("operation", "metrics", "rows"),
    [
        ("WRITE", {"numOutputRows": "5", "numFiles": "1"}, {"inserted": 5}),
        ("UPDATE", {"numUpdatedRows": "2", "numCopiedRows": "7"}, {"updated": 2}),
        ("DELETE", {"numDeletedRows": "3"}, {"deleted": 3}),
        (
            "MERGE",
            {
                "numOutputRows": "9",
                "numTargetRowsInserted": "1",
                "numTargetRowsUpdated": "2",
                "numTargetRowsDeleted": "0",
            },
            {"inserted": 1, "updated": 2, "deleted": 0},
        ),
        ("DELETE", {}, {}),
    ],
)
def test_rows_are_what_delta_counted(operation, metrics, rows):
    assert row_counts(commit(1, operation, metrics=metrics)) == rows


def test_bytes_are_those_of_the_files_that_the_commit_added():
    def added(path, size):
        return AddFile(path, size, {}, 0, True, None, None, None, None)

    gone = RemoveFile("b", True, 0, None, None, None, None, None, None)
    found = replace(commit(1, "MERGE"), adds=(added("a", 512), added("b", 900), added("c", 8)), removes=(gone,))
    assert bytes_written(found) == 520  # b stays, and has a deletion vector now
    assert bytes_written(commit(1, "DELETE")) == 0
