"""Change files that Delta wrote are read where they are cheaper, and give the same rows with the same ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.planning.sets import folds
from tidemark.changes.planning.sets.plan import Candidate, Origin
from tidemark.errors import VersionVacuumed
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, StreamMode
from tidemark.model.table_log import Commit

pytestmark = pytest.mark.spark

FEED = {"delta__enableChangeDataFeed": "true"}
ROWS = "SELECT CAST(id AS INT) k, CAST(id AS STRING) v FROM range(0, 20000, 1, 1)"


def with_ids(lake: Lake, start: int) -> list[tuple[object, ...]]:
    rows = lake.frame(start).collect()
    return sorted((row[ACTION], row[IS_UPDATE], row[ROW_ID], *row[:2]) for row in rows)


def without_feed(lake: Lake, start: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The same window from data files, as if no commit had change files."""
    with monkeypatch.context() as patched:
        log = lake.log
        commits = log.commits
        patched.setattr(log, "commits", lambda *window: (_bare(commit) for commit in commits(*window)))
        plan = plan_changes(log, start, lake.version, StreamMode.STANDARD)
        assert plan.candidate is not Candidate.FEED
        rows = read_changes(lake.spark, log, plan, lake.workspace).collect()
    return sorted((row[ACTION], row[IS_UPDATE], row[ROW_ID], *row[:2]) for row in rows)


