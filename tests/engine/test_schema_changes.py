"""Schema changes inside one window: images of all its files under the columns and types of its end (R100–R105)."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException

from tests.engine.lakes import Lake
from tests.engine.oracle import assert_difference
from tidemark.changes.planning.sets.plan import Candidate
from tidemark.errors import IncompatibleSchemaChange

pytestmark = pytest.mark.spark

BY_NAME = {"delta__columnMapping__mode": "name"}
BY_ID = {"delta__columnMapping__mode": "id"}
WIDENING = {"delta__enableTypeWidening": "true"}
WIDENING_TO_NTZ = {**WIDENING, "delta__feature__timestampNtz": "supported"}
FEED = {"delta__enableChangeDataFeed": "true"}


def write(lake: Lake, query: str, mode: str, *partitions: str, **options: str) -> int:
    rows = lake.spark.sql(query).write.format("delta").mode(mode).options(**options)
    (rows.partitionBy(*partitions) if partitions else rows).save(str(lake.path))
    return lake.version


def pair(old: tuple[object, ...], new: tuple[object, ...]) -> list[tuple[object, ...]]:
    return [("DELETE", True, *old), ("INSERT", True, *new)]


def test_fields_added_at_any_depth_are_null_in_older_rows(lake: Lake) -> None:
    lake.create("k INT, s STRUCT<x: INT>, a ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>")
    row = "(1, named_struct('x', 1), array(named_struct('x', 1)), map('a', named_struct('x', 1)))"
    start = lake.sql(f"INSERT INTO {{t}} VALUES {row}, {row.replace('(1,', '(2,', 1)}")
    lake.sql(
        f"INSERT INTO {{t}} VALUES {row.replace('(1,', '(3,', 1)}",
        "ALTER TABLE {t} ADD COLUMNS (s.y INT FIRST, a.element.y INT, m.value.y INT, z INT AFTER k)",
        "UPDATE {t} SET s.y = 7 WHERE k = 1",
        "DELETE FROM {t} WHERE k = 2",
    )
    nested = ([(1, None)], {"a": (1, None)})
    assert lake.changes(start) == sorted(
        [
            *pair((1, None, (None, 1), *nested), (1, None, (7, 1), *nested)),
            ("DELETE", False, 2, None, (None, 1), *nested),
            ("INSERT", False, 3, None, (None, 1), *nested),
        ],
        key=repr,
    )
    assert lake.appended(start) == [("INSERT", False, 3, None, (None, 1), *nested)]


@pytest.mark.parametrize("mapping", [BY_NAME, BY_ID], ids=["by name", "by id"])
def test_fields_renamed_dropped_and_moved_at_any_depth(lake: Lake, mapping: dict[str, str]) -> None:
    """R101, R102. What was dropped and added again is another column: NULL in older rows, though they have values."""
    lake.create("k INT, v STRING, w INT, s STRUCT<x: INT, y: INT>, a ARRAY<STRUCT<x: INT, y: INT>>", **mapping)
    row = "'old', 5, named_struct('x', 1, 'y', 2), array(named_struct('x', 1, 'y', 2))"
    start = lake.sql(f"INSERT INTO {{t}} VALUES (1, {row}), (2, {row})")
    lake.sql(
        f"INSERT INTO {{t}} VALUES (3, {row})",
        "ALTER TABLE {t} DROP COLUMNS (w, s.x, a.element.x)",
        "ALTER TABLE {t} ADD COLUMNS (w INT, s.x INT, a.element.z INT)",
        "ALTER TABLE {t} RENAME COLUMN s.y TO x2",
        "ALTER TABLE {t} RENAME COLUMN a.element.y TO x",
        "ALTER TABLE {t} ALTER COLUMN v FIRST",
        "UPDATE {t} SET w = 9, s = named_struct('x2', 3, 'x', 4) WHERE k = 1",
        "DELETE FROM {t} WHERE k = 2",
    )
    assert lake.frame(start).columns[:5] == ["v", "k", "s", "a", "w"]
    array = [(2, None)]
    assert lake.changes(start) == sorted(
        [
            *pair(("old", 1, (2, None), array, None), ("old", 1, (3, 4), array, 9)),
            ("DELETE", False, "old", 2, (2, None), array, None),
            ("INSERT", False, "old", 3, (2, None), array, None),
        ],
        key=repr,
    )


def test_an_older_column_that_was_renamed_does_not_lend_its_name(lake: Lake) -> None:
    """Of another type, the column that has the name now would else seem to be the old one, changed."""
    start = lake.create(**BY_NAME).sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql("ALTER TABLE {t} RENAME COLUMN v TO w", "ALTER TABLE {t} ADD COLUMNS (v INT)", "DELETE FROM {t}")
    assert lake.changes(start) == [("DELETE", False, 1, "a", None)]


def test_column_mapping_that_is_turned_on_in_the_window(lake: Lake) -> None:
    start = lake.create("k INT, v STRING, w INT").sql("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)")
    lake.sql(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN v TO `v, new`",
        "ALTER TABLE {t} DROP COLUMN w",
        "UPDATE {t} SET `v, new` = 'c' WHERE k = 1",
    )
    assert_difference(lake, start, was={"v, new": "v"})


WIDER = {  # column → its type, a value of it, the wider type, a value that only that one has
    "b": ("BYTE", "7", "INT", "70000"),
    "i": ("INT", "7", "BIGINT", "7000000000"),
    "id": ("INT", "-7", "DOUBLE", "0.5D"),
    "ic": ("SHORT", "7", "DECIMAL(14,3)", "0.125BD"),
    "l": ("BIGINT", "7", "DECIMAL(22,2)", "0.25BD"),
    "f": ("FLOAT", "CAST(0.1 AS FLOAT)", "DOUBLE", "1e300D"),
    "c": ("DECIMAL(9,2)", "1234567.89BD", "DECIMAL(24,6)", "1.000001BD"),
    "t": ("DATE", "DATE'1969-12-31'", "TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2020-01-01 00:00:01'"),
}


def test_widened_types_cast_older_images_up(lake: Lake) -> None:
    """R105, in files of both types on both sides, and one that has rows of the window under the narrow type."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in WIDER.items())
    lake.create(f"k INT, {columns}, s STRUCT<x: INT>, a ARRAY<INT>, m MAP<INT, STRUCT<x: SHORT>>", **WIDENING_TO_NTZ)
    narrow = ", ".join(value for _, value, *_ in WIDER.values())
    nested = "named_struct('x', k), array(k), map(k, named_struct('x', k))"
    given = f"SELECT k, {narrow}, {nested} FROM (SELECT EXPLODE(ARRAY("
    start = lake.sql(f"INSERT INTO {{t}} {given}1, 2, 3)) k)")
    lake.sql(f"INSERT INTO {{t}} {given}4)) k)")
    for name, kind in [(name, wider[2]) for name, wider in WIDER.items()] + [
        ("s.x", "BIGINT"),
        ("a.element", "BIGINT"),
        ("m.key", "BIGINT"),
        ("m.value.x", "INT"),
    ]:
        lake.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE {kind}")
    wide = ", ".join(f"{name} = {value}" for name, (*_, value) in WIDER.items())
    lake.sql(f"UPDATE {{t}} SET {wide}, s.x = 7000000000 WHERE k = 1", "DELETE FROM {t} WHERE k = 2")
    assert len(assert_difference(lake, start)) == 4
    old = next(row for row in lake.changes(start) if row[:3] == ("DELETE", False, 2))
    assert old[3:11] == (
        7,
        7,
        -7.0,
        Decimal("7.000"),
        Decimal("7.00"),
        pytest.approx(0.1, rel=1e-7),
        Decimal("1234567.890000"),
        datetime.datetime(1969, 12, 31),  # noqa: DTZ001
    )


