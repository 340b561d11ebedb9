"""Streams that tell rows apart by key columns: full reloads, and tables that have no row tracking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake as Table
from tidemark.client import Version, connect
from tidemark.client.lake import Lake
from tidemark.errors import (
    IncompatibleSchemaChange,
    InvalidArgument,
    KeyColumnChanged,
    KeyNotUnique,
    RowTrackingDisabled,
)
from tidemark.jobs.workspace import Workspace
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID

pytestmark = pytest.mark.spark

UNTRACKED = {"delta__enableRowTracking": "false"}
TRACKING_ON = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
MAPPED = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
Change = tuple[Any, ...]


@pytest.fixture
def client(spark: SparkSession, tmp_path: Path) -> Lake:
    return connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path), who="ann")


def stream(client: Lake, table: Table, *keys: str, name: str = "s", **more: Any) -> None:
    client.create_stream(name, on=str(table.path), keys=keys or ("k",), **more)


def shown(client: Lake, name: str = "s") -> list[Change]:
    """(action, is update, *columns), sorted."""
    rows = client.stream(name).collect()
    return sorted(((row[ACTION], row[IS_UPDATE], *row[: len(row) - 3]) for row in rows), key=repr)


def keys_of(client: Lake, table: Table, name: str = "s") -> set[str]:
    """METADATA$ROW_ID without the table id, which all must have."""
    ids = [row[ROW_ID] for row in client.stream(name).select(f"`{ROW_ID}`").collect()]
    prefix = f"{table.log.state().table_id}:"
    assert all(text.startswith(prefix) for text in ids)
    return {text.removeprefix(prefix) for text in ids}


@pytest.mark.parametrize("tracked", ["true", "false"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_of_a_full_reload_only_what_really_changed_shows(
    client: Lake, lake: Table, spark: SparkSession, tracked: str, vectors: str
) -> None:
    lake.create(delta__enableRowTracking=tracked, delta__enableDeletionVectors=vectors)
    lake.sql("INSERT INTO {t} VALUES (1, 'same'), (2, 'old'), (3, 'goes'), (NULL, 'n')")
    stream(client, lake)
    rows = spark.createDataFrame([(1, "same"), (2, "new"), (4, "comes"), (None, "m")], "k INT, v STRING")
    rows.repartition(3).write.format("delta").mode("overwrite").save(str(lake.path))
    assert client.has_data("s")
    assert shown(client) == [
        ("DELETE", False, 3, "goes"),
        ("DELETE", True, 2, "old"),
        ("DELETE", True, None, "n"),
        ("INSERT", False, 4, "comes"),
        ("INSERT", True, 2, "new"),
        ("INSERT", True, None, "m"),
    ]
    assert keys_of(client, lake) == {'{"k":2}', '{"k":3}', '{"k":4}', '{"k":null}'}
    lake.sql("INSERT OVERWRITE {t} VALUES (NULL, 'n'), (3, 'goes'), (2, 'old'), (1, 'same')")
    assert shown(client) == []


def test_updates_deletes_and_merges_show_what_they_did_and_optimize_nothing(client: Lake, lake: Table) -> None:
    lake.create(**UNTRACKED).sql("INSERT INTO {t} SELECT id, 'a' FROM range(10)", "INSERT INTO {t} VALUES (10, 'a')")
    stream(client, lake)
    lake.sql("UPDATE {t} SET v = v WHERE k = 1", "OPTIMIZE {t}", "UPDATE {t} SET v = 'b' WHERE k = 2")
    lake.sql("DELETE FROM {t} WHERE k = 3", "UPDATE {t} SET k = 40 WHERE k = 4")
    lake.sql("MERGE INTO {t} t USING (SELECT 5 k UNION ALL SELECT 50) s ON t.k = s.k "
             "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'm')")  # fmt: skip
    lake.sql("DELETE FROM {t} WHERE k = 6", "INSERT INTO {t} VALUES (6, 'a')")
    assert shown(client) == [
        ("DELETE", False, 3, "a"),
        ("DELETE", False, 4, "a"),
        ("DELETE", False, 5, "a"),
        ("DELETE", True, 2, "a"),
        ("INSERT", False, 40, "a"),
        ("INSERT", False, 50, "m"),
        ("INSERT", True, 2, "b"),
    ]


def test_row_tracking_switched_in_the_window_interrupts_nothing(client: Lake, lake: Table) -> None:
    """Turning it on says every live file again, with ids; that is no insert."""
    lake.create(**UNTRACKED).sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')", "INSERT INTO {t} VALUES (3, 'a')")
    stream(client, lake)
    lake.sql(TRACKING_ON)
    assert shown(client) == []
    lake.sql("UPDATE {t} SET v = 'b' WHERE k = 1", "INSERT INTO {t} VALUES (4, 'a')", "DELETE FROM {t} WHERE k = 3")
    changed = [("DELETE", False, 3, "a"), ("DELETE", True, 1, "a"), ("INSERT", False, 4, "a"), ("INSERT", True, 1, "b")]
    assert shown(client) == changed
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')", "OPTIMIZE {t}")
    assert shown(client) == changed
    assert client.describe_stream("s").invalid_reason == "N/A"


@pytest.fixture
def in_berlin(spark: SparkSession) -> Iterator[None]:
    """A session in another zone than UTC, in which Delta makes columns with a collation."""
    told = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.databricks.delta.schema.typeCheck.enabled": "false"}
    before = {name: spark.conf.get(name, None) for name in told}
    for name, value in told.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.mark.usefixtures("in_berlin")
def test_the_row_id_is_canonical_json_of_the_key(client: Lake, lake: Table) -> None:
    """Times in UTC to the microsecond in any session zone, text by its bytes, NULL parts kept, keys in their order."""
    columns = "a STRING COLLATE UTF8_LCASE, b TIMESTAMP, c DECIMAL(9, 2), d DATE, e BOOLEAN, f TIMESTAMP_NTZ, x INT"
    lake.create(columns, **UNTRACKED)
    stream(client, lake, "B", "a", "c", "d", "e", "f")
    assert client.describe_stream("s").keys == ("b", "a", "c", "d", "e", "f")
    times = "TIMESTAMP'2026-10-25 00:30:00.000001Z', 1.5, DATE'2026-01-02', true, TIMESTAMP_NTZ'2026-03-29 02:30:00'"
    lake.sql(f"INSERT INTO {{t}} (a, b, c, d, e, f, x) VALUES ('é\"', {times}, 1), ('É\"', {times}, 2)")
    lake.sql("INSERT INTO {t} (a) VALUES (NULL)")
    found = {json.loads(text)["a"]: text for text in keys_of(client, lake)}
    assert set(found) == {'é"', 'É"', None}
    assert found[None] == '{"b":null,"a":null,"c":null,"d":null,"e":null,"f":null}'
    assert found['é"'] == (
        '{"b":"2026-10-25T00:30:00.000001Z","a":"é\\"","c":1.50,"d":"2026-01-02","e":true,'
        '"f":"2026-03-29T02:30:00.000000"}'
    )


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (("nothing",), "no column 'nothing'"),
        (("d",), "column 'd' of .* is of type double"),
        (("s",), "column 's' of .* is of type struct"),
        (("b",), "column 'b' of .* is of type binary"),
        (("k", "w"), "column 'w' of .* is of type variant"),
        (("k", "K"), "a column is given twice"),
        (("s.x",), "no column 's.x' at its top level"),
        ("k", "give a list"),
    ],
)
def test_what_cannot_be_a_key_is_refused_by_column_and_type(client: Lake, lake: Table, keys: Any, named: str) -> None:
    lake.create("k INT, d DOUBLE, b BINARY, s STRUCT<x: INT>, w VARIANT", **UNTRACKED)
    with pytest.raises(InvalidArgument, match=named):
        client.create_stream("s", on=str(lake.path), keys=keys)
    assert client.show_streams() == ()


def test_keys_go_with_standard_streams_on_tables_only(client: Lake, lake: Table, tmp_path: Path) -> None:
    lake.create(**UNTRACKED)
    for mode in ("append_only", "every_change"):
        with pytest.raises(InvalidArgument, match="only mode 'standard' compares by key"):
            stream(client, lake, mode=mode)
    lake.spark.sql(f"CREATE OR REPLACE VIEW keyed_view AS SELECT * FROM {lake.name}")
    with pytest.raises(InvalidArgument, match="a view's rows"):
        client.create_stream("s", on="keyed_view", keys=("k",))
    lake.spark.sql("DROP VIEW keyed_view")
    with pytest.raises(RowTrackingDisabled):
        client.create_stream("s", on=str(lake.path))
    assert client.show_streams() == ()


def test_a_key_that_stands_twice_on_a_side_is_named_with_table_version_and_key(client: Lake, lake: Table) -> None:
    lake.create(**UNTRACKED).sql("INSERT INTO {t} VALUES (1, 'a')")
    lake.spark.sql(f"CREATE TABLE delta.`{lake.path}_mart` (k INT, v STRING) USING delta")
    stream(client, lake)
    end = lake.sql("INSERT INTO {t} VALUES (2, 'a'), (2, 'b'), (3, 'c')")
    with pytest.raises(Exception, match=rf'TidemarkKeyNotUnique .*"version":{end},"times":2,"key":".*do not identify'):
        client.stream("s").collect()
    for write in ("append", "merge"):
        with pytest.raises(KeyNotUnique) as refused, client.transaction() as tx:
            tx.sql(
                f"INSERT INTO delta.`{lake.path}_mart` SELECT k, v FROM s"
                if write == "append"
                else f"MERGE INTO delta.`{lake.path}_mart` t USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *"
            )
        assert refused.value.facts == {
            "stream": "s", "table": lake.log.uri, "columns": "k", "version": end, "times": 2, "key": '{"k":2}',
        }  # fmt: skip
    assert lake.spark.read.format("delta").load(f"{lake.path}_mart").count() == 0
    assert client.describe_stream("s").offset_version == end - 1


def test_initial_rows_come_by_key_and_have_to_be_unique_too(client: Lake, lake: Table) -> None:
    lake.create(**UNTRACKED).sql("INSERT INTO {t} VALUES (1, 'a'), (2, NULL)")
    stream(client, lake, show_initial_rows=True)
    lake.sql("UPDATE {t} SET v = 'later'")
    assert shown(client) == [("INSERT", False, 1, "a"), ("INSERT", False, 2, None)]
    assert keys_of(client, lake) == {'{"k":1}', '{"k":2}'}
    lake.sql("INSERT INTO {t} VALUES (1, 'again')")
    stream(client, lake, name="other", show_initial_rows=True)
    with pytest.raises(Exception, match="do not identify a row"):
        client.stream("other").collect()


def test_what_is_done_to_the_schema_is_followed_unless_a_key_is_touched(client: Lake, lake: Table) -> None:
    lake.create(**UNTRACKED).sql(MAPPED, "INSERT INTO {t} VALUES (1, 'a'), (2, 'a')")
    stream(client, lake)
    lake.sql("ALTER TABLE {t} ADD COLUMNS (x INT)", "ALTER TABLE {t} RENAME COLUMN v TO w")
    lake.sql("UPDATE {t} SET x = 7 WHERE k = 1")
    assert shown(client) == [("DELETE", True, 1, "a", None), ("INSERT", True, 1, "a", 7)]
    assert keys_of(client, lake) == {'{"k":1}'}
    before = lake.version
    lake.sql("ALTER TABLE {t} RENAME COLUMN k TO id")
    with pytest.raises(KeyColumnChanged, match="which is missing in version"):
        client.stream("s")
    lake.sql("ALTER TABLE {t} ADD COLUMNS (k INT)", "INSERT INTO {t} VALUES (3, 'n', 3, 3)")
    with pytest.raises(KeyColumnChanged, match="is another column"):
        client.stream("s")
    client.advance_stream("s", Version(before))
    with pytest.raises(KeyColumnChanged):
        client.has_data("s"), client.stream("s")


def test_a_key_that_became_a_double_is_refused(client: Lake, lake: Table, spark: SparkSession) -> None:
    lake.create("k INT, v STRING", delta__enableTypeWidening="true", **UNTRACKED).sql("INSERT INTO {t} VALUES (1, 'a')")
    stream(client, lake)
    lake.sql("ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT", "INSERT INTO {t} VALUES (3000000000, 'b')")
    assert shown(client) == [("INSERT", False, 3_000_000_000, "b")]
    rows = spark.createDataFrame([(1.0, "a")], "k DOUBLE, v STRING")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(lake.path))
    with pytest.raises(KeyColumnChanged, match="is of type double in version"):
        client.stream("s")


def test_a_reload_that_changes_another_columns_type_is_still_an_incompatible_change(
    client: Lake, lake: Table, spark: SparkSession
) -> None:
    lake.create(**UNTRACKED).sql("INSERT INTO {t} VALUES (1, 'a')")
    stream(client, lake)
    rows = spark.createDataFrame([(1, 1)], "k INT, v INT")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(lake.path))
    with pytest.raises(IncompatibleSchemaChange):
        client.stream("s").collect()


def test_partitions_clones_and_wide_reloads_are_read(client: Lake, lake: Table, workspace: Workspace) -> None:
    """More rows than one aggregate would be sized for, a partition column as part of the key, another table's files."""
    lake.create("k BIGINT, v STRING, p STRING", "PARTITIONED BY (p)", **UNTRACKED)
    lake.sql("INSERT INTO {t} SELECT id, 'a', IF(id % 2 = 0, 'x %', NULL) FROM range(200000)")
    clone = Table(lake.spark, lake.path.with_name("clone"), workspace)
    clone.sql(f"CREATE TABLE {{t}} SHALLOW CLONE {lake.name}")
    stream(client, clone, "p", "k")
    reload = "SELECT id, IF(id = 777, 'b', 'a'), IF(id % 2 = 0, 'x %', NULL) FROM range(1, 200001)"
    clone.sql(f"INSERT OVERWRITE {{t}} {reload}")
    assert shown(client) == [
        ("DELETE", False, 0, "a", "x %"),
        ("DELETE", True, 777, "a", None),
        ("INSERT", False, 200000, "a", "x %"),
        ("INSERT", True, 777, "b", None),
    ]
    assert keys_of(client, clone) == {'{"p":"x %","k":0}', '{"p":"x %","k":200000}', '{"p":null,"k":777}'}


@pytest.mark.quick
def test_a_consumption_delivers_once_and_a_clone_keeps_the_keys(client: Lake, lake: Table) -> None:
    lake.create(**UNTRACKED).sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')")
    mart = f"delta.`{lake.path}_mart`"
    lake.spark.sql(f"CREATE TABLE {mart} (k INT, v STRING, action STRING) USING delta")
    stream(client, lake)
    assert client.clone_stream("s", "c").keys == ("k",)
    lake.sql("INSERT OVERWRITE {t} VALUES (1, 'a'), (2, 'b')")
    for _ in range(2):
        with client.transaction() as tx:
            tx.sql(f"INSERT INTO {mart} SELECT k, v, METADATA$ACTION FROM s")
    got = sorted(tuple(row) for row in lake.spark.sql(f"SELECT * FROM {mart}").collect())
    assert got == [(2, "a", "DELETE"), (2, "b", "INSERT")]
    assert (client.has_data("s"), client.has_data("c")) == (False, True)
    assert [one.operation for one in client.stream_backlog("c")] == ["INSERT OVERWRITE"]
    assert shown(client, "c") == [("DELETE", True, 2, "a"), ("INSERT", True, 2, "b")]
