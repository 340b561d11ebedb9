"""Every change: one row for each change and commit, in pages that do not grow with the window."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.lakes import Lake
from tests.tiers import nightly
from tidemark.changes.driver.every_change import plan_pages
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.planning.sets import plan as plans
from tidemark.changes.planning.sets.plan import Netting
from tidemark.errors import InvalidArgument
from tidemark.model.streams import COMMIT_TIMESTAMP, COMMIT_VERSION

pytestmark = pytest.mark.spark

Change = tuple[Any, ...]


def every(lake: Lake, start: int, end: int | None = None, rows_per_page: int = 1_000_000) -> list[Change]:
    """(commit version, action, is update, *columns), sorted within a page; pages in order."""
    found: list[Change] = []
    for page in plan_pages(lake.log, start, lake.version if end is None else end, rows_per_page=rows_per_page):
        rows = read_changes(lake.spark, lake.log, page, lake.workspace).collect()
        found += sorted(((row[COMMIT_VERSION], row[-5], row[-4], *row[:-5]) for row in rows), key=repr)
    return found


def history(lake: Lake, **properties: str) -> int:
    start = lake.create(**properties).sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    lake.sql(
        "UPDATE {t} SET v = 'b' WHERE k < 3",
        "UPDATE {t} SET v = 'c' WHERE k = 1",
        "OPTIMIZE {t}",
        "MERGE INTO {t} t USING (SELECT 2 k UNION ALL SELECT 9) s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (9, 'n')",
        "UPDATE {t} SET v = v",
        "DELETE FROM {t} WHERE k = 9",
        f"RESTORE TABLE {{t}} TO VERSION AS OF {start}",
        "INSERT OVERWRITE {t} VALUES (5, 'o')",
    )
    return start


def expected(start: int) -> list[Change]:
    pair = [("DELETE", True), ("INSERT", True)]
    changes = {
        1: [(*pair[0], 1, "a"), (*pair[0], 2, "a"), (*pair[1], 1, "b"), (*pair[1], 2, "b")],
        2: [(*pair[0], 1, "b"), (*pair[1], 1, "c")],
        4: [("DELETE", False, 2, "b"), ("INSERT", False, 9, "n")],
        6: [("DELETE", False, 9, "n")],
        7: [(*pair[0], 1, "c"), ("INSERT", False, 2, "a"), (*pair[1], 1, "a")],
        8: [("DELETE", False, key, "a") for key in (1, 2, 3)] + [("INSERT", False, 5, "o")],
    }
    return sorted(((start + n, *change) for n, found in changes.items() for change in found), key=repr)


@pytest.mark.parametrize(
    ("feed", "vectors"),
    [
        ("false", "true"),
        pytest.param("true", "false", marks=nightly("the other features of a table")),
        pytest.param("true", "true", marks=nightly("the other features of a table")),
        pytest.param("false", "false", marks=nightly("the other features of a table")),
    ],
)
def test_each_commit_shows_what_it_did(lake: Lake, feed: str, vectors: str) -> None:
    """Update images paired, OPTIMIZE and an UPDATE that changes nothing silent, MERGE, RESTORE, overwrite."""
    start = history(lake, delta__enableChangeDataFeed=feed, delta__enableDeletionVectors=vectors)
    assert lake.version == start + 8
    assert every(lake, start) == expected(start)
    assert every(lake, start, rows_per_page=1) == expected(start)


def test_many_rows_give_the_same(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    start = history(lake, delta__enableDeletionVectors="false")
    monkeypatch.setattr(plans, "ROWS_FOR_ONE_AGGREGATE", 0)
    pages = list(plan_pages(lake.log, start, lake.version, rows_per_page=1))
    assert {page.netting for page in pages} >= {Netting.COMMIT_VERSION, Netting.JOIN}
    assert every(lake, start, rows_per_page=1) == expected(start)
    assert every(lake, start) == expected(start)


@pytest.mark.quick
def test_pages_are_whole_commits_without_gap_or_overlap(lake: Lake) -> None:
    start = history(lake, delta__enableDeletionVectors="false")
    for rows in (1, 5, 10, 1_000):
        pages = list(plan_pages(lake.log, start, lake.version, rows_per_page=rows))
        assert [page.start for page in pages] == [start, *(page.end for page in pages[:-1])]
        assert pages[-1].end == lake.version
        assert all(page.rows() <= rows or len(page.times or {}) == 1 for page in pages)
    assert len(pages) == 1


def test_the_commit_of_a_change_has_its_time(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    version = lake.sql("UPDATE {t} SET v = 'b'")
    (page,) = plan_pages(lake.log, start, version)
    frame = read_changes(lake.spark, lake.log, page, lake.workspace)
    shown = frame.selectExpr(f"unix_millis(`{COMMIT_TIMESTAMP}`) t").distinct().collect()
    assert [row.t for row in shown] == [round(lake.log.timestamp(version).timestamp() * 1000)]


def test_pages_show_the_columns_of_the_end(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("UPDATE {t} SET v = 'b'", "ALTER TABLE {t} ADD COLUMNS (extra INT)", "UPDATE {t} SET extra = 7")
    assert [row[3:] for row in every(lake, start, rows_per_page=1)] == [
        (1, "a", None),
        (1, "b", None),
        (1, "b", None),
        (1, "b", 7),
    ]


def test_nothing_changed_is_one_empty_page_with_all_columns(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    (page,) = plan_pages(lake.log, start, start)
    frame = read_changes(lake.spark, lake.log, page, lake.workspace)
    assert frame.columns[-2:] == [COMMIT_VERSION, COMMIT_TIMESTAMP]
    assert frame.count() == 0
    with pytest.raises(InvalidArgument):
        next(plan_pages(lake.log, start, start, rows_per_page=0))
