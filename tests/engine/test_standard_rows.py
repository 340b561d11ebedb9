"""What a standard stream shows of a window: table 5 of the rules, R27 to R36 and R50 to R58, on real tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import functions as F

from tests.engine.lakes import Lake
from tidemark.changes.driver.net import net
from tidemark.changes.driver.rows import read_changes, read_snapshot
from tidemark.changes.planning.sets.plan import Candidate, Netting
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID

pytestmark = pytest.mark.spark


@pytest.mark.quick
def test_all_rows_of_the_table_of_minimal_changes(lake: Lake) -> None:
    """Every line of table 5 at once: each key is one line."""
    start = lake.create().sql(
        "INSERT INTO {t} VALUES (4, 'a'), (5, 'a'), (6, 'a'), (7, 'a'), (8, 'a'), (9, 'a'), (10, 'a')"
    )
    lake.sql(
        "INSERT INTO {t} VALUES (1, 'gone'), (2, 'b'), (3, 'a')",  # 1 absent, absent; 2 insert; 3 insert, update
        "UPDATE {t} SET v = 'b' WHERE k IN (3, 5, 6, 7)",  # 5 update, delete; 6 updates; 7 away …
        "DELETE FROM {t} WHERE k IN (1, 4, 5, 9, 10)",  # 4 delete; 9, 10 delete …
        "UPDATE {t} SET v = CASE WHEN k = 7 THEN 'a' ELSE 'c' END WHERE k IN (6, 7)",  # … 7 and back; 6 once more
        "UPDATE {t} SET v = v WHERE k = 8",  # 8 an update that changes nothing
        "INSERT INTO {t} VALUES (9, 'a'), (10, 'b')",  # … 9, 10 insert of the same key
    )
    assert lake.changes(start) == sorted(
        [
            ("INSERT", False, 2, "b"),
            ("INSERT", False, 3, "b"),
            ("DELETE", False, 4, "a"),
            ("DELETE", False, 5, "a"),
            ("DELETE", True, 6, "a"),
            ("INSERT", True, 6, "c"),
            ("DELETE", False, 9, "a"),
            ("INSERT", False, 9, "a"),
            ("DELETE", False, 10, "a"),
            ("INSERT", False, 10, "b"),
        ],
        key=repr,
    )
    assert lake.appended(start) == sorted(
        [
            ("INSERT", False, 1, "gone"),
            ("INSERT", False, 2, "b"),
            ("INSERT", False, 3, "a"),
            ("INSERT", False, 9, "a"),
            ("INSERT", False, 10, "b"),
        ],
        key=repr,
    )


def test_columns_are_the_sources_then_the_three_of_metadata(lake: Lake) -> None:
    """R27, R28; the same for an empty window, which reads nothing."""
    start = lake.create("k INT, v STRING, d DECIMAL(9, 2)").version
    assert lake.plan(start).empty
    empty = lake.frame(start)
    lake.sql("INSERT INTO {t} VALUES (1, 'a', 1.5)")
    frame = lake.frame(start)
    assert frame.dtypes == empty.dtypes
    assert frame.columns == ["k", "v", "d", ACTION, IS_UPDATE, ROW_ID]
    assert empty.collect() == []


def test_a_row_keeps_its_id_and_its_duplicate_has_another(lake: Lake) -> None:
    """R30, R31: over UPDATE, key change, partition move, compaction and however the window is cut."""
    created = lake.create("k INT, v STRING", "PARTITIONED BY (v)").version
    lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (2, 'a')")
    first = lake.frame(created)
    born = {row["k"]: row[ROW_ID] for row in first.collect()}
    assert len({row[ROW_ID] for row in first.collect()}) == 3
    start = lake.version
    lake.sql("UPDATE {t} SET v = 'b', k = 11 WHERE k = 1", "OPTIMIZE {t}", "UPDATE {t} SET v = 'c' WHERE k = 11")
    ids = lake.ids(start)
    assert ids == {("DELETE", 1): born[1], ("INSERT", 11): born[1]}
    table_id = lake.log.state().table_id
    assert born[1].startswith(f"{table_id}:")


def test_n_commits_and_their_parts_tell_the_same(lake: Lake) -> None:
    """R50: two windows in a row add up to what one shows."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')")
    middle = lake.sql("UPDATE {t} SET v = 'b' WHERE k = 1", "DELETE FROM {t} WHERE k = 2")
    lake.sql("UPDATE {t} SET v = 'c' WHERE k = 1")
    assert lake.changes(start) == sorted(
        [("DELETE", False, 2, "a"), ("DELETE", True, 1, "a"), ("INSERT", True, 1, "c")], key=repr
    )
    assert lake.changes(middle) == [("DELETE", True, 1, "b"), ("INSERT", True, 1, "c")]


