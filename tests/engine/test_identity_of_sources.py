"""What a stream follows when its source is renamed, dropped, brought back or cloned: the table's id, never its name."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import RebaseRefused, RelocationRefused, SourceRecreated, TableNotFound
from tidemark.model.streams import ACTION, ROW_ID

pytestmark = pytest.mark.spark

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


class Place:
    """A schema that has a managed or an external table of one column, with a stream on it, if a test asks for it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.schema, self.path = f"place_{uuid.uuid4().hex[:8]}", path
        self.spark = spark
        self.lake: Lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path), who="ann")
        self.sql("CREATE DATABASE {s}")

    def make(self, table: str) -> None:
        created, filled = f"CREATE TABLE {{t}} (id INT) USING delta {TRACKED}", "INSERT INTO {t} VALUES (1)"
        if table == "outside":
            put_table(self.spark, self.path / table, created, filled)
            self.sql(f"CREATE TABLE {{s}}.{table} USING delta LOCATION '{self.path}/{table}'")
        else:
            self.sql(*(text.replace("{t}", f"{{s}}.{table}") for text in (created, filled)))
        self.lake.create_stream(table, on=f"{self.schema}.{table}")

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.spark.sql(text.replace("{s}", self.schema))

    def seen(self, stream: str) -> list[int]:
        return sorted(row.id for row in self.lake.stream(stream).collect())


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Iterator[Place]:
    made = Place(spark, tmp_path)
    yield made
    made.lake.close()
    made.sql("DROP DATABASE {s} CASCADE")


@pytest.fixture
def managed(place: Place) -> None:
    place.make("managed")


@pytest.fixture
def outside(place: Place) -> None:
    place.make("outside")


@pytest.mark.usefixtures("outside")
def test_R90_R91_a_renamed_external_table_goes_on_and_a_new_one_of_the_old_name_is_not_read(place: Place) -> None:
    place.sql("ALTER TABLE {s}.outside RENAME TO {s}.renamed", "INSERT INTO {s}.renamed VALUES (2)")
    place.sql(f"CREATE TABLE {{s}}.outside (id INT) USING delta LOCATION '{place.path}/another' {TRACKED}")
    place.sql("INSERT INTO {s}.outside VALUES (99)")
    assert place.seen("outside") == [2]


@pytest.mark.usefixtures("managed")
def test_R90_a_renamed_managed_table_is_followed_there_and_back(place: Place) -> None:
    before = place.lake.describe_stream("managed")
    place.sql("INSERT INTO {s}.managed VALUES (2)", "ALTER TABLE {s}.managed RENAME TO {s}.renamed")
    assert place.lake.describe_stream("managed").stale is False
    assert place.seen("managed") == [2]
    after = place.lake.describe_stream("managed")
    assert after.table_name == f"{place.schema}.renamed"
    assert (after.path, after.origin) == (before.path.replace("/managed", "/renamed"), "catalog")
    assert after.offset_version == before.offset_version
    place.sql("INSERT INTO {s}.renamed VALUES (3)", "ALTER TABLE {s}.renamed RENAME TO {s}.managed")
    assert place.seen("managed") == [2, 3]
    assert place.lake.describe_stream("managed").table_name == before.table_name


@pytest.mark.usefixtures("managed")
def test_R90_no_change_is_lost_or_delivered_twice_when_a_managed_table_is_renamed_between_windows(place: Place) -> None:
    place.sql("CREATE TABLE {s}.mirror (id INT) USING delta", "INSERT INTO {s}.managed VALUES (2)")
    for values, new_name in (("(3)", "first"), ("(4)", "second"), ("(5)", "managed")):
        with place.lake.transaction() as transaction:
            transaction.append("managed", f"{place.schema}.mirror")
        old = place.lake.describe_stream("managed").table_name
        place.sql(f"INSERT INTO {old} VALUES {values}", f"ALTER TABLE {old} RENAME TO {{s}}.{new_name}")
    place.lake.sql(f"INSERT INTO {place.schema}.mirror SELECT id FROM managed")
    assert sorted(row.id for row in place.spark.table(f"{place.schema}.mirror").collect()) == [2, 3, 4, 5]


@pytest.mark.usefixtures("managed")
def test_R90_a_window_that_is_open_during_the_rename_is_delivered_once_at_the_new_path(place: Place) -> None:
    place.sql("CREATE TABLE {s}.mirror (id INT) USING delta", "INSERT INTO {s}.managed VALUES (2)")
    with place.lake.transaction() as transaction:
        transaction.append("managed", f"{place.schema}.mirror")
        place.sql("ALTER TABLE {s}.managed RENAME TO {s}.renamed", "INSERT INTO {s}.renamed VALUES (3)")
    assert [row.id for row in place.spark.table(f"{place.schema}.mirror").collect()] == [2]
    assert place.seen("managed") == [3]
    assert place.lake.describe_stream("managed").table_name == f"{place.schema}.renamed"


