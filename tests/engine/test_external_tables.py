"""Streams on files show the rows of every file that came or was overwritten, once, after a refresh (R65, R66, R34)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.tiers import some_rows
from tidemark.client import Version, connect
from tidemark.errors import (
    DataFileChanged,
    ExternalTableExists,
    ExternalTableNotFound,
    FilesHaveNoSchema,
    InvalidArgument,
    JobFailed,
    StreamError,
    TableNotFound,
    TidemarkError,
)
from tidemark.model.external_tables import FILENAME
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID

pytestmark = pytest.mark.spark

SCHEMA = "id INT, item STRING"


class Landing:
    """A directory in which files of JSON lines come and go, the external table `arrivals` on it, stream `s`."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = path / "landing"
        self.path.mkdir()
        self.lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path / "lake"), who="ann")

    def put(self, name: str, *rows: tuple[int, str]) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}")
        part.write_text("".join(f'{{"id": {id}, "item": "{item}"}}\n' for id, item in rows))
        os.replace(part, file)

    def create(self, **how: Any) -> Any:
        given = {"location": str(self.path), "file_format": "json", "schema": SCHEMA, **how}
        return self.lake.external_tables.create("arrivals", **given)

    def refresh(self) -> tuple[int, int, int, int]:
        done = self.lake.external_tables.refresh("arrivals")
        return done.version, done.added, done.overwritten, done.removed

    def stream(self, **how: Any) -> None:
        self.create()
        self.lake.create_stream("s", on="arrivals", mode="insert_only", **how)

    def seen(self, frame: DataFrame | None = None) -> list[tuple[int, str, str]]:
        rows = self.lake.stream("s") if frame is None else frame
        return sorted(tuple(row) for row in rows.select("id", "item", f"`{FILENAME}`").collect())


@pytest.fixture
def landing(spark: SparkSession, tmp_path: Path) -> Landing:
    return Landing(spark, tmp_path)


def test_a_file_is_seen_once_it_was_refreshed_and_not_before(landing: Landing) -> None:
    landing.put("old.json", (1, "pen"))
    landing.stream()
    landing.put("a/new one+100%.json", (2, "cup"), (3, "mug"))
    assert landing.seen() == []
    assert not landing.lake.has_data("s")
    assert landing.refresh() == (1, 1, 0, 0)
    assert landing.lake.has_data("s")
    assert landing.seen() == [(2, "cup", "a/new one+100%.json"), (3, "mug", "a/new one+100%.json")]


def test_the_columns_are_those_of_the_files_and_the_metadata_and_there_is_no_row_id(landing: Landing) -> None:
    landing.stream(show_initial_rows=True)
    landing.put("a.json", (1, "pen"))
    rows = landing.lake.stream("s")
    assert rows.columns == ["id", "item", ACTION, IS_UPDATE, ROW_ID, FILENAME]
    landing.lake.advance_stream("s")
    landing.refresh()
    after = landing.lake.stream("s")
    assert after.columns == rows.columns
    landing.lake.create_stream("t", on="arrivals", mode="insert_only", at=Version(0))
    (row,) = landing.lake.stream("t").collect()
    assert (row[ACTION], row[IS_UPDATE], row[ROW_ID]) == ("INSERT", False, None)


@pytest.mark.parametrize("inside", [True, False], ids=["added inside the window", "there before"])
def test_of_a_file_removed_and_one_added_only_the_added_ones_rows_show(landing: Landing, inside: bool) -> None:
    if not inside:
        landing.put("file1.json", (1, "pen"))
    landing.stream()
    if inside:
        landing.put("file1.json", (1, "pen"))
        landing.refresh()
    (landing.path / "file1.json").unlink()
    landing.put("file2.json", (2, "cup"))
    assert landing.refresh()[1:] == (1, 0, 1)
    assert landing.seen() == [(2, "cup", "file2.json")]


def test_an_overwritten_file_is_new_as_a_whole_and_once(landing: Landing) -> None:
    landing.put("a.json", (1, "pen"), (2, "cup"))
    landing.stream()
    for item in ("mug", "tea"):
        landing.put("a.json", (1, "pen"), (2, item))
        os.utime(landing.path / "a.json", (0, 1_000_000 + ord(item[0])))
        assert landing.refresh()[1:] == (0, 1, 0)
    assert landing.seen() == [(1, "pen", "a.json"), (2, "tea", "a.json")]