def test_types_widened_and_columns_added_by_writes(lake: Lake) -> None:
    """By mergeSchema, and by a MERGE that evolves the schema."""
    lake.create("k INT, v SHORT", delta__enableDeletionVectors="false", **WIDENING)
    start = lake.sql("INSERT INTO {t} VALUES (1, 1S), (2, 2S), (3, 3S)")
    write(lake, "SELECT 4 k, 70000 v, 'x' extra", "append", mergeSchema="true")
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t "
        "USING (SELECT 1 k, 7000000000 v, 2.5D more UNION ALL SELECT 5, 5, 5D) s "
        "ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "DELETE FROM {t} WHERE k = 2",
    )
    assert_difference(lake, start)
    assert ("DELETE", True, 1, 1, None, None) in lake.changes(start)
    assert ("INSERT", True, 1, 7000000000, None, 2.5) in lake.changes(start)


def test_partition_columns_whose_types_widened(lake: Lake) -> None:
    lake.create("k INT, p INT, q DATE", "PARTITIONED BY (p, q)", **WIDENING_TO_NTZ)
    start = lake.sql("INSERT INTO {t} VALUES (1, 7, DATE'2020-01-01'), (2, 7, DATE'2020-01-01'), (3, NULL, NULL)")
    lake.sql(
        "INSERT INTO {t} VALUES (4, 7, DATE'2020-01-01')",
        "ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN q TYPE TIMESTAMP_NTZ",
        "UPDATE {t} SET p = 7000000000, q = TIMESTAMP_NTZ'2021-01-01 01:02:03' WHERE k = 1",
        "DELETE FROM {t} WHERE k IN (2, 3)",
    )
    assert_difference(lake, start)