def test_truncate_deletes_every_row_that_was_there(lake: Lake) -> None:
    """R55."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (1, 'a'), (NULL, NULL)")
    lake.sql("INSERT INTO {t} VALUES (9, 'never seen')", "DELETE FROM {t}")
    assert lake.changes(start) == sorted(
        [("DELETE", False, 1, "a"), ("DELETE", False, 1, "a"), ("DELETE", False, None, None)], key=repr
    )


def test_overwrite_is_delete_and_insert_also_of_equal_rows(lake: Lake) -> None:
    """R56, whole and of one partition."""
    start = lake.create("k INT, v STRING", "PARTITIONED BY (v)").sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    part = lake.sql("INSERT INTO {t} REPLACE WHERE v = 'a' SELECT 1 AS k, 'a' AS v")
    assert lake.changes(start) == [("DELETE", False, 1, "a"), ("INSERT", False, 1, "a")]
    lake.sql("INSERT OVERWRITE {t} VALUES (2, 'b')")
    assert lake.changes(part) == sorted(
        [("DELETE", False, 1, "a"), ("DELETE", False, 2, "b"), ("INSERT", False, 2, "b")], key=repr
    )
    assert lake.appended(start) == [("INSERT", False, 1, "a"), ("INSERT", False, 2, "b")]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_merge_updates_deletes_and_inserts(lake: Lake, vectors: str) -> None:
    """R57, with deletion vectors and by copy."""
    start = lake.create(delta__enableDeletionVectors=vectors).sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 6, 1, 1)"
    )
    lake.sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'b'), (2, 'x'), (7, 'n') AS s(k, v)) s ON t.k = s.k "
        "WHEN MATCHED AND s.v = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.k = 5 THEN DELETE"
    )
    assert lake.changes(start) == sorted(
        [
            ("DELETE", True, 1, "a"),
            ("INSERT", True, 1, "b"),
            ("DELETE", False, 2, "a"),
            ("DELETE", False, 5, "a"),
            ("INSERT", False, 7, "n"),
        ],
        key=repr,
    )
    assert lake.appended(start) == [("INSERT", False, 7, "n")]


def test_versions_without_row_changes_show_and_read_nothing(lake: Lake) -> None:
    """R58: OPTIMIZE, properties, a wider protocol; the plan of the window is empty."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} VALUES (2, 'b')")
    end = lake.sql(
        "OPTIMIZE {t}",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '7')",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (k > 0)",
    )
    assert end == start + 3
    plan = lake.plan(start)
    assert (plan.empty, plan.netting) == (True, Netting.NOTHING)
    assert lake.changes(start) == []


def test_a_row_that_changes_before_and_after_optimize_is_one_pair(lake: Lake) -> None:
    """Read without the rewrite, such a row stands twice on a side; joined naively it came out three times."""
    start = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 200, 1, 1)")
    lake.sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'new' FROM range(1000, 1020, 1, 1)",
        "UPDATE {t} SET v = 'b' WHERE k IN (5, 1005)",
        "OPTIMIZE {t}",
        "UPDATE {t} SET v = 'c' WHERE k IN (5, 1005)",
    )
    assert lake.plan(start).candidate is Candidate.DATA_CHANGE
    inserted = [("INSERT", False, k, "c" if k == 1005 else "new") for k in range(1000, 1020)]
    assert lake.changes(start) == sorted([("DELETE", True, 5, "a"), ("INSERT", True, 5, "c"), *inserted], key=repr)
    assert lake.appended(start) == sorted((("INSERT", False, k, "new") for k in range(1000, 1020)), key=repr)


def test_restore_brings_rows_back_under_their_ids(lake: Lake) -> None:
    """The same file loses and regains rows: both differences of its deletion vectors are read."""
    first = lake.create().sql("INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 10, 1, 1)")
    second = lake.sql("DELETE FROM {t} WHERE k < 3")
    third = lake.sql("RESTORE TABLE {t} TO VERSION AS OF " + str(first), "DELETE FROM {t} WHERE k = 9")
    assert lake.changes(first, third) == [("DELETE", False, 9, "a")]
    back = lake.changes(second, third)
    assert back == sorted([("DELETE", False, 9, "a"), *(("INSERT", False, k, "a") for k in range(3))], key=repr)
    assert lake.appended(second, third) == []


