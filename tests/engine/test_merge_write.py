"""A merge makes the target a mirror: per key the INSERT image, else the DELETE."""

from __future__ import annotations

from datetime import date

import pytest
from pyspark.sql import functions as F

from tests.engine.statements import delivering, make, rows_of, statement
from tidemark.delivery.driver.exactly_once import open_target, partition_columns, target_schema, write_statement
from tidemark.delivery.driver.merge import prepare_merge
from tidemark.errors import AmbiguousMergeKey, MissingMergeKey, TargetDoesNotFit
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import SchemaEvolution, WriteAs

pytestmark = pytest.mark.spark

CHANGES = "id BIGINT, v STRING, `METADATA$ACTION` STRING, `METADATA$ISUPDATE` BOOLEAN, `METADATA$ROW_ID` STRING"


def changes(spark, *rows, schema=CHANGES):
    return spark.createDataFrame([(*row, False, "r") for row in rows], schema)


def merge(frame, path, *keys, evolution=SchemaEvolution.FAIL):
    stmt = statement(path, write_as=WriteAs.MERGE, keys=keys, schema_evolution=evolution)
    log = open_target(stmt, None)
    prepared = prepare_merge(frame, stmt, target_schema(log), keys, partitioned=partition_columns(log))
    try:
        prepared.run()
    finally:
        prepared.close()


@pytest.mark.quick
def test_inserts_updates_deletes_and_key_changes_arrive_and_nulls_are_keys(spark, tmp_path):
    path = tmp_path / "t"
    make(spark, path, [(1, "a"), (2, "b"), (3, "c"), (None, "n"), (9, "stays")])
    frame = changes(
        spark,
        (1, "a", "DELETE"),  # updated
        (1, "A", "INSERT"),
        (2, "b", "DELETE"),  # gone
        (3, "c", "DELETE"),  # its key changed
        (4, "c", "INSERT"),
        (None, "n", "DELETE"),
        (None, "N", "INSERT"),
        (5, "e", "INSERT"),  # new
        (6, "never there", "DELETE"),
    )
    merge(frame, path, "id")
    got = spark.read.format("delta").load(str(path)).collect()
    assert {tuple(row) for row in got} == {(1, "A"), (4, "c"), (None, "N"), (5, "e"), (9, "stays")}
    assert len(got) == 5


def test_an_empty_text_key_matches_the_null_that_a_partition_has_for_it(spark, tmp_path):
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id STRING, v STRING) USING delta PARTITIONED BY (id)")
    schema = CHANGES.replace("id BIGINT", "id STRING")
    merge(changes(spark, ("", "a", "INSERT"), ("x", "b", "INSERT"), schema=schema), path, "id")
    merge(changes(spark, ("", "a", "DELETE"), ("", "A", "INSERT"), schema=schema), path, "id")
    assert {tuple(row) for row in spark.read.format("delta").load(str(path)).collect()} == {(None, "A"), ("x", "b")}
    merge(changes(spark, ("", "A", "DELETE"), schema=schema), path, "id")
    assert rows_of(spark, path) == [("x", "b")]


def test_a_merge_keeps_in_its_commit_how_many_rows_of_the_change_set_it_read(spark, tmp_path):
    session, path = spark.newSession(), tmp_path / "t"
    make(session, path, [(1, "a"), (2, "b")])
    frame = changes(session, (1, "a", "DELETE"), (1, "A", "INSERT"), (2, "b", "INSERT"), (7, "gone", "DELETE"))
    stmt = statement(path, write_as=WriteAs.MERGE, keys=("id",))
    prepared = prepare_merge(frame, stmt, target_schema(open_target(stmt, None)), ("id",))
    evidence = write_statement(session, delivering(), stmt, prepared.run, changes=prepared.changes)
    prepared.close()
    again = write_statement(session, delivering(), stmt, prepared.run)
    assert (evidence.changes, sum(evidence.rows.values())) == (4, 1)
    assert (again.found, again.changes) == (True, 4)


def test_rows_that_are_equal_already_stay_untouched(spark, tmp_path):
    path = tmp_path / "t"
    make(spark, path, [(1, "a"), (2, None)])
    merge(changes(spark, (1, "a", "INSERT"), (2, None, "INSERT"), (3, "c", "INSERT")), path, "id")
    (commit,) = DeltaLog.open(str(path)).commits(0, 1)
    assert commit.operation_metrics["numTargetRowsUpdated"] == "0"
    assert commit.operation_metrics["numTargetRowsInserted"] == "1"
    assert commit.operation_metrics["numTargetRowsDeleted"] == "0"