@pytest.mark.parametrize("mapping", [{}, BY_NAME], ids=["by its own names", "mapped by name"])
def test_files_of_several_schemas_and_partitionings_in_one_window(lake: Lake, mapping: dict[str, str]) -> None:
    """Each is read under its own partitioning; a type that an overwrite widens casts older images up."""
    lake.create("k INT, v STRING, d DATE", "PARTITIONED BY (v, d)", **mapping)
    start = lake.sql("INSERT INTO {t} VALUES (1, 'a', DATE'2020-01-01'), (2, NULL, NULL)")
    lake.sql("ALTER TABLE {t} ADD COLUMNS (extra INT)", "INSERT INTO {t} VALUES (3, 'c', NULL, 3)")
    query = "SELECT 'd' v, {kind}(4) k, 'e' extra2"
    write(lake, query.format(kind="bigint"), "overwrite", "k", overwriteSchema="true")
    assert lake.changes(start, start + 2) == [("INSERT", False, 3, "c", None, 3)]
    if mapping:
        with pytest.raises(IncompatibleSchemaChange, match="'k' was of type integer and is now of type long"):
            lake.plan(start)
        return
    expected = [("DELETE", False, "a", 1, None), ("DELETE", False, None, 2, None), ("INSERT", False, "d", 4, "e")]
    assert lake.changes(start) == expected
    assert lake.appended(start) == [("INSERT", False, "c", 3, None), expected[-1]]


def test_a_column_of_no_type_that_gets_one(lake: Lake) -> None:
    start = lake.create("k INT, n VOID, v STRING").sql("INSERT INTO {t} (k, v) VALUES (1, 'a'), (2, 'b')")
    write(lake, "SELECT 3 k, 5 n, 'c' v", "append", mergeSchema="true")
    lake.sql("DELETE FROM {t} WHERE k = 1")
    assert lake.changes(start) == [("DELETE", False, 1, None, "a"), ("INSERT", False, 3, 5, "c")]


