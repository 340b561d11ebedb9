"""Odd names and paths, added, renamed and dropped columns, other partitionings: what a window shows of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake
from tidemark.errors import IncompatibleSchemaChange
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

MAPPING = {"delta__columnMapping__mode": "name"}


PLAIN = ["a.b", "per%cent", "quo'te\"s", "tick`s`", "größe", "side", "__side", "row_id", "image"]
MAPPED = [*PLAIN, "with space", "a, b;{c}(d)=e", "a.b.`c`%'\"ü", "new\tline"]


@pytest.mark.parametrize("place", ['a b.c 100% it\'s "q" żółw ä 日本', "a%20b #c?d=e;f,g"])
def test_any_path_is_read(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """Table, data directories and workspace each under the odd name; deletion vectors too."""
    with Workspace(f"file://{tmp_path}/{place} room", "t") as workspace:
        lake = Lake(spark, tmp_path / place / "tab le", workspace).create("k INT, p STRING", "PARTITIONED BY (p)")
        value = place.replace("'", "''")
        start = lake.sql(f"INSERT INTO {{t}} SELECT CAST(id AS INT), '{value}' FROM range(0, 4, 1, 1)")
        lake.sql("UPDATE {t} SET k = 10 WHERE k = 1", "DELETE FROM {t} WHERE k = 2")
        assert lake.changes(start) == [
            ("DELETE", False, 2, place),
            ("DELETE", True, 1, place),
            ("INSERT", True, 10, place),
        ]


@pytest.mark.parametrize(("names", "mapping"), [(PLAIN, {}), (MAPPED, MAPPING)])
def test_any_column_name_is_read(lake: Lake, names: list[str], mapping: dict[str, str]) -> None:
    """Names that we use ourselves too. (`_metadata` is not among them: Delta's own UPDATE fails on it.)"""
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    lake.create(f"k INT, {', '.join(f'{name} STRING' for name in quoted)}", **mapping)
    values = ", ".join(f"'{number}'" for number in range(len(names)))
    start = lake.sql(f"INSERT INTO {{t}} VALUES (1, {values}), (2, {values})")
    lake.sql(f"UPDATE {{t}} SET {quoted[-1]} = 'b' WHERE k = 1", f"INSERT INTO {{t}} VALUES (3, {values})")
    frame = lake.frame(start)
    assert frame.columns[: 1 + len(names)] == ["k", *names]
    old = tuple(str(number) for number in range(len(names)))
    assert lake.changes(start) == [
        ("DELETE", True, 1, *old),
        ("INSERT", False, 3, *old),
        ("INSERT", True, 1, *old[:-1], "b"),
    ]


@pytest.mark.parametrize("mapping", [{}, MAPPING])
def test_an_added_column_is_null_in_old_images(lake: Lake, mapping: dict[str, str]) -> None:
    """R100: the change of schema alone gives no rows."""
    start = lake.create(**mapping).sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    end = lake.sql("ALTER TABLE {t} ADD COLUMNS (extra INT)")
    assert lake.changes(start, end) == []
    assert lake.frame(start).columns[:3] == ["k", "v", "extra"]
    lake.sql("UPDATE {t} SET extra = 5 WHERE k = 1", "DELETE FROM {t} WHERE k = 2")
    assert lake.changes(start) == sorted(
        [("DELETE", True, 1, "a", None), ("INSERT", True, 1, "a", 5), ("DELETE", False, 2, "b", None)], key=repr
    )


def test_a_renamed_column_has_both_images_under_the_new_name(lake: Lake) -> None:
    """R101, and R102: a dropped one is in neither, and an update of it alone is none."""
    start = lake.create("k INT, v STRING, w INT", **MAPPING).sql("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)")
    lake.sql("UPDATE {t} SET w = 7 WHERE k = 2", "ALTER TABLE {t} RENAME COLUMN v TO `new name`")
    assert {row[:3] for row in lake.changes(start)} == {("DELETE", True, 2), ("INSERT", True, 2)}
    lake.sql("ALTER TABLE {t} DROP COLUMN w")
    assert lake.changes(start) == []
    lake.sql("UPDATE {t} SET `new name` = 'z' WHERE k = 1")
    assert lake.changes(start) == [("DELETE", True, 1, "a"), ("INSERT", True, 1, "z")]


def test_old_files_are_read_under_their_own_partitioning(lake: Lake) -> None:
    """Rows overwritten with another partitioning keep their values; read under the new one they were NULL."""
    start = lake.create("k INT, v STRING", "PARTITIONED BY (v)").sql("INSERT INTO {t} VALUES (1, 'a')")
    rows = lake.spark.sql("SELECT 2 AS k, 'b' AS v")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("k").save(str(lake.path))
    assert lake.changes(start) == [("DELETE", False, 1, "a"), ("INSERT", False, 2, "b")]
    assert lake.appended(start) == [("INSERT", False, 2, "b")]


def test_another_type_is_refused_before_a_row_is_read(lake: Lake) -> None:
    """R103: the error names the column and both types."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    rows = lake.spark.sql("SELECT 2 AS k, 3 AS v")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(lake.path))
    with pytest.raises(IncompatibleSchemaChange, match="'v' was of type string and is now of type integer") as raised:
        lake.plan(start)
    assert (raised.value.facts["start"], raised.value.facts["end"]) == (start, start + 1)