def test_a_refresh_that_finds_nothing_new_commits_nothing(landing: Landing) -> None:
    landing.put("a.json", (1, "pen"))
    landing.stream()
    assert landing.refresh() == landing.refresh() == (0, 0, 0, 0)
    assert not landing.lake.has_data("s")


def test_each_file_is_delivered_once(landing: Landing) -> None:
    landing.put("old.json", (1, "pen"))
    landing.stream(show_initial_rows=True)
    root = landing.path.parent
    landing.spark.sql(f"CREATE TABLE delta.`{root}/got` (id INT, item STRING, `{FILENAME}` STRING) USING delta")
    for name in ("b.json", "c.json"):
        landing.put(name, (2, name))
        with landing.lake.transaction() as tx:
            tx.append("s", f"{root}/got")
        landing.refresh()
    with landing.lake.transaction() as tx:
        tx.append("s", f"{root}/got")
    got = landing.spark.read.format("delta").load(f"{root}/got")
    assert landing.seen(got) == [(1, "pen", "old.json"), (2, "b.json", "b.json"), (2, "c.json", "c.json")]
    assert not landing.lake.has_data("s")


@pytest.mark.parametrize("damage", ["gone", "longer"])
def test_a_file_that_is_no_longer_what_the_refresh_saw_is_an_error_until_the_next_refresh(
    landing: Landing, damage: str
) -> None:
    landing.stream()
    landing.put("a.json", (1, "pen"))
    landing.put("b.json", (2, "cup"))
    landing.refresh()
    if damage == "gone":
        (landing.path / "a.json").unlink()
    else:
        landing.put("a.json", (1, "pencil case"))
    with pytest.raises(DataFileChanged, match=r"a\.json") as caught:
        landing.seen()
    assert caught.value.facts["count"] == 1
    landing.refresh()
    kept = [] if damage == "gone" else [(1, "pencil case", "a.json")]
    assert landing.seen() == [*kept, (2, "cup", "b.json")]


def test_a_record_that_cannot_be_read_fails_the_delivery_and_nothing_is_written(landing: Landing) -> None:
    landing.stream()
    (landing.path / "a.json").write_text('{"id": "x", "item": "pen"}\n')
    landing.refresh()
    root = landing.path.parent
    landing.spark.sql(f"CREATE TABLE delta.`{root}/got` ({SCHEMA}) USING delta")
    with pytest.raises((TidemarkError, JobFailed)), landing.lake.transaction() as tx:
        tx.append("s", f"{root}/got")
    assert landing.spark.read.format("delta").load(f"{root}/got").count() == 0
    assert landing.lake.describe_stream("s").offset_version == 0


def _parquet(rows: DataFrame, path: str) -> None:
    rows.coalesce(1).write.parquet(path)


def _csv(rows: DataFrame, path: str) -> None:
    rows.coalesce(1).write.option("header", "true").csv(path)


def _json(rows: DataFrame, path: str) -> None:
    rows.coalesce(1).write.json(path)


def _avro(rows: DataFrame, path: str) -> None:
    rows.coalesce(1).write.format("avro").save(path)


@pytest.mark.parametrize(
    ("file_format", "write", "options"),
    some_rows(
        [("parquet", _parquet, {}), ("json", _json, {}), ("csv", _csv, {"header": "true"}), ("avro", _avro, {})],
        now=[("csv", _csv, {"header": "true"}), ("avro", _avro, {})],
    ),
)
def test_every_format_is_read_and_its_columns_are_found(
    landing: Landing, file_format: str, write: Callable[[DataFrame, str], None], options: dict[str, str]
) -> None:
    write(landing.spark.createDataFrame([(1, "pen")], SCHEMA), f"{landing.path}/first")
    landing.create(file_format=file_format, schema=None, options=options, pattern="*.*")
    landing.lake.create_stream("s", on="arrivals", mode="insert_only")
    write(landing.spark.createDataFrame([(2, "cup")], SCHEMA), f"{landing.path}/second")
    assert landing.refresh()[1:] == (1, 0, 0)
    ((id, item, name),) = landing.seen()
    assert (id, item, name.split("/")[0]) == (2, "cup", "second")


