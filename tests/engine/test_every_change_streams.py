"""Streams of every change: what each commit of the window did, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.lakes import Lake as Table
from tests.tiers import some
from tidemark.changes.driver import every_change
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import AmbiguousMergeKey, NotYetSupported
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP, COMMIT_VERSION, IS_UPDATE, ROW_ID

pytestmark = pytest.mark.spark

Change = tuple[Any, ...]


@pytest.fixture
def client(spark: SparkSession, tmp_path: Path) -> Lake:
    return connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path), who="ann")


def history(table: Table) -> int:
    """Each row of interest changes more than once; the last version has 1 c, 2 a, 3 a, 9 z."""
    start = table.version
    table.sql(
        "UPDATE {t} SET v = 'b' WHERE k < 3",
        "UPDATE {t} SET v = 'c' WHERE k = 1",
        "OPTIMIZE {t}",
        "MERGE INTO {t} t USING (SELECT 2 k UNION ALL SELECT 9) s ON t.k = s.k "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k, v) VALUES (9, 'n')",
        "UPDATE {t} SET v = v",
        "DELETE FROM {t} WHERE k = 9",
        "INSERT INTO {t} VALUES (2, 'a')",
        "INSERT INTO {t} VALUES (9, 'y')",
        "UPDATE {t} SET v = 'z' WHERE k = 9",
    )
    return start


def by_versions(table: Table, start: int) -> list[Change]:
    """Every version against the one before, by row id: (version, action, is update, k, v), sorted."""
    found: list[Change] = []
    old = snapshot(table, start)
    for version in range(start + 1, table.version + 1):
        new = snapshot(table, version)
        found += [(version, "DELETE", i in new, *row) for i, row in old.items() if new.get(i) != row]
        found += [(version, "INSERT", i in old, *row) for i, row in new.items() if old.get(i) != row]
        old = new
    return sorted(found, key=repr)


def snapshot(table: Table, version: int) -> dict[int, Change]:
    frame = table.spark.read.format("delta").option("versionAsOf", version).load(str(table.path))
    return {row[0]: tuple(row[1:]) for row in frame.select("_metadata.row_id", "k", "v").collect()}


def shown(client: Lake) -> list[Change]:
    rows = client.stream("s").select(f"`{COMMIT_VERSION}`", f"`{ACTION}`", f"`{IS_UPDATE}`", "k", "v")
    return sorted((tuple(row) for row in rows.collect()), key=repr)


@pytest.mark.parametrize("feed", some(["true", "false"], now=["false"]))
def test_the_window_shows_what_each_commit_did(
    client: Lake, lake: Table, feed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create(delta__enableChangeDataFeed=feed).sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    assert client.create_stream("s", on=str(lake.path), mode="every_change").mode == "EVERY_CHANGE"
    columns = [*"kv", ACTION, IS_UPDATE, ROW_ID, COMMIT_VERSION, COMMIT_TIMESTAMP]
    assert client.stream("s").columns == columns
    assert shown(client) == []
    start = history(lake)
    wanted = by_versions(lake, start)
    assert len({change[0] for change in wanted}) == 7
    assert shown(client) == wanted
    times = {
        row[0]: row[1] for row in client.stream("s").select(f"`{COMMIT_VERSION}`", f"`{COMMIT_TIMESTAMP}`").collect()
    }
    assert {v: t.timestamp() for v, t in times.items()} == {v: lake.log.timestamp(v).timestamp() for v in times}
    counted = client.sql("SELECT METADATA$COMMIT_VERSION AS v, count(*) FROM s GROUP BY METADATA$COMMIT_VERSION")
    assert sum(row[1] for row in counted.collect()) == len(wanted)
    monkeypatch.setattr(every_change, "COMMITS_PER_PAGE", 2)
    assert shown(client) == wanted


def test_initial_rows_are_of_the_version_at_the_start(client: Lake, lake: Table) -> None:
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} VALUES (2, 'a')")
    client.create_stream("s", on=str(lake.path), mode="every_change", show_initial_rows=True)
    lake.sql("DELETE FROM {t}")
    assert shown(client) == [(start, "INSERT", False, 1, "a"), (start, "INSERT", False, 2, "a")]
    assert client.stream("s").schema[COMMIT_TIMESTAMP].dataType.simpleString() == "timestamp"


def append(client: Lake, mart: str) -> None:
    with client.transaction() as tx:
        tx.append("s", mart)


def merge(client: Lake, mart: str) -> None:
    with client.transaction() as tx:
        tx.merge("s", mart, ["k"])


def test_an_append_takes_all_with_the_metadata_the_target_has_and_delivers_once(client: Lake, lake: Table) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    client.create_stream("s", on=str(lake.path), mode="every_change")
    start = history(lake)
    mart = f"{lake.path}_mart"
    named = f"k INT, v STRING, `{ACTION}` STRING, `{IS_UPDATE}` BOOLEAN, `{COMMIT_VERSION}` BIGINT"
    lake.spark.sql(f"CREATE TABLE delta.`{mart}` ({named}, `{COMMIT_TIMESTAMP}` TIMESTAMP) USING delta")
    wanted = by_versions(lake, start)
    for _ in range(2):
        append(client, mart)
    rows = lake.spark.read.format("delta").load(mart)
    got = rows.select(f"`{COMMIT_VERSION}`", f"`{ACTION}`", f"`{IS_UPDATE}`", "k", "v").collect()
    assert sorted((tuple(row) for row in got), key=repr) == wanted
    assert rows.where(f"`{COMMIT_TIMESTAMP}` IS NULL").count() == 0
    assert client.describe_stream("s").offset_version == lake.version


def test_a_merge_leaves_the_last_state_of_each_key(client: Lake, lake: Table) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    client.create_stream("s", on=str(lake.path), mode="every_change", show_initial_rows=True)
    mart = f"{lake.path}_mart"
    lake.spark.sql(f"CREATE TABLE delta.`{mart}` (k INT, v STRING, `{COMMIT_VERSION}` BIGINT) USING delta")
    merge(client, mart)
    start = history(lake)
    lake.sql("INSERT INTO {t} VALUES (7, 'p')", "UPDATE {t} SET k = 8 WHERE k = 7", "UPDATE {t} SET k = 7 WHERE k = 3")
    lake.sql(
        "INSERT INTO {t} VALUES (1, 'new')", "DELETE FROM {t} WHERE k = 1 AND v = 'c'"
    )  # another row takes the key
    merge(client, mart)
    rows = lake.spark.read.format("delta").load(mart)
    now = sorted(tuple(row) for row in lake.spark.read.format("delta").load(str(lake.path)).collect())
    assert now == [(1, "new"), (2, "a"), (7, "a"), (8, "p"), (9, "z")]
    assert sorted(tuple(row)[:2] for row in rows.collect()) == now
    versions = {row[0]: row[2] for row in rows.collect()}
    assert versions == {9: start + 9, 2: start + 7, 8: start + 11, 7: start + 12, 1: start + 13}


def test_two_rows_of_one_key_at_the_end_are_refused_before_anything_is_written(client: Lake, lake: Table) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'a')")
    client.create_stream("s", on=str(lake.path), mode="every_change")
    mart = f"{lake.path}_mart"
    lake.spark.sql(f"CREATE TABLE delta.`{mart}` (k INT, v STRING) USING delta")
    lake.sql("INSERT INTO {t} VALUES (4, 'a')", "INSERT INTO {t} VALUES (4, 'b')")
    with pytest.raises(AmbiguousMergeKey):
        merge(client, mart)
    assert lake.spark.read.format("delta").load(mart).count() == 0


def test_a_view_has_no_stream_of_every_change(client: Lake, lake: Table) -> None:
    lake.create()
    lake.spark.sql(f"CREATE OR REPLACE VIEW every_view AS SELECT * FROM {lake.name}")
    with pytest.raises(NotYetSupported, match="Every change of a view"):
        client.create_stream("s", on="every_view", mode="every_change")
    lake.spark.sql("DROP VIEW every_view")