def test_R90_a_change_stream_follows_a_renamed_managed_table_and_records_each_commit_once(place: Place) -> None:
    place.make("managed")
    place.lake.create_change_stream("changes", f"{place.schema}.managed", keys=["id"])
    place.sql("INSERT INTO {s}.managed VALUES (2)", "ALTER TABLE {s}.managed RENAME TO {s}.renamed")
    place.sql("INSERT INTO {s}.renamed VALUES (3)")
    captured = place.lake.capture("changes", allowed_skew=timedelta(0))
    assert captured is not None
    assert (captured.transactions, captured.rows) == (2, 2)
    (watched,) = place.lake.describe_change_stream("changes").tables
    assert (watched.table.name, watched.captured) == (f"{place.schema}.renamed", 3)
    assert place.lake.capture("changes", allowed_skew=timedelta(0)) is None


@pytest.mark.usefixtures("managed", "outside")
def test_R90_a_stream_is_relocated_by_hand_to_its_own_table_alone(place: Place) -> None:
    place.sql("INSERT INTO {s}.managed VALUES (2)", "ALTER TABLE {s}.managed RENAME TO {s}.renamed")
    before = place.lake.describe_stream("managed")
    with pytest.raises(RelocationRefused, match="its own is"):
        place.lake.relocate_stream("managed", to=f"{place.schema}.outside")
    with pytest.raises(RebaseRefused, match="relocate"):
        place.lake.rebase_stream("managed", on=f"{place.schema}.renamed", why="it was renamed")
    for _ in range(2):
        after = place.lake.relocate_stream("managed", to=f"{place.schema}.renamed", why="a better name")
    assert (after.table_name, after.offset_version) == (f"{place.schema}.renamed", before.offset_version)
    place.sql("INSERT INTO {s}.renamed VALUES (3)")
    assert place.seen("managed") == [2, 3]


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("name", ["outside", "another_name"])
def test_R90_an_external_table_that_was_moved_is_found_by_the_catalog_under_any_name_of_its_schema(
    place: Place, name: str
) -> None:
    place.sql("INSERT INTO {s}.outside VALUES (2)")
    (place.path / "far").mkdir()
    shutil.move(place.path / "outside", place.path / "far" / "elsewhere")
    place.sql("DROP TABLE {s}.outside")
    place.sql(f"CREATE TABLE {{s}}.{name} USING delta LOCATION '{place.path}/far/elsewhere'")
    assert place.seen("outside") == [2]
    after = place.lake.describe_stream("outside")
    assert (after.table_name, after.path) == (f"{place.schema}.{name}", f"file://{place.path}/far/elsewhere")


@pytest.mark.usefixtures("outside")
def test_R90_a_table_that_nobody_knows_any_more_says_what_to_do(place: Place) -> None:
    (place.path / "far").mkdir()
    shutil.move(place.path / "outside", place.path / "far" / "elsewhere")
    place.sql("DROP TABLE {s}.outside")
    with pytest.raises(TableNotFound, match="relocate STREAM --to"):
        place.seen("outside")
    place.lake.relocate_stream("outside", to=f"{place.path}/far/elsewhere")
    assert place.seen("outside") == []


@pytest.mark.parametrize("table", ["managed", "outside"])
def test_R82_a_stream_goes_on_on_the_table_that_replaced_its_own(place: Place, table: str) -> None:
    place.make(table)
    place.sql(f"INSERT INTO {{s}}.{table} VALUES (2)")
    place.sql(f"CREATE OR REPLACE TABLE {{s}}.{table} (id INT) USING delta {TRACKED}")
    place.sql(f"INSERT INTO {{s}}.{table} VALUES (7)")
    with pytest.raises(SourceRecreated, match="Re-base"):
        place.seen(table)
    place.lake.rebase_stream(table, why="loaded anew")
    assert place.seen(table) == []
    place.sql(f"INSERT INTO {{s}}.{table} VALUES (8)")
    assert place.seen(table) == [8]


