"""A bound takes the first commits that it lets through, and one with rows at least."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidemark.errors import InvalidArgument
from tidemark.model.table_log import Commit, RemoveFile
from tidemark.streams.planning.backlog import bytes_of_changes
from tidemark.streams.planning.bounds import UNBOUNDED, Bound, within

START = datetime(2026, 11, 21, tzinfo=UTC)


def commits(*rows: int) -> list[tuple[int, Commit]]:
    """Deletes of so many rows, each from a file of a thousand bytes a row, a minute apart, by turns in two tables."""
    return [
        (number % 2, _delete(version=number // 2 + 1, at=START + timedelta(minutes=number), rows=count))
        for number, count in enumerate(rows)
    ]


def taken(bound: Bound, *rows: int) -> int:
    return len(list(within(bound, iter(commits(*rows)))))


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (UNBOUNDED, 4),
        (Bound(max_commits=3), 3),
        (Bound(max_rows=25), 2),
        (Bound(max_rows=30), 3),
        (Bound(max_rows=1), 1),
        (Bound(max_bytes=29_999), 2),
        (Bound(max_bytes=30_000), 3),
        (Bound(max_bytes=1), 1),
        (Bound(max_rows=30, max_bytes=20_000), 2),
        (Bound(max_rows=10, max_bytes=20_000), 1),
        (Bound(until=START), 1),
        (Bound(until=START + timedelta(minutes=2, seconds=59)), 3),
        (Bound(until=START - timedelta(seconds=1)), 0),
        (Bound(max_commits=3, max_rows=25, until=START + timedelta(hours=1)), 2),
    ],
)
def test_every_part_of_a_bound_holds(bound: Bound, expected: int) -> None:
    assert taken(bound, 10, 10, 10, 10) == expected


def test_commits_without_rows_are_not_the_one_that_is_taken_at_least() -> None:
    assert taken(Bound(max_rows=5), 0, 0, 100, 1) == 3
    assert taken(Bound(max_bytes=5), 0, 0, 100, 1) == 3


def test_a_file_that_only_has_another_deletion_vector_counts_once_and_a_rearranged_one_not_at_all() -> None:
    ((_, commit),) = commits(7)
    (gone,) = commit.removes
    rearranged = replace(gone, path="other.parquet", data_change=False)
    assert bytes_of_changes(replace(commit, removes=(gone, gone, rearranged))) == 7000
    assert bytes_of_changes(replace(commit, removes=(replace(gone, size=None),))) == 0


@pytest.mark.parametrize(
    "wrong", [{"max_commits": 0}, {"max_rows": 0}, {"max_bytes": 0}, {"until": START.replace(tzinfo=None)}]
)
def test_a_bound_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        Bound(**wrong)  # type: ignore[arg-type]


def _delete(*, version: int, at: datetime, rows: int) -> Commit:
    gone = RemoveFile(
        path=f"{version}.parquet",
        data_change=True,
        deletion_timestamp=None,
        size=rows * 1000,
        partition_values=None,
        stats=None,
        deletion_vector=None,
        base_row_id=None,
        default_row_commit_version=None,
    )
    return Commit(
        version=version,
        timestamp=at,
        operation="DELETE",
        adds=(),
        removes=(gone,),
        metadata=None,
        protocol=None,
        row_id_high_water_mark=None,
        user_metadata=None,
        operation_metrics={"numDeletedRows": str(rows)},
    )