def _bare(commit: Commit) -> Commit:
    return replace(commit, change_files=())


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_the_feed_gives_the_rows_and_ids_that_data_files_give(
    lake: Lake, vectors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates, deletes, merges that insert, rows that change twice or are inserted and changed, all in one window."""
    lake.create(delta__enableDeletionVectors=vectors, **FEED)
    start = lake.sql(f"INSERT INTO {{t}} {ROWS}")
    lake.sql(
        "UPDATE {t} SET v = 'a' WHERE k % 1000 = 1",
        "MERGE INTO {t} t USING (SELECT CAST(id * 2000 + 1 AS INT) k FROM range(12)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'new')",
        "UPDATE {t} SET v = 'again' WHERE v = 'new' AND k > 21000",
        "DELETE FROM {t} WHERE k = 1 OR v = 'new'",
        "INSERT INTO {t} VALUES (-1, 'plain')",
        "OPTIMIZE {t}",
        "UPDATE {t} SET v = '3001' WHERE k = 3001",
    )
    plan = lake.plan(start)
    assert plan.candidate is Candidate.FEED
    assert plan.rows(Origin.CHANGES) > 0
    found = with_ids(lake, start)
    assert found == without_feed(lake, start, monkeypatch)
    shown = {(*row[:2], *row[3:]) for row in found}
    assert {("DELETE", False, 1, "1"), ("INSERT", False, -1, "plain"), ("INSERT", False, 22001, "again")} <= shown
    assert 3001 not in {row[3] for row in found}, "updated and set back is no change"


def test_feed_switched_on_and_off_inside_the_window(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit counts by its change files, or by its data files where it has none."""
    start = lake.create(delta__enableDeletionVectors="false").sql(f"INSERT INTO {{t}} {ROWS}")
    lake.sql(
        "UPDATE {t} SET v = 'a' WHERE k = 5",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "UPDATE {t} SET v = 'b' WHERE k IN (5, 6)",
        "DELETE FROM {t} WHERE k = 6",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
        "UPDATE {t} SET v = 'c' WHERE k = 7",
    )
    commits = tuple(lake.log.commits(start, lake.version))
    assert {bool(commit.change_files) for commit in commits} == {True, False}
    state = lake.log.state(start)
    mixed = folds.fold_feed(commits, state.metadata, state.row_id_high_water_mark)
    assert mixed.feed
    assert mixed.changes
    monkeypatch.setattr(folds, "fold_states", lambda *given: _costly(folds.fold_data_changes(*given)))
    assert lake.plan(start).candidate is Candidate.FEED
    expected = [("DELETE", False, 6, "6"), *_pair(5, "5", "b"), *_pair(7, "7", "c")]
    assert lake.changes(start) == sorted(expected, key=repr)


def _costly(fold: folds.Fold) -> folds.Fold:
    change = fold.changes[0]
    huge = replace(change, forms=tuple((replace(form, size=1 << 50), count) for form, count in change.forms))
    return replace(fold, changes=(huge, *fold.changes[1:]))


def _pair(key: int, old: str, new: str) -> list[tuple[str, bool, int, str]]:
    return [("DELETE", True, key, old), ("INSERT", True, key, new)]


@pytest.mark.parametrize("damage", ["gone", "without ids"])
def test_change_files_that_cannot_stand_for_their_commit_are_not_used(
    lake: Lake, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM may have taken them while the data files live; other writers need not keep row ids in them."""
    start = lake.create(**FEED).sql(f"INSERT INTO {{t}} {ROWS}")
    lake.sql("UPDATE {t} SET v = 'a' WHERE k = 5")
    expected = lake.changes(start)
    assert lake.plan(start).candidate is Candidate.FEED
    for file in sorted((lake.path / "_change_data").glob("*.parquet")):
        _DAMAGE[damage](file)
    assert lake.plan(start).candidate is not Candidate.FEED
    assert lake.changes(start) == expected


def _without_ids(file: Path) -> None:
    rows = pq.read_table(file)
    kept = [name for name in rows.column_names if not name.startswith("_row-id")]
    checksum = file.with_name(f".{file.name}.crc")
    checksum.unlink(missing_ok=True)
    pq.write_table(rows.select(kept), file)


_DAMAGE: dict[str, Callable[[Path], None]] = {"gone": Path.unlink, "without ids": _without_ids}


def test_change_files_taken_after_the_plan_are_named(lake: Lake) -> None:
    start = lake.create(**FEED).sql(f"INSERT INTO {{t}} {ROWS}")
    lake.sql("UPDATE {t} SET v = 'a' WHERE k = 5")
    plan = lake.plan(start)
    assert plan.candidate is Candidate.FEED
    for file in (lake.path / "_change_data").glob("*.parquet"):
        file.unlink()
    with pytest.raises(VersionVacuumed, match="_change_data"):
        read_changes(lake.spark, lake.log, plan, lake.workspace)


def test_partitions_and_renamed_columns_read_right_from_the_feed(spark: SparkSession, lake: Lake) -> None:
    lake.create("k INT, `p q` STRING, v STRING", "PARTITIONED BY (`p q`)", delta__columnMapping__mode="name", **FEED)
    start = lake.sql("INSERT INTO {t} SELECT CAST(id AS INT), CAST(id % 2 AS STRING), 'v' FROM range(0, 20000, 1, 1)")
    lake.sql(
        "UPDATE {t} SET `p q` = 'x %/é' WHERE k = 4",
        "ALTER TABLE {t} RENAME COLUMN v TO `w;=`",
        "UPDATE {t} SET `w;=` = 'new' WHERE k = 5",
        "ALTER TABLE {t} ADD COLUMNS (extra INT)",
        "UPDATE {t} SET extra = 7 WHERE k = 6",
    )
    assert lake.plan(start).candidate is Candidate.FEED
    assert lake.frame(start).columns[:4] == ["k", "p q", "w;=", "extra"]
    assert lake.changes(start) == sorted(
        [
            ("DELETE", True, 4, "0", "v", None),
            ("INSERT", True, 4, "x %/é", "v", None),
            ("DELETE", True, 5, "1", "v", None),
            ("INSERT", True, 5, "1", "new", None),
            ("DELETE", True, 6, "0", "v", None),
            ("INSERT", True, 6, "0", "v", 7),
        ],
        key=repr,
    )


def test_a_column_named_like_the_feeds_own_keeps_its_values(lake: Lake) -> None:
    """Delta takes such a column once the feed is off; the change files of before are then left alone."""
    start = lake.create(**FEED).sql(f"INSERT INTO {{t}} {ROWS}")
    lake.sql(
        "UPDATE {t} SET v = 'a' WHERE k = 5",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
        "ALTER TABLE {t} ADD COLUMNS (_change_type STRING)",
        "UPDATE {t} SET _change_type = 'mine' WHERE k = 6",
    )
    assert lake.plan(start).candidate is not Candidate.FEED
    assert {row[2:] for row in lake.changes(start)} == {
        (5, "5", None),
        (5, "a", None),
        (6, "6", None),
        (6, "6", "mine"),
    }