@pytest.mark.usefixtures("outside")
def test_R91_a_stream_goes_on_on_a_table_of_the_old_name_with_its_rows_first(place: Place) -> None:
    place.sql("DROP TABLE {s}.outside")
    place.sql(f"CREATE TABLE {{s}}.outside (id INT) USING delta LOCATION '{place.path}/another'")
    place.sql("INSERT INTO {s}.outside VALUES (7), (8)")
    shutil.rmtree(place.path / "outside")
    place.lake.rebase_stream("outside", why="loaded anew", show_initial_rows=True, enable_row_tracking=True)
    assert place.seen("outside") == [7, 8]


def test_R82_by_key_only_what_differs_from_the_replaced_table_shows(place: Place) -> None:
    place.sql("CREATE TABLE {s}.prices (item STRING, price INT) USING delta " + TRACKED)
    place.sql("INSERT INTO {s}.prices VALUES ('tea', 3), ('salt', 1), ('rice', 2)")
    place.lake.create_stream("prices", on=f"{place.schema}.prices")
    place.sql("INSERT INTO {s}.prices VALUES ('milk', 1)")
    place.sql(
        "CREATE OR REPLACE TABLE {s}.prices USING delta AS SELECT * FROM VALUES ('tea', 4), ('salt', 1), ('oil', 9)"
        " AS t(item, price)"
    )
    place.lake.rebase_stream("prices", keys=["item"], why="the nightly load replaces it")
    shown = sorted((row[ACTION], row.item, row.price) for row in place.lake.stream("prices").collect())
    assert shown == [
        ("DELETE", "rice", 2), ("DELETE", "tea", 3), ("INSERT", "oil", 9), ("INSERT", "tea", 4),
    ]  # fmt: skip


@pytest.mark.usefixtures("outside")
def test_R92_a_dropped_table_that_is_registered_again_is_read_on_and_one_made_anew_is_not(place: Place) -> None:
    place.sql("INSERT INTO {s}.outside VALUES (2)", "DROP TABLE {s}.outside")
    place.sql(f"CREATE TABLE {{s}}.outside USING delta LOCATION '{place.path}/outside'")
    assert place.seen("outside") == [2]
    place.sql("DROP TABLE {s}.outside")
    shutil.rmtree(place.path / "outside")
    place.sql(f"CREATE TABLE {{s}}.outside (id INT) USING delta LOCATION '{place.path}/outside' {TRACKED}")
    with pytest.raises(SourceRecreated):
        place.seen("outside")


@pytest.mark.usefixtures("outside")
def test_R32_R93_a_clone_has_a_history_of_its_own_and_keeps_the_numbers_of_its_rows(place: Place) -> None:
    clone = f"{place.path}/clone"
    place.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {{s}}.outside {TRACKED}")
    place.lake.create_stream("cloned", on=clone)
    place.sql("INSERT INTO {s}.outside VALUES (2)")
    assert (place.seen("outside"), place.seen("cloned")) == ([2], [])
    place.sql("DELETE FROM {s}.outside WHERE id = 1", f"DELETE FROM delta.`{clone}` WHERE id = 1")
    ids = {
        stream: [row[ROW_ID] for row in place.lake.stream(stream).collect() if row.id == 1]
        for stream in ("outside", "cloned")
    }
    assert (place.seen("cloned"), len(ids["cloned"])) == ([1], 1)
    (of_source, of_clone) = (ids[stream][0].rpartition(":") for stream in ("outside", "cloned"))
    assert of_source[2] == of_clone[2]  # the row's number
    assert of_source[0] != of_clone[0]  # so rows that either table makes later never share an id


@pytest.mark.usefixtures("outside")
def test_R32_rows_that_the_origin_had_rewritten_get_numbers_of_their_own_in_a_clone_and_keep_them(place: Place) -> None:
    place.sql("INSERT INTO {s}.outside VALUES (2), (3)", "DELETE FROM {s}.outside WHERE id = 1", "OPTIMIZE {s}.outside")
    clone = f"{place.path}/clone"
    place.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {{s}}.outside {TRACKED}")

    def numbers(stream: str, on: str) -> dict[int, str]:
        place.lake.create_stream(stream, on=on, show_initial_rows=True)
        return {row.id: row[ROW_ID].rpartition(":")[2] for row in place.lake.stream(stream).collect()}

    of_source, of_clone = numbers("all", f"{place.schema}.outside"), numbers("cloned", clone)
    assert of_source.keys() == of_clone.keys()
    assert all(of_source[number] != of_clone[number] for number in (2, 3))
    place.sql(f"OPTIMIZE delta.`{clone}`", f"DELETE FROM delta.`{clone}` WHERE id = 2")
    assert numbers("again", clone) == {3: of_clone[3]}