def test_initial_rows_are_the_rows_of_that_version(lake: Lake) -> None:
    """R10: as inserts, with the ids that changes will have, whatever has happened since."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    lake.sql("UPDATE {t} SET v = 'z'", "DELETE FROM {t} WHERE k = 2")
    rows = read_snapshot(lake.spark, lake.log, start).collect()
    assert sorted((row[ACTION], row[IS_UPDATE], row.k, row.v) for row in rows) == [
        ("INSERT", False, 1, "a"),
        ("INSERT", False, 1, "a"),
        ("INSERT", False, 2, "b"),
    ]
    later = {row[ROW_ID] for row in lake.frame(start).where(f"`{ACTION}` = 'DELETE'").collect()}
    assert later == {row[ROW_ID] for row in rows}


def test_equal_content_is_no_change(lake: Lake) -> None:
    """R54: NULL equals NULL, NaN equals NaN, a map whatever its order, also inside structs and arrays."""
    kind = "k INT, d DOUBLE, m MAP<STRING, DOUBLE>, s ARRAY<STRUCT<x: INT, y: MAP<INT, STRING>>>, b BINARY"
    start = lake.create(kind).sql(
        "INSERT INTO {t} VALUES "
        "(1, double('NaN'), map('a', double('NaN'), 'b', 2), "
        "array(named_struct('x', 1, 'y', map(1, 'p', 2, NULL))), X'00'), "
        "(2, NULL, NULL, NULL, NULL), (3, 1, map(), array(NULL), X'')"
    )
    lake.sql(
        "UPDATE {t} SET d = double('NaN'), m = map('b', 2, 'a', double('NaN')), "
        "s = array(named_struct('x', 1, 'y', map(2, NULL, 1, 'p'))) WHERE k = 1",
        "UPDATE {t} SET d = NULL WHERE k = 2",
        "UPDATE {t} SET b = b, m = map() WHERE k = 3",
    )
    assert lake.plan(start).rows(1) == 3
    assert lake.changes(start) == []
    before = lake.version
    lake.sql("UPDATE {t} SET m = map('b', 2) WHERE k = 1", "UPDATE {t} SET s = array() WHERE k = 3")
    assert [(row[0], row[1], row[2]) for row in lake.changes(before)] == [
        ("DELETE", True, 1),
        ("DELETE", True, 3),
        ("INSERT", True, 1),
        ("INSERT", True, 3),
    ]


def test_content_is_compared_byte_by_byte(lake: Lake) -> None:
    """R54: a trailing space, another case, another normal form are changes; NULL is not the empty string."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'é'), (4, NULL)")
    lake.sql("UPDATE {t} SET v = CASE k WHEN 1 THEN 'a ' WHEN 2 THEN 'A' WHEN 3 THEN 'e\u0301' ELSE '' END")
    assert len(lake.changes(start)) == 8


def test_many_rows_are_netted_like_few(lake: Lake) -> None:
    """The join over cancelled ids gives what the one aggregate gives, rows carried over by a copy included."""
    start = lake.create(delta__enableDeletionVectors="false").sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 100, 1, 1)"
    )
    lake.sql(
        "UPDATE {t} SET v = 'b' WHERE k IN (3, 4)",
        "DELETE FROM {t} WHERE k = 5",
        "INSERT INTO {t} VALUES (200, 'n')",
        "UPDATE {t} SET v = 'a' WHERE k = 4",
    )
    plan = lake.plan(start)
    assert plan.netting is Netting.AGGREGATE
    expected = {("DELETE", False, 5), ("DELETE", True, 3), ("INSERT", True, 3), ("INSERT", False, 200)}
    assert {row[:3] for row in lake.changes(start)} == expected
    for other in (Netting.JOIN, Netting.COMMIT_VERSION):
        rows = read_changes(lake.spark, lake.log, replace(plan, netting=other), lake.workspace).collect()
        assert {(row[ACTION], row[IS_UPDATE], row.k) for row in rows} == expected, other


@pytest.mark.parametrize("netting", [Netting.AGGREGATE, Netting.JOIN])
@pytest.mark.parametrize("count", [10, 5_000_000])
def test_a_row_twice_on_a_side_is_an_error_never_a_result(lake: Lake, netting: Netting, count: int) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("UPDATE {t} SET v = 'b'")
    plan = lake.plan(start)
    plan = replace(plan, netting=netting, files=tuple(replace(file, rows=count // 2) for file in plan.files))
    rows = lake.spark.range(2).select(
        F.lit(1).alias("side"),
        F.lit(0).cast("bigint").alias("version"),
        F.lit(7).cast("bigint").alias("row_id"),
        F.col("id").alias("commit"),
        F.struct(F.col("id").alias("k")).alias("image"),
    )
    with pytest.raises(SparkRuntimeException, match="more than one image on a side for row id 7"):
        net(rows, plan).collect()
