"""Histories that few tables have, each of which has once been read wrong or refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from pyspark.sql import functions as F

from tests.engine.lakes import Lake
from tests.engine.oracle import assert_difference
from tidemark.changes.driver.every_change import plan_pages
from tidemark.errors import FileNotDescribed, IncompatibleSchemaChange
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP

pytestmark = pytest.mark.spark

Body = dict[str, object]
MAPPED = {"delta__columnMapping__mode": "name"}


def test_a_compaction_that_is_restored_brings_old_rows_not_new_ones(lake: Lake) -> None:
    lake.create()
    start = lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", "INSERT INTO {t} VALUES (3, 'c'), (4, 'd')")
    compacted = lake.sql("OPTIMIZE {t}")
    lake.sql("INSERT INTO {t} VALUES (5, 'e')", "OPTIMIZE {t}", "DELETE FROM {t}")
    lake.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {compacted}")
    assert lake.changes(start) == []


def test_files_of_change_file_commits_are_old_when_they_are_restored(lake: Lake) -> None:
    properties = {"delta__enableChangeDataFeed": "true", "delta__enableDeletionVectors": "false"}
    lake.create("k INT, v STRING, p INT", "PARTITIONED BY (p)", **properties)
    start = lake.sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), repeat('x', 200), CAST(id >= 500 AS INT) FROM range(0, 505, 1, 1)"
    )
    updated = lake.sql("UPDATE {t} SET v = 'b' WHERE p = 1 AND k = 500")
    lake.sql("UPDATE {t} SET v = 'c' WHERE p = 1 AND k = 501", "DELETE FROM {t} WHERE p = 1")
    lake.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {updated}", "UPDATE {t} SET v = 'd' WHERE p = 0 AND k = 7")
    assert {change[1] for change in assert_difference(lake, start)} == {True}


@pytest.mark.parametrize(
    "removal",
    [
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
        "ALTER TABLE {t} DROP FEATURE columnMapping",
    ],
)
def test_a_window_in_which_column_mapping_was_removed_is_refused(lake: Lake, removal: str) -> None:
    start = lake.create(**MAPPED).sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    lake.sql("INSERT INTO {t} VALUES (3, 'c')", "UPDATE {t} SET v = 'd' WHERE k = 1", removal)
    with pytest.raises(IncompatibleSchemaChange, match="column mapping was removed"):
        lake.changes(start)
    assert lake.changes(lake.version) == []


def test_a_window_in_which_deletion_vectors_were_given_up_has_the_changes_of_rows(lake: Lake) -> None:
    lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 10, 1, 1)")
    start = lake.sql("DELETE FROM {t} WHERE k < 3")
    end = lake.sql("DELETE FROM {t} WHERE k = 5", "ALTER TABLE {t} DROP FEATURE deletionVectors")
    assert "Deletion Vector Tombstones" in [commit.operation for commit in lake.log.commits(start, end)]
    for file in lake.path.rglob("deletion_vector_*.bin"):
        file.unlink()
    assert lake.changes(start + 1) == lake.appended(start) == []
    lake.sql("INSERT INTO {t} VALUES (11, 'b')")
    assert lake.changes(start + 1) == [("INSERT", False, 11, "b")]


def test_counting_says_as_many_changes_as_there_are(lake: Lake) -> None:
    """Delta answers a bare count from the log, which must say how many rows a file has without its deletion vector."""
    lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 10, 1, 1)")
    start = lake.sql("DELETE FROM {t} WHERE k < 3")
    lake.sql("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE false")
    changes = lake.frame(start)
    assert changes.count() == len(changes.collect()) == 7
    assert changes.where(F.col(ACTION) == "DELETE").count() == 7


def test_a_rewrite_that_numbers_rows_anew_and_says_no_row_changed_is_not_read(lake: Lake) -> None:
    """However the window is cut and whatever is cheaper: what it rewrote counts as what it says."""
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 10, 1, 1)")
    rows = lake.spark.read.format("delta").load(str(lake.path)).coalesce(1)
    rows.write.format("delta").mode("overwrite").option("dataChange", "false").save(str(lake.path))
    assert lake.changes(start) == []
    lake.sql("DELETE FROM {t} WHERE k = 3")
    assert lake.changes(start) == [("DELETE", False, 3, "a")]
    lake.sql("UPDATE {t} SET v = 'b' WHERE k >= 0")
    assert lake.plan(start).candidate == "data_change"
    lake.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {start}")
    assert lake.changes(start) == []


def test_a_file_from_before_the_window_that_is_removed_without_its_row_ids_is_refused_by_name(lake: Lake) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("DELETE FROM {t} WHERE k = 1")
    _rewrite(lake, "remove", lambda body: {name: body[name] for name in ("path", "dataChange")})
    with pytest.raises(FileNotDescribed, match="row ids"):
        lake.changes(start)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("userMetadata", {"a": 1}),
        ("operationParameters", "none"),
        ("operationMetrics", [1]),
        ("readVersion", "0"),
        ("operation", 7),
    ],
)
def test_what_a_commit_says_of_itself_may_have_any_form(lake: Lake, name: str, value: object) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("INSERT INTO {t} VALUES (2, 'b')")
    _rewrite(lake, "commitInfo", lambda body: {**body, name: value})
    assert lake.changes(start) == [("INSERT", False, 2, "b")]


def test_a_commit_has_the_same_time_wherever_the_reading_begins(lake: Lake) -> None:
    """File times may run backwards, as those of a copied table do."""
    lake.create()
    for number in range(4):
        lake.sql(f"INSERT INTO {{t}} VALUES ({number}, 'a')")
    for number in range(5):
        os.utime(lake.path / "_delta_log" / f"{number:020d}.json", (1_700_000_000 - number, 1_700_000_000 - number))
    found = [_times(lake, start)[-1] for start in range(4)]
    assert found == [int(lake.log.timestamp(4).timestamp() * 1_000_000)] * 4


def test_a_plan_says_what_it_was_weighed_against_and_shows_no_files(lake: Lake) -> None:
    start = lake.create(delta__enableChangeDataFeed="true").sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    lake.sql("UPDATE {t} SET v = 'c' WHERE k = 1", "OPTIMIZE {t}")
    plan = lake.plan(start)
    said = plan.explain()
    assert set(said["weighed"]) == {"state", "data_change", "feed"}
    assert said["weighed"][said["candidate"]] == min(said["weighed"].values())
    assert len(repr(plan)) < 700
    for file in (lake.path / "_change_data").iterdir():
        file.unlink()
    assert "is gone" in lake.plan(start).explain()["change_files_unused"]


def _times(lake: Lake, start: int) -> list[object]:
    from tidemark.changes.driver.rows import read_changes

    (page,) = plan_pages(lake.log, start, 4)
    rows = read_changes(lake.spark, lake.log, page, lake.workspace).orderBy(COMMIT_TIMESTAMP)
    return [row[0] for row in rows.select(F.unix_micros(COMMIT_TIMESTAMP).alias("t")).collect()]


def _rewrite(lake: Lake, kind: str, change: Callable[[Body], Body]) -> None:
    """The newest commit with other bodies for its actions of a kind, as if another writer had made it."""
    commit = lake.path / "_delta_log" / f"{lake.version:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    changed = [{name: change(body) if name == kind else body for name, body in action.items()} for action in actions]
    commit.write_text("".join(json.dumps(action) + "\n" for action in changed))
    for stale in commit.parent.glob(f".{commit.name}.crc"):
        stale.unlink()
    commit.with_suffix(".crc").unlink(missing_ok=True)
    lake.spark.catalog.clearCache()