def test_defaults_are_for_rows_to_come(lake: Lake) -> None:
    """Delta adds no column with a default, and a default set later is not seen in rows that are there (R100)."""
    start = lake.create(delta__feature__allowColumnDefaults="supported").sql(
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"
    )
    with pytest.raises(AnalysisException, match="DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED"):
        lake.sql("ALTER TABLE {t} ADD COLUMNS (d INT DEFAULT 7)")
    lake.sql(
        "ALTER TABLE {t} ADD COLUMNS (d INT)",
        "ALTER TABLE {t} ALTER COLUMN d SET DEFAULT 7",
        "UPDATE {t} SET v = 'x' WHERE k = 1",
        "INSERT INTO {t} (k, v) VALUES (3, 'c')",
    )
    assert lake.changes(start) == sorted(
        [*pair((1, "a", None), (1, "x", None)), ("INSERT", False, 3, "c", 7)], key=repr
    )


def test_the_feed_shows_widened_and_added_columns_like_data_files(lake: Lake) -> None:
    """Change files of both types, and such as lack the new column, in one window that is read through them."""
    lake.create("k INT, v SHORT, s STRUCT<x: INT>", delta__enableDeletionVectors="false", **FEED, **WIDENING)
    start = lake.sql("INSERT INTO {t} SELECT CAST(id AS INT), 1S, named_struct('x', 1) FROM range(0, 20000, 1, 1)")
    lake.sql(
        "UPDATE {t} SET v = 2S WHERE k = 1",
        "DELETE FROM {t} WHERE k = 2",
        "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT",
        "ALTER TABLE {t} ADD COLUMNS (extra INT)",
        "UPDATE {t} SET v = 7000000000, s.x = 7000000000, extra = 5 WHERE k = 3",
        "DELETE FROM {t} WHERE k = 4",
    )
    assert lake.plan(start).candidate is Candidate.FEED
    one = (1,)
    assert lake.changes(start) == sorted(
        [
            *pair((1, 1, one, None), (1, 2, one, None)),
            ("DELETE", False, 2, 1, one, None),
            *pair((3, 1, one, None), (3, 7000000000, (7000000000,), 5)),
            ("DELETE", False, 4, 1, one, None),
        ],
        key=repr,
    )


@pytest.mark.parametrize("mapping", [{}, BY_NAME], ids=["by its own names", "mapped by name"])
def test_other_types_are_refused_before_a_row_is_read(lake: Lake, mapping: dict[str, str]) -> None:
    """R103: the plan fails. Mapped by name, Delta makes another column of it, in which old values would be NULL."""
    lake.create("k BIGINT, s STRUCT<x: INT, y: STRING>", **mapping)
    start = lake.sql("INSERT INTO {t} VALUES (1, named_struct('x', 1, 'y', 'a'))")
    end = write(lake, "SELECT 1 k, named_struct('x', 1, 'y', 'a') s", "overwrite", overwriteSchema="true")
    with pytest.raises(
        IncompatibleSchemaChange, match="column 'k' was of type long and is now of type integer"
    ) as found:
        lake.plan(start)
    assert (found.value.facts["start"], found.value.facts["end"]) == (start, end)
    write(lake, "SELECT 1 k, named_struct('x', 1, 'y', 2) s", "overwrite", overwriteSchema="true")
    with pytest.raises(IncompatibleSchemaChange, match=r"column 's.y' was of type string and is now of type integer"):
        lake.plan(end)
    assert lake.plan(lake.version).empty, "the stream is not stale: from the change on it reads"


def test_a_type_that_a_restore_takes_back_is_refused(lake: Lake) -> None:
    """A row that was born under the wide type cannot be shown under the narrow one."""
    start = lake.create(**WIDENING).sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.sql(
        "ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT",
        "INSERT INTO {t} VALUES (7000000000, 'b')",
        f"RESTORE TABLE {{t}} TO VERSION AS OF {start}",
    )
    assert lake.changes(start) == []
    with pytest.raises(IncompatibleSchemaChange, match="'k' was of type long and is now of type integer"):
        lake.appended(start)
