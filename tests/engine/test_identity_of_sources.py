"""What a stream follows when its source is renamed, dropped, brought back or cloned: the table's id, never its name."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import SourceRecreated, TableNotFound
from tidemark.model.streams import ROW_ID

pytestmark = pytest.mark.spark

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


class Place:
    """A schema with a managed and an external table of one column, a stream on each."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.schema, self.path = f"place_{uuid.uuid4().hex[:8]}", path
        self.spark = spark
        self.lake: Lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path), who="ann")
        self.sql("CREATE DATABASE {s}")
        self.make("managed", "")
        self.make("outside", f"LOCATION '{path}/outside'")

    def make(self, table: str, location: str) -> None:
        self.sql(f"CREATE TABLE {{s}}.{table} (id INT) USING delta {location} {TRACKED}")
        self.sql(f"INSERT INTO {{s}}.{table} VALUES (1)")
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


def test_R90_R91_a_renamed_external_table_goes_on_and_a_new_one_of_the_old_name_is_not_read(place: Place) -> None:
    place.sql("ALTER TABLE {s}.outside RENAME TO {s}.renamed", "INSERT INTO {s}.renamed VALUES (2)")
    place.sql(f"CREATE TABLE {{s}}.outside (id INT) USING delta LOCATION '{place.path}/another' {TRACKED}")
    place.sql("INSERT INTO {s}.outside VALUES (99)")
    assert place.seen("outside") == [2]


def test_R90_a_managed_table_is_not_found_where_a_rename_has_moved_it_and_goes_on_when_renamed_back(
    place: Place,
) -> None:
    place.sql("ALTER TABLE {s}.managed RENAME TO {s}.renamed", "INSERT INTO {s}.renamed VALUES (2)")
    with pytest.raises(TableNotFound):
        place.seen("managed")
    place.sql("ALTER TABLE {s}.renamed RENAME TO {s}.managed")
    assert place.seen("managed") == [2]


def test_R92_a_dropped_table_that_is_registered_again_is_read_on_and_one_made_anew_is_not(place: Place) -> None:
    place.sql("INSERT INTO {s}.outside VALUES (2)", "DROP TABLE {s}.outside")
    place.sql(f"CREATE TABLE {{s}}.outside USING delta LOCATION '{place.path}/outside'")
    assert place.seen("outside") == [2]
    place.sql("DROP TABLE {s}.outside")
    shutil.rmtree(place.path / "outside")
    place.sql(f"CREATE TABLE {{s}}.outside (id INT) USING delta LOCATION '{place.path}/outside' {TRACKED}")
    with pytest.raises(SourceRecreated):
        place.seen("outside")


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
