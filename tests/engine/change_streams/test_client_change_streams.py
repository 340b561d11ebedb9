"""Change streams from a notebook, in Python and in the SQL of Spanner: the examples of its pages, pasted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tests.table_templates import put_table
from tidemark.client import Lake, connect
from tidemark.errors import (
    ChangeStreamExists,
    ChangeStreamNotFound,
    ChangeStreamRefused,
    InvalidArgument,
    OutOfRange,
    RowTrackingDisabled,
    SqlCompilationError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SINGERS = "SingerId BIGINT, FirstName STRING, LastName STRING, Age BIGINT"
KEYED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'tidemark.primaryKey' = 'SingerId')"


class Bench:
    """A client over a lake with the table music.Singers (SingerId, FirstName, LastName, Age), keyed and empty."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        self.lake: Lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path / "lake"), who="ann")
        self.table("music.Singers", SINGERS, KEYED)

    def name(self, table: str) -> str:
        return f"delta.`{self.path}/lake/{table.replace('.', '/')}`"

    def table(self, table: str, columns: str, properties: str = "") -> None:
        made = f"CREATE TABLE {{t}} ({columns}) USING delta {properties}"
        put_table(self.spark, self.path / "lake" / table.replace(".", "/"), made)

    def write(self, text: str, table: str = "music.Singers") -> None:
        self.spark.sql(text.format(t=self.name(table)))

    def singers(self, *rows: str) -> None:
        for row in rows:
            self.write(f"INSERT INTO {{t}} VALUES ({row})")

    def capture(self, name: str = "SingersNameStream") -> Any:
        return self.lake.capture(name, allowed_skew=timedelta(0))

    def tokens(self, name: str = "SingersNameStream") -> list[str]:
        """Of the partitions that there are now."""
        now = self.lake.describe_change_stream(name).published_until
        records = self.lake.read_change_stream(name, start_timestamp=now)
        return [
            child.token for row in records.collect() for child in one(row).child_partitions_record[0].child_partitions
        ]

    def records(self, name: str = "SingersNameStream", **arguments: Any) -> list[Any]:
        """Data change records of the only partition since the stream was created."""
        (token,) = self.tokens(name)
        created = self.lake.describe_change_stream(name).created_at
        records = self.lake.read_change_stream(name, start_timestamp=created, partition_token=token, **arguments)
        return data(records)


def one(row: Any) -> Any:
    (record,) = row.ChangeRecord
    return record


def data(frame: DataFrame) -> list[Any]:
    return [change for row in frame.collect() for change in one(row).data_change_record or ()]


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark.newSession(), tmp_path)


def test_a_stream_is_defined_captured_read_and_dropped_in_sql(bench: Bench) -> None:
    lake = bench.lake
    bench.singers("1, 'Marc', 'Richards', 40")
    lake.sql(
        """CREATE CHANGE STREAM SingersNameStream FOR `music`.`Singers`(FirstName, LastName)
           OPTIONS ( retention_period = '7d', value_capture_type = 'NEW_ROW' )"""
    )
    assert bench.capture() is None, "what was there before the stream is not its business"

    bench.singers("2, 'Catalina', 'Smith', 30")
    bench.write("UPDATE {t} SET LastName = 'Ray' WHERE SingerId = 2")
    bench.write("UPDATE {t} SET Age = 31 WHERE SingerId = 2")
    bench.write("DELETE FROM {t} WHERE SingerId = 1")
    captured = bench.capture()
    assert (captured.transactions, captured.records, captured.rows) == (3, 3, 3)
    assert bench.capture() is None

    (token,) = bench.tokens()
    created = lake.describe_change_stream("SINGERSNAMESTREAM").created_at
    query = f"""SELECT ChangeRecord FROM READ_SingersNameStream (
          start_timestamp => "{created.isoformat()}",
          end_timestamp => NULL,
          partition_token => "{token}",
          heartbeat_milliseconds => 10000
        );"""
    found = data(lake.sql(query))
    assert [change.mod_type for change in found] == ["INSERT", "UPDATE", "DELETE"]
    assert [(mod.keys, mod.new_values) for change in found for mod in change.mods] == [
        ('{"SingerId":"2"}', '{"FirstName":"Catalina","LastName":"Smith"}'),
        ('{"SingerId":"2"}', '{"FirstName":"Catalina","LastName":"Ray"}'),
        ('{"SingerId":"1"}', "{}"),
    ]

    log = Path(lake.describe_change_stream("SingersNameStream").log_path.removeprefix("file://"))
    assert log.exists()
    assert rows(lake.sql("DROP CHANGE STREAM SingersNameStream")) == [("SingersNameStream successfully dropped.",)]
    assert not log.exists()
    with pytest.raises(ChangeStreamNotFound, match="Change Stream not found: SingersNameStream"):
        lake.read_change_stream("SingersNameStream", start_timestamp=created)
    with pytest.raises(ChangeStreamNotFound):
        lake.sql("DROP CHANGE STREAM SingersNameStream")
    lake.sql("DROP CHANGE STREAM IF EXISTS SingersNameStream")
    lake.drop_change_stream("SingersNameStream", if_exists=True)