def test_a_directory_is_its_own_name_and_a_pattern_chooses_files(landing: Landing) -> None:
    landing.put("2026/a.json", (1, "pen"))
    landing.put("2025/b.json", (2, "cup"))
    landing.put("_hidden/c.json", (3, "mug"))
    made = landing.lake.external_tables.create(
        str(landing.path), file_format="json", schema=SCHEMA, pattern="2026/*.json"
    )
    assert (made.version, made.added) == (0, 1)
    landing.lake.create_stream("s", on=f"file:{landing.path}/", mode="insert_only", show_initial_rows=True)
    assert landing.seen() == [(1, "pen", "2026/a.json")]


def test_what_was_made_in_other_words_is_refused_and_in_the_same_words_refreshed(landing: Landing) -> None:
    landing.create()
    landing.put("a.json", (1, "pen"))
    assert landing.create().added == 1
    for other in ({"file_format": "csv"}, {"schema": "id INT"}, {"pattern": "*.x"}, {"options": {"multiLine": "true"}}):
        with pytest.raises(ExternalTableExists, match=next(iter(other))):
            landing.create(**other)


def test_what_cannot_be_an_external_table_is_refused_before_anything_is_made(
    landing: Landing, spark: SparkSession
) -> None:
    lake = landing.lake
    with pytest.raises(FilesHaveNoSchema, match="none yet"):
        landing.create(schema=None)
    with pytest.raises(InvalidArgument, match="schema"):
        landing.create(schema="id INTEGR")
    with pytest.raises(InvalidArgument, match="parquet, json, csv, avro"):
        landing.create(file_format="xml")
    with pytest.raises(TableNotFound):
        landing.create(location=str(landing.path / "nowhere"))
    with pytest.raises(FilesHaveNoSchema, match="ISUPDATE"):
        landing.create(schema="`METADATA$ISUPDATE` INT")
    with pytest.raises(ExternalTableNotFound, match="arrivals"):
        lake.external_tables.refresh("arrivals")
    with pytest.raises(ExternalTableNotFound, match="arrivals"):
        lake.create_stream("s", on="arrivals", mode="insert_only")
    with pytest.raises(InvalidArgument, match="lake root"):
        connect(spark, f"sqlite:///{landing.path}/x.db").external_tables.refresh("arrivals")

    landing.create()
    with pytest.raises(ExternalTableNotFound, match="Did you mean 'arrivals'"):
        lake.external_tables.refresh("arivals")


def test_the_mode_belongs_to_the_source(landing: Landing) -> None:
    landing.create()
    root = landing.path.parent
    landing.spark.sql(f"CREATE TABLE delta.`{root}/t` (id INT) USING delta")
    with pytest.raises(InvalidArgument, match="R5"):
        landing.lake.create_stream("s", on=f"{root}/t", mode="insert_only")
    with pytest.raises(InvalidArgument, match="insert_only"):
        landing.lake.create_stream("s", on="arrivals")
    with pytest.raises(InvalidArgument, match="R113"):
        landing.lake.changes("arrivals", at=Version(0))


def test_a_stream_on_files_is_described_as_such_and_does_not_become_stale(landing: Landing) -> None:
    landing.stream()
    about = landing.lake.describe_stream("s")
    assert (about.source_type, about.mode, about.table_name, about.stale) == (
        "External Table",
        "INSERT_ONLY",
        "arrivals",
        False,
    )
    assert about.stale_after is not None
    assert about.stale_after.year > 2100


def test_sql_makes_refreshes_and_reads_it(landing: Landing) -> None:
    landing.create()
    lake = landing.lake
    lake.sql("CREATE STREAM s ON EXTERNAL TABLE arrivals INSERT_ONLY = TRUE")
    landing.put("a.json", (1, "pen"))
    (status,) = lake.sql("ALTER EXTERNAL TABLE arrivals REFRESH").collect()
    assert "1 added" in status[0]
    (row,) = lake.sql(f"SELECT id, {FILENAME} FROM s").collect()
    assert tuple(row) == (1, "a.json")
    with pytest.raises(TidemarkError, match="INSERT_ONLY"):
        lake.sql("CREATE STREAM u ON EXTERNAL TABLE arrivals")
    with pytest.raises((StreamError, TidemarkError), match="EXTERNAL TABLE"):
        lake.sql("CREATE STREAM u ON TABLE arrivals")