@pytest.mark.parametrize(
    ("rows", "duplicates"),
    [
        ([(1, "a", "INSERT"), (1, "b", "INSERT")], 1),
        ([(1, "a", "DELETE"), (1, "b", "DELETE"), (2, "a", "DELETE"), (2, "b", "DELETE")], 2),
        ([(None, "a", "INSERT"), (None, "b", "INSERT"), (None, "a", "DELETE")], 1),
    ],
)
def test_a_key_that_stands_twice_on_its_side_is_refused_before_the_write(spark, tmp_path, rows, duplicates):
    path = tmp_path / "t"
    make(spark, path, [(1, "a")])
    with pytest.raises(AmbiguousMergeKey) as refused:
        merge(changes(spark, *rows), path, "id")
    assert refused.value.facts["duplicates"] == duplicates
    assert '"id":' in refused.value.facts["example"]
    assert DeltaLog.open(str(path)).head() == 0


def test_two_deletes_of_one_key_beside_its_insert_are_an_update(spark, tmp_path):
    path = tmp_path / "t"
    make(spark, path, [(1, "a")])
    merge(changes(spark, (1, "a", "DELETE"), (1, "b", "DELETE"), (1, "c", "INSERT")), path, "id")
    assert rows_of(spark, path) == [(1, "c")]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [((), "none are given"), (("nope",), "the stream has no column nope"), (("ID", "x"), "has no column x")],
)
def test_missing_keys_are_named(spark, tmp_path, keys, problem):
    path = tmp_path / "t"
    make(spark, path, [(1, "a")])
    with pytest.raises(MissingMergeKey, match=problem):
        merge(changes(spark, (1, "a", "INSERT")), path, *keys)


def test_new_columns_fail_or_are_added(spark, tmp_path):
    path = tmp_path / "t"
    make(spark, path, [(1, "a"), (2, "b")])
    wide = changes(spark, (1, "a", 7, "INSERT"), schema=CHANGES.replace("v STRING,", "v STRING, extra INT,"))
    with pytest.raises(TargetDoesNotFit, match="extra"):
        merge(wide, path, "id")
    merge(wide, path, "id", evolution=SchemaEvolution.ADD)
    assert rows_of(spark, path) == [(1, "a", 7), (2, "b", None)]


def test_odd_column_names_types_and_maps_are_carried(spark, tmp_path):
    path = tmp_path / "t"
    schema = "`a.key` INT, `wei rd` STRUCT<x: INT>, m MAP<STRING, INT>"
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({schema.replace('INT, `wei', 'BIGINT, `wei')}) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    rows = [(1, (5,), {"a": 1}, "INSERT"), (2, None, None, "INSERT")]
    frame = spark.createDataFrame(rows, schema + ", `METADATA$ACTION` STRING")
    merge(frame, path, "A.KEY")
    merge(frame, path, "A.KEY")
    assert [(r[0], r[1], r[2]) for r in spark.read.format("delta").load(str(path)).orderBy("`a.key`").collect()] == [
        (1, (5,), {"a": 1}),
        (2, None, None),
    ]
    (commit,) = DeltaLog.open(str(path)).commits(1, 2)
    assert commit.operation_metrics["numTargetRowsUpdated"] == "0"