def test_a_stream_is_altered_and_suspended_in_sql(bench: Bench) -> None:
    lake = bench.lake
    lake.sql("CREATE CHANGE STREAM SingersNameStream FOR music.Singers(FirstName, LastName)")
    bench.singers("2, 'Catalina', 'Smith', 30")
    bench.capture()
    found = bench.records()
    assert [change.mod_type for change in found] == ["INSERT"]
    lake.sql("ALTER CHANGE STREAM SingersNameStream SET FOR music.Singers()")
    bench.write("UPDATE {t} SET LastName = 'Day' WHERE SingerId = 2")
    bench.singers("3, 'Alice', 'Trentor', 20")
    bench.capture()
    lake.sql("ALTER CHANGE STREAM SingersNameStream DROP FOR ALL")
    bench.singers("4, 'Lea', 'Martin', 20")
    assert bench.capture() is None
    lake.sql("ALTER CHANGE STREAM SingersNameStream SET FOR music.Singers")
    bench.singers("5, 'David', 'Lomond', 20")
    bench.capture()
    records = bench.records()
    assert records[:1] == found, "what was captured can be read on"
    assert [(change.mod_type, mod["keys"]) for change in records[1:] for mod in change.mods] == [
        ("INSERT", '{"SingerId":"3"}'),
        ("INSERT", '{"SingerId":"5"}'),
    ]


def test_read_may_be_part_of_another_query_and_of_a_write_and_answers_in_json_too(bench: Bench) -> None:
    lake = bench.lake
    lake.create_change_stream("Names", {"music.Singers": ["LastName"]})
    bench.singers("1, 'Marc', 'Richards', 40", "2, 'Catalina', NULL, 30")
    bench.capture("Names")
    (token,) = bench.tokens("Names")
    since = lake.describe_change_stream("Names").created_at.isoformat()
    counted = f"""SELECT count(*) FROM READ_Names('{since}', NULL, '{token}', 10000)
                  WHERE size(ChangeRecord[0].data_change_record) = 1"""
    bench.table("music.counts", "n BIGINT")
    lake.sql(f"INSERT INTO {bench.name('music.counts')} {counted}")
    assert rows(lake.sql("SELECT n FROM music.counts")) == [(2,)]

    records = lake.sql(f"""SELECT * FROM "spanner"."read_json_Names" ( '{since}', NULL, '{token}', 10000, NULL )""")
    first, second = [text for (text,) in records.collect() if "data_change_record" in text]
    assert '"mod_type":"INSERT"' in first
    assert '"LastName":null' in second


def test_all_partitions_are_read_in_one_query_by_the_clients_clock_and_print_in_lines(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = bench.lake
    lake.create_change_stream("Names", {"music.Singers": ["LastName"]})
    lake.create_consumer_group("Names", "g", start="earliest")
    for number in range(3):
        bench.singers(f"{2 * number}, 'a', 'b', 1", f"{2 * number + 1}, 'a', 'b', 1")
        captured = lake.capture("Names", allowed_skew=timedelta(0), split_rows=1, merge_rows=0)
    assert repr(captured).startswith("CaptureResult(batch 2: 2 records of 2 transactions, captured until 20")
    bench.write("UPDATE {t} SET LastName = 'c' WHERE SingerId = 0")
    bench.capture("Names")
    stream = lake.describe_change_stream("Names")
    found = lake.read_change_stream("Names", start_timestamp=stream.created_at, partition_token="ALL")
    records = found.collect()
    assert len(data(found)) == 7
    since = stream.created_at.isoformat()
    assert lake.sql(f"SELECT * FROM READ_Names('{since}', NULL, 'ALL', 10000)").collect() == records

    partitions = lake.change_stream_partitions("Names")
    begun = [child.token for row in records for born in one(row).child_partitions_record for child in born[2]]
    root, *children = partitions.tokens()
    assert (begun[0], sorted(begun[1:])) == (root, sorted(children))  # parents before children, each once
    assert (partitions[0].state, list(partitions[0].child_tokens)) == ("ended", sorted(children))
    assert (list(partitions.tokens("active")), len(children)) == (children, 2)
    assert len(str(partitions).splitlines()) == 1 + len(partitions)
    waiting = lake.change_stream_partitions("names", "G")
    assert [(row.state, row.watermark) for row in waiting] == [("created", stream.created_at), *[("waiting", None)] * 2]

    assert repr(found) == f"ChangeRecords[Names, partition ALL, from {stream.created_at} to what is captured]"
    lines = [repr(row) for row in records]
    assert lines[0].endswith(f"Z child partitions: …{root[-6:]}")
    assert lines[1].endswith('Z INSERT music.Singers {"SingerId":"0"}: {"LastName":"b"}')
    (update,) = [line for line in lines if "UPDATE" in line]
    assert update.endswith('{"SingerId":"0"}: {"LastName":"b"} -> {"LastName":"c"}')
    assert f" of …{root[-6:]}, …" in [line for line in lines if "child partitions" in line][1]
    assert lines[-1].endswith("Z heartbeat")
    found.show(2, truncate=False)
    assert capsys.readouterr().out.splitlines() == [*lines[:2], "only the first 2 records"]
    assert found.first() == records[0] == found.take(1)[0] == next(found.toLocalIterator())
    assert repr(found.first()) == lines[0]

    read = f"SELECT * FROM READ_Names('{since}', NULL, '{root}', 10000)"
    lake._context.store.clock = lambda: stream.created_at + timedelta(days=1, seconds=1)  # type: ignore[method-assign]
    with pytest.raises(OutOfRange, match="start_timestamp is too far in the past"):
        lake.read_change_stream("Names", start_timestamp=since, partition_token=root)
    with pytest.raises(PySparkException, match="start_timestamp is too far in the past"):
        lake.sql(read).collect()


def test_the_catalog_says_what_was_named_and_what_was_set(bench: Bench) -> None:
    lake = bench.lake
    bench.table("music.Albums", "SingerId BIGINT, AlbumId BIGINT, Title STRING", KEYED)
    lake.sql("CREATE CHANGE STREAM Everything FOR ALL")
    lake.sql("CREATE CHANGE STREAM some FOR music.Singers(LastName, FirstName), music.Albums")
    lake.sql("CREATE CHANGE STREAM keys FOR music.Singers() OPTIONS (retention_period = '36h', exclude_insert = true)")
    lake.sql("CREATE CHANGE STREAM nothing")

    assert rows(lake.sql("SELECT CHANGE_STREAM_NAME, `ALL` FROM INFORMATION_SCHEMA.CHANGE_STREAMS")) == [
        ("Everything", True), ("keys", False), ("nothing", False), ("some", False),
    ]  # fmt: skip
    assert rows(lake.sql("SELECT * FROM information_schema.change_stream_tables")) == [
        ("", "", "keys", "", "music", "Singers", False),
        ("", "", "some", "", "music", "Albums", True),
        ("", "", "some", "", "music", "Singers", False),
    ]
    columns = "SELECT c.TABLE_NAME, c.COLUMN_NAME FROM INFORMATION_SCHEMA.CHANGE_STREAM_COLUMNS c"
    assert rows(lake.sql(columns)) == [("Singers", "FirstName"), ("Singers", "LastName")]
    options = "SELECT CHANGE_STREAM_NAME, OPTION_NAME, OPTION_TYPE, OPTION_VALUE FROM"
    assert rows(lake.sql(f"{options} INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS")) == [
        ("keys", "exclude_insert", "BOOL", "true"),
        ("keys", "retention_period", "STRING", "36h"),
    ]
    assert [one.all for one in lake.change_streams()] == [True, False, False, False]
    assert [one.all_columns for one in lake.change_stream_tables()] == [False, False, True]
    assert [one.column_name for one in lake.change_stream_columns()] == ["FirstName", "LastName"]
    assert [one.option_value for one in lake.change_stream_options()] == ["36h", "true"]
    assert bench.spark.sql("SHOW VIEWS").count() == 0


def test_for_all_takes_up_a_table_that_came_later_from_its_first_row_on(bench: Bench) -> None:
    lake = bench.lake
    bench.singers("1, 'Marc', 'Richards', 40")
    lake.sql("CREATE CHANGE STREAM Everything FOR ALL")
    bench.write(
        f"CREATE TABLE {{t}} USING delta {KEYED} AS SELECT 7L AS SingerId, 'Total Junk' AS Title", "music.Albums"
    )
    bench.write("INSERT INTO {t} VALUES (8, 'Go, Go, Go')", "music.Albums")
    bench.singers("2, 'Catalina', 'Smith', 30")
    assert bench.capture("Everything").transactions == 3
    found = bench.records("Everything")
    assert [(change.table_name, [mod["keys"] for mod in change.mods]) for change in found] == [
        ("music.Albums", ['{"SingerId":"7"}']),
        ("music.Albums", ['{"SingerId":"8"}']),
        ("music.Singers", ['{"SingerId":"2"}']),
    ]
    assert bench.capture("Everything") is None


def test_for_all_goes_on_behind_the_replacement_of_a_table(bench: Bench) -> None:
    bench.singers("1, 'Marc', 'Richards', 40")
    bench.lake.sql("CREATE CHANGE STREAM Everything FOR ALL")
    bench.write(f"CREATE OR REPLACE TABLE {{t}} USING delta {KEYED} AS SELECT 7L AS SingerId, 'Total Junk' AS Title")
    bench.write("INSERT INTO {t} VALUES (8, 'Go, Go, Go')")
    bench.capture("Everything")
    assert [[mod["keys"] for mod in change.mods] for change in bench.records("Everything")] == [['{"SingerId":"8"}']]


def test_for_all_leaves_out_what_has_no_key_and_what_its_own_groups_write(bench: Bench) -> None:
    lake = bench.lake
    bench.table("music.Notes", "a INT")
    said = lake.sql("CREATE CHANGE STREAM Everything FOR ALL").collect()[0][0]
    assert said == "Change stream Everything successfully created. It cannot watch, and leaves out: music.Notes."
    bench.table("mart.copy", SINGERS, KEYED)
    lake.create_consumer_group("Everything", "copy")
    for age in (40, 41):
        bench.singers(f"{age}, 'Marc', 'Richards', {age}")
        bench.capture("Everything")
        lake.consume_partitions("Everything", "copy", "merge", target="mart.copy", table="music.Singers")
        assert bench.capture("Everything") is None, "what the group wrote is no change of the stream"
    assert bench.spark.table(bench.name("mart.copy")).count() == 2
    left_out = {one.name: one.why for one in lake.tables_left_out("Everything")}
    assert set(left_out) == {"mart.copy", "music.Notes"}
    assert "consumer group 'copy' of this change stream writes mart.copy" in left_out["mart.copy"]
    lake.create_change_stream("named", ["music.Singers", "mart.copy"])
    lake.create_consumer_group("named", "copy")
    with pytest.raises(InvalidArgument, match="change stream named watches it"):
        lake.consume_partitions("named", "copy", "merge", target="mart.copy", table="music.Singers")


@pytest.mark.parametrize(
    ("statement", "error", "problem"),
    [
        ("CREATE CHANGE STREAM s FOR music.Singers(SingerId)", ChangeStreamRefused, "primary key"),
        ("CREATE CHANGE STREAM s FOR music.Singers, music.Singers()", ChangeStreamRefused, "more than once"),
        ("CREATE CHANGE STREAM s FOR music.Nobody", ChangeStreamRefused, "music.Nobody cannot be watched"),
        ("CREATE CHANGE STREAM s FOR a_view", ChangeStreamRefused, "it is a view"),
        ("CREATE CHANGE STREAM s FOR a_stream", ChangeStreamRefused, "a_stream cannot be watched"),
        ("CREATE CHANGE STREAM s FOR `ALL`", ChangeStreamRefused, "ALL cannot be watched"),
        ("CREATE CHANGE STREAM s OPTIONS (retention_period = '1h')", ChangeStreamRefused, "from 1 to 30 days"),
        ("CREATE CHANGE STREAM s OPTIONS (keys = 'x')", SqlCompilationError, "it has no option 'keys'"),
        ("CREATE CHANGE STREAM there FOR ALL", ChangeStreamExists, "Duplicate name"),
        ("CREATE CHANGE STREAM s FOR music.Singers,", SqlCompilationError, "line 1, column 42"),
        ("ALTER CHANGE STREAM nowhere SET FOR ALL", ChangeStreamNotFound, "Change Stream not found: nowhere"),
    ],
)
def test_what_cannot_be_is_refused_in_sql(
    refusing: Bench, statement: str, error: type[Exception], problem: str
) -> None:
    before = refusing.lake.change_streams()
    with pytest.raises(error) as refused:
        refusing.lake.sql(statement)
    assert problem in str(refused.value)
    assert refusing.lake.change_streams() == before


@pytest.fixture(scope="module")
def refusing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(spark.newSession(), tmp_path_factory.mktemp("refusing"))
    bench.spark.sql(f"CREATE TEMPORARY VIEW a_view AS SELECT * FROM {bench.name('music.Singers')}")
    bench.lake.create_stream("a_stream", on="music.Singers")
    bench.lake.create_change_stream("there")
    return bench


def test_row_tracking_is_turned_on_by_sql_and_on_request(bench: Bench) -> None:
    for table in ("music.a", "music.b"):
        bench.table(table, "id BIGINT, v STRING", "TBLPROPERTIES ('tidemark.primaryKey' = 'id')")
    with pytest.raises(RowTrackingDisabled):
        bench.lake.create_change_stream("s", "music.a")
    bench.lake.create_change_stream("s", "music.a", enable_row_tracking=True)
    bench.lake.sql("ALTER CHANGE STREAM s SET FOR music.a, music.b")
    bench.write("INSERT INTO {t} VALUES (1, 'x')", "music.a")
    bench.write("INSERT INTO {t} VALUES (1, 'x')", "music.b")
    assert bench.capture("s").transactions == 2


def test_a_stream_may_watch_tables_of_sparks_catalog(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE tunes")
    try:
        spark.sql(f"CREATE TABLE tunes.Singers ({SINGERS}) USING delta {KEYED}")
        spark.sql("CREATE TABLE tunes.notes (a INT) USING parquet")
        lake = connect(spark, f"sqlite:///{tmp_path}/control.db")
        assert "tunes.singers" in lake._context.tables.names()
        assert "tunes.notes" not in lake._context.tables.names()
        made = lake.create_change_stream("s", {"TUNES.singers": None})
        spark.sql("INSERT INTO tunes.Singers VALUES (1, 'Marc', 'Richards', 40)")
        captured = lake.capture("s", allowed_skew=timedelta(0))
        assert captured is not None
        assert (captured.rows, made.tables[0].table.name) == (1, "TUNES.singers")
    finally:
        spark.sql("DROP DATABASE tunes CASCADE")


def test_groups_read_on_their_own_until_nothing_is_left(bench: Bench) -> None:
    lake = bench.lake
    lake.create_change_stream("SingersNameStream", "music.Singers", initial_partitions=4)
    bench.table("mart.copy", SINGERS)
    bench.table("mart.log", "table_name STRING, mod_type STRING, partition_token STRING")
    for group in ("copy", "log"):
        lake.create_consumer_group("SingersNameStream", group)
    bench.singers("1, 'Marc', 'Richards', 40", "2, 'Catalina', 'Smith', 30", "3, 'Alice', 'Trentor', 20")
    bench.write("UPDATE {t} SET Age = Age + 1")
    bench.capture()
    merged = lake.consume_partitions("SingersNameStream", "copy", "merge", target="mart.copy")
    assert (merged.left, merged.rows > 0) == (0, True)
    expected = [(1, "Marc", "Richards", 41), (2, "Catalina", "Smith", 31), (3, "Alice", "Trentor", 21)]
    assert rows(bench.spark.table(bench.name("mart.copy"))) == expected
    assert lake.consume_partitions("SingersNameStream", "copy", "merge", target="mart.copy").chunks == 0

    assert lake.describe_consumer_group("SingersNameStream", "log").low_watermark < merged.low_watermark
    lake.pause_consumer_group("SingersNameStream", "log")
    assert lake.consume_partitions("SingersNameStream", "log", "append", target="mart.log").chunks == 0
    lake.resume_consumer_group("SingersNameStream", "log")
    lake.consume_partitions("SingersNameStream", "log", "append", target="mart.log")
    logged = rows(bench.spark.table(bench.name("mart.log")))
    assert {row[0] for row in logged} == {"music.Singers"}
    assert sorted({row[1] for row in logged}) == ["INSERT", "UPDATE"]
    assert [group.name for group in lake.consumer_groups("SingersNameStream")] == ["copy", "log"]
    lake.reset_consumer_group("SingersNameStream", "log", start="earliest")
    again = lake.consume_partitions("SingersNameStream", "log", "append", target="mart.log")
    assert again.rows == len(logged)
    lake.drop_consumer_group("SingersNameStream", "log")
    assert [group.name for group in lake.consumer_groups("SingersNameStream")] == ["copy"]


def test_transactions_are_whole_below_the_low_watermark_of_a_group(bench: Bench) -> None:
    lake = bench.lake
    made = lake.create_change_stream("SingersNameStream", "music.Singers", initial_partitions=4)
    lake.create_consumer_group("SingersNameStream", "g", start=made.created_at.isoformat())
    asked: dict[str, Any] = {"name": "SingersNameStream", "start_timestamp": made.created_at.isoformat()}
    assert lake.read_transactions(**asked).collect() == []
    bench.write("INSERT INTO {t} SELECT id, 'a', 'b', 1 FROM range(8)")
    bench.write(
        "MERGE INTO {t} s USING (SELECT id FROM range(2, 9)) n ON s.SingerId = n.id "
        "WHEN MATCHED AND n.id < 4 THEN DELETE WHEN MATCHED THEN UPDATE SET Age = 2 "
        "WHEN NOT MATCHED THEN INSERT (SingerId, FirstName, LastName, Age) VALUES (8, 'c', 'd', 3)"
    )
    bench.capture()
    inserted, merged = lake.read_transactions(**asked).collect()
    assert inserted["records"][0]["number_of_partitions_in_transaction"] > 1
    assert sum(len(record["mods"]) for record in inserted["records"]) == 8
    kinds = [record["mod_type"] for record in merged["records"]]
    assert kinds == sorted(kinds, key=["DELETE", "UPDATE", "INSERT"].index)

    assert lake.read_transactions(**asked, consumer_group="g").collect() == [], "the group has read nothing yet"
    seen.clear()
    lake.consume_partitions("SingersNameStream", "g", see)
    _, net = lake.read_transactions(**asked, consumer_group="g", net=True).collect()
    assert sorted((one["mod_type"], one["keys"]) for one in net["changes"]) == [
        *(("DELETE", f'{{"SingerId":"{key}"}}') for key in (2, 3)),
        ("INSERT", '{"SingerId":"8"}'),
        *(("UPDATE", f'{{"SingerId":"{key}"}}') for key in (4, 5, 6, 7)),
    ]
    with pytest.raises(InvalidArgument, match="give a consumer group"):
        lake.read_transactions(**asked, consumer_group="g", low_watermark=made.created_at)


def test_a_function_of_a_notebook_gets_records_and_one_that_no_job_can_find_is_refused(bench: Bench) -> None:
    lake = bench.lake
    lake.create_change_stream("SingersNameStream", "music.Singers")
    lake.create_consumer_group("SingersNameStream", "g")
    bench.singers("1, 'Marc', 'Richards', 40")
    bench.capture()
    with pytest.raises(InvalidArgument, match="at the top level of a module"):
        lake.consume_partitions("SingersNameStream", "g", lambda records, chunk: None)
    seen.clear()
    lake.consume_partitions("SingersNameStream", "g", see)
    assert seen == [("SingersNameStream", "g", 1)]


seen: list[tuple[str, str, int]] = []


def see(records: DataFrame, chunk: Any) -> None:
    seen.append((chunk.stream, chunk.group, records.count()))


def test_a_read_is_refused_in_python_before_a_row_is_read(bench: Bench) -> None:
    lake = bench.lake
    lake.create_change_stream("SingersNameStream", "music.Singers")
    bench.singers("1, 'Marc', 'Richards', 40")
    bench.capture()
    with pytest.raises(OutOfRange, match="too far in the past"):
        lake.read_change_stream("SingersNameStream", start_timestamp="2020-01-01T00:00:00Z")
    with pytest.raises(InvalidArgument, match="a time with a zone"):
        lake.read_change_stream("SingersNameStream", start_timestamp="2020-01-01T00:00:00")
    with pytest.raises(InvalidArgument, match="must not be null"):
        lake.read_change_stream("SingersNameStream", start_timestamp=None)