def test_a_target_with_char_columns_is_merged_into_also_by_a_char_key(spark, tmp_path):
    """Texts of a CHAR are padded in some files and not in others, and so are those of the stream."""
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id CHAR(4), v CHAR(3), w VARCHAR(3)) USING delta")
    rows = "('a   ', 'x  ', 'x'), ('b', 'x', 'x'), ('c', 'x', 'x'), (NULL, 'n', NULL)"
    spark.sql(f"INSERT INTO delta.`{path}` VALUES {rows}")
    before = spark.conf.get("spark.sql.readSideCharPadding")
    frame = spark.createDataFrame(
        [
            ("a", "x", "x", "INSERT"),  # as it is
            ("b", "y", "y ", "INSERT"),
            ("c ", "x", "x", "DELETE"),
            ("d", "z  ", None, "INSERT"),
            ("d   ", "old", None, "DELETE"),
            (None, None, "n", "INSERT"),
        ],
        "id STRING, v STRING, w STRING, `METADATA$ACTION` STRING",
    )
    merge(frame, path, "id")
    assert set(rows_of_any(spark, path)) == {
        ("a   ", "x  ", "x"), ("b   ", "y  ", "y "), ("d   ", "z  ", None), (None, None, "n"),
    }  # fmt: skip
    assert spark.conf.get("spark.sql.readSideCharPadding") == before
    (commit,) = DeltaLog.open(str(path)).commits(1, 2)
    counted = {kind: commit.operation_metrics[f"numTargetRows{kind}"] for kind in ("Updated", "Inserted", "Deleted")}
    assert counted == {"Updated": "2", "Inserted": "1", "Deleted": "1"}

    twice = spark.createDataFrame([("e", "1"), ("e  ", "2")], "id STRING, v STRING")
    with pytest.raises(AmbiguousMergeKey):
        merge(twice, path, "id")
    with pytest.raises(Exception, match="EXCEED_CHAR_VARCHAR_LIMIT"):
        merge(spark.createDataFrame([("e", "four")], "id STRING, v STRING"), path, "id")
    assert DeltaLog.open(str(path)).head() == 2


def rows_of_any(spark, path):
    return [tuple(row) for row in spark.read.format("delta").load(str(path)).collect()]


RANGES = {
    "bigint": ("BIGINT", [1, 50, 99]),
    "tinyint": ("TINYINT", [1, 50, 99]),
    "date": ("DATE", [date(1, 1, 1), date(2026, 3, 1), date(9999, 12, 31)]),
    "text": ("STRING", ["a", "mé%'", "z" * 40]),
}


@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_files_that_can_have_none_of_the_keys_are_not_read(spark, tmp_path, kind, partitioned):
    data_type, (below, within, above) = RANGES[kind]
    path, files = tmp_path / "t", {}
    for key in (below, within, None, above):
        frame = spark.createDataFrame([(key, "old")], f"id {data_type}, v STRING")
        frame.coalesce(1).write.format("delta").partitionBy(*["id"] * partitioned).mode("append").save(str(path))
        (files[key],) = set(path.rglob("part-*.parquet")) - set(files.values())
    for key in (below, above):
        files[key].unlink()  # whoever reads it fails
    schema = CHANGES.replace("BIGINT", data_type)
    merge(changes(spark, (within, "new", "INSERT"), schema=schema), path, "id")
    files[None].unlink()
    with pytest.raises(Exception, match=r"(?i)not exist|no such file"):
        merge(changes(spark, (None, "new", "INSERT"), (within, "newer", "INSERT"), schema=schema), path, "id")


def test_keys_that_python_cannot_hold_are_merged_like_others(spark, tmp_path):
    days = spark.sql("SELECT * FROM VALUES (DATE'+12345-01-01', 'old'), (DATE'-0044-03-15', 'old') AS t (id, v)")
    texts = spark.sql("SELECT CAST(id AS STRING) AS id, 'old' AS v FROM VALUES (X'FF61'), (X'C3'), (X'61') AS t (id)")
    for name, old in (("days", days), ("texts", texts)):
        path = tmp_path / name
        old.write.format("delta").save(str(path))
        new = old.withColumn("v", F.lit("new")).withColumn("METADATA$ACTION", F.lit("INSERT"))
        merge(new, path, "id")
        got = spark.read.format("delta").load(str(path))
        assert (got.count(), got.where("v = 'new'").count()) == (old.count(), old.count())


def test_a_key_of_megabytes_bounds_what_it_can(spark, tmp_path):
    path = tmp_path / "t"
    make(spark, path, [("a", "old"), ("m" * 5_000_000, "old")], schema="id STRING, v STRING")
    rows = (("m" * 5_000_000, "new", "INSERT"), ("n" * 2_000, "new", "INSERT"))
    merge(changes(spark, *rows, schema=CHANGES.replace("BIGINT", "STRING")), path, "id")
    got = {(row.id[:1], len(row.id), row.v) for row in spark.read.format("delta").load(str(path)).collect()}
    assert got == {("a", 1, "old"), ("m", 5_000_000, "new"), ("n", 2_000, "new")}
