"""The result cache of a client: hits, and everything that makes a miss."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.tiers import nightly
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import AmbiguousTableName, InvalidArgument
from tidemark.results.model.answers import DEFAULT_RULES
from tidemark.results.store.schema import cached_results
from tidemark.results.worker.cache import sweep

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
UTC_SESSION = {"spark.sql.session.timeZone": "UTC"}
SUMS = "SELECT g, sum(x) AS s FROM shop.orders GROUP BY g ORDER BY g"


@dataclass
class World:
    """A lake with `shop.orders`, a clock that is moved by hand, and clients of one store."""

    spark: SparkSession
    root: Path
    store: str
    now: datetime = START

    def client(self, spark: SparkSession | Callable[[], SparkSession] | None = None, **more: Any) -> Lake:
        session = self.spark if spark is None else spark
        return connect(session, self.store, lake_root=str(self.root), clock=lambda: self.now, **more)

    def idle(self, settings: dict[str, str] | None = None, **more: Any) -> Lake:
        """A client that may not start Spark."""

        def never() -> SparkSession:
            raise AssertionError("Spark was started")

        return self.client(never, session_settings={**UTC_SESSION, **(settings or {})}, **more)

    def make(self, name: str, query: str, *more: str) -> None:
        location = self.root / name.replace(".", "/")
        self.spark.sql(f"CREATE OR REPLACE TABLE delta.`{location}` USING delta {' '.join(more)} AS {query}")

    def run(self, text: str) -> None:
        self.spark.sql(text.replace("shop.orders", f"delta.`{self.root}/shop/orders`"))

    def files(self) -> list[Path]:
        return sorted((self.root / "_tidemark/results").glob("*"))


@pytest.fixture
def world(spark: SparkSession, sqlite_store: str, tmp_path: Path) -> World:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    made = World(session, tmp_path / "lake", sqlite_store)
    made.make("shop.orders", "SELECT id, id % 2 AS g, CAST(id AS DECIMAL(9, 2)) AS x FROM range(10)")
    return made


@pytest.fixture
def lake(world: World) -> Iterator[Lake]:
    opened = world.client()
    yield opened
    opened.close()


@pytest.mark.quick
def test_the_second_run_reads_a_file_and_starts_no_spark(world: World, lake: Lake) -> None:
    first = lake.query(SUMS)
    assert (first.cached, first.origin, first.why) == (False, "spark", "no answer of this text is kept")
    rows = world.spark.sql(SUMS.replace("shop.orders", f"delta.`{world.root}/shop/orders`")).collect()
    assert first.collect() == rows
    for client in (lake, world.idle()):
        second = client.query(SUMS)
        assert (second.cached, second.why, second.key) == (True, "", first.key)
        assert second.collect() == rows
        assert second.to_arrow() == first.to_arrow()
        assert client.why_not(SUMS) == ""
    assert len(world.files()) == 1
    assert without_java(world) == [[row.g, str(row.s)] for row in rows]


@nightly("two views and their refreshes")
def test_an_answer_over_a_view_is_what_the_view_gives_and_is_not_kept(world: World, lake: Lake) -> None:
    rows = "SELECT id, id % 2 AS g, CAST(id AS DECIMAL(9, 2)) AS x FROM range(10)"
    world.make("shop.orders", rows, "TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    query = "SELECT g, sum(x) AS s FROM shop.orders GROUP BY g"
    lake.sql(f"CREATE MATERIALIZED VIEW shop.fresh AS {query}").collect()
    lake.sql(f"CREATE DYNAMIC TABLE shop.kept TARGET_LAG = DOWNSTREAM AS {query}").collect()

    def asked(view: str) -> int:
        answer = lake.query(f"SELECT s FROM shop.{view} WHERE g = 0")
        assert (answer.cached, "is a view of the lake" in answer.why) == (False, True)
        return int(answer.collect()[0].s)

    assert [asked("fresh"), asked("kept")] == [20, 20]
    world.run("INSERT INTO shop.orders VALUES (10, 0, 5)")
    assert [asked("fresh"), asked("kept")] == [25, 20]  # a materialized view is always fresh
    lake.refresh_view("shop.kept")
    assert [asked("fresh"), asked("kept")] == [25, 25]
    assert world.files() == []


HIT = """
import json, sys
import psutil, pyspark
from tidemark.client import connect
lake = connect(
    lambda: sys.exit("Spark was started"), sys.argv[1], lake_root=sys.argv[2],
    session_settings={"spark.sql.session.timeZone": "UTC"},
)
answer = lake.query(sys.argv[3])
assert answer.cached and pyspark.SparkContext._gateway is None
assert not [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]
print(json.dumps([[row.g, str(row.s)] for row in answer.collect()]))
"""


def without_java(world: World) -> list[list[Any]]:
    """The answer as another process reads it before it expires. The clock of that process is the real one."""
    with closing(world.client()) as lake:
        (answer,) = lake.cached_results()
        store = lake._context.store
        store.write(lambda c: c.execute(cached_results.update().values(expires_at=datetime.max.replace(tzinfo=UTC))))
    place = [sys.executable, "-c", HIT, world.store, str(world.root), answer.text]
    done = subprocess.run(place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[Any]] = json.loads(done.stdout)
    return found


TYPES = """
    SELECT true AS b, CAST(1 AS TINYINT) AS i1, CAST(2 AS SMALLINT) i2, 3 AS i4, 4L AS i8, CAST(1.5 AS FLOAT) AS f,
      CAST('NaN' AS DOUBLE) AS d, CAST(12345678901234567890.123456789 AS DECIMAL(38, 9)) AS n, 'ä' AS s, X'00FF' AS y,
      DATE'0001-01-01' AS day, TIMESTAMP'1899-12-31 23:59:59.123456' AS t, TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' u,
      array(1, NULL) AS a, map('k', TIMESTAMP'2026-01-01 00:00:00') AS m,
      named_struct('x', 1, 'y', array(DATE'2026-01-01')) st,
      1 AS dup, 2 AS dup, CAST(NULL AS STRING) AS nothing, a.id
    FROM shop.orders a ORDER BY a.id DESC LIMIT 3
"""


def test_types_nulls_order_and_equal_titles_come_back_as_spark_has_them(world: World, lake: Lake) -> None:
    frame = world.spark.sql(TYPES.replace("shop.orders", f"delta.`{world.root}/shop/orders`"))
    lake.query(TYPES)
    hit = lake.query(TYPES)
    assert hit.cached
    assert repr(hit.collect()) == repr(frame.collect())
    assert hit.to_arrow().schema.types == frame.toArrow().schema.types
    assert list(hit.columns) == frame.columns
    assert hit.dataframe().schema.simpleString() == frame.schema.simpleString()
    assert repr(hit.dataframe().collect()) == repr(frame.collect())
    none = "SELECT id, x FROM shop.orders WHERE id < 0"
    assert lake.query(none).collect() == lake.query(none).collect() == []
    assert lake.query(none).cached
    intervals = lake.query("SELECT INTERVAL 1 DAY AS i FROM shop.orders LIMIT 1")
    assert (intervals.why, len(intervals.collect())) == ("no file keeps the type of i interval day exactly", 1)


def test_whatever_changes_the_answer_makes_a_miss_with_its_reason(world: World, lake: Lake) -> None:
    at_first = "SELECT sum(x) AS s FROM shop.orders VERSION AS OF 0"
    lake.query(at_first)
    world.run("INSERT INTO shop.orders VALUES (10, 1, 5), (11, 0, 5)")
    lake.query(SUMS)
    vendor = world.idle(reuse_rules=replace(DEFAULT_RULES, moved_rows_count=True))
    assert vendor.why_not(SUMS) == ""
    world.run("OPTIMIZE shop.orders")
    assert world.idle().query(SUMS).cached
    assert vendor.why_not(SUMS) == "shop.orders has changed: version 2, and the answer is of 1"
    idle = world.idle()
    for place in ("Asia/Tokyo", "UTC"):
        other = world.idle({"spark.sql.session.timeZone": place, "spark.sql.ansi.enabled": "false"})
        names = "spark.sql.ansi.enabled" + (", spark.sql.session.timeZone" if place != "UTC" else "")
        assert other.why_not(SUMS) == f"the answer is of another session: {names}"
    for number, change in enumerate(("DELETE FROM shop.orders WHERE id = 3", "RESTORE shop.orders TO VERSION AS OF 1")):
        world.run(change)
        assert idle.why_not(SUMS) == f"shop.orders has changed: version {3 + number}, and the answer is of 1"
    assert idle.query(at_first).cached
    with pytest.raises(InvalidArgument, match=r"use lake\.sql"):
        lake.query("DELETE FROM shop.orders")
    log = world.root / "shop/orders/_delta_log"
    log.rename(log.with_name("away"))
    assert "shop/orders" in idle.why_not(at_first)
    shutil.rmtree(world.root / "shop/orders")
    world.make("shop.orders", "SELECT 1 AS id, 1 AS g, 1 AS x")
    assert idle.why_not(SUMS) == f"shop.orders is another table, at file://{world.root}/shop/orders"


def test_an_answer_lives_a_day_after_each_use_and_31_days_at_most(world: World, lake: Lake) -> None:
    lake.query(SUMS)
    world.now = START + timedelta(hours=25)
    assert world.idle().why_not(SUMS) == "the answer has expired at 2026-03-02T12:00:00+00:00"
    assert not lake.query(SUMS).cached
    first, idle = world.now, world.idle()
    while world.now < first + timedelta(days=30, hours=4):
        world.now += timedelta(hours=23)
        assert idle.query(SUMS).cached
    world.now = first + timedelta(days=31)
    assert idle.why_not(SUMS).startswith("the answer has expired")
    assert idle.cached_results() == ()


def test_answers_are_evicted_by_use_and_no_reader_is_disturbed(world: World, lake: Lake) -> None:
    counts = "SELECT g, count(*) AS n FROM shop.orders GROUP BY g ORDER BY g"
    lake.query(SUMS)
    world.now += timedelta(minutes=5)
    lake.query(counts)
    world.now += timedelta(minutes=5)
    reader, idle = lake.query(SUMS), world.idle()
    sizes = {answer.text: answer.written.size for answer in idle.cached_results()}
    small = world.client(reuse_rules=replace(DEFAULT_RULES, most_bytes=sizes[SUMS]))
    small.query("SELECT max(x) + 1 AS m FROM shop.orders")
    assert {answer.text for answer in idle.cached_results()} <= {SUMS, "SELECT max(x) + 1 AS m FROM shop.orders"}
    assert idle.why_not(counts).startswith("the answer was evicted, since others were used later")
    assert idle.forget_results(table="shop.orders") == 1
    world.now += timedelta(hours=2)
    assert len(sweep(lake._cache, most=10)) == 3
    assert world.files() == []
    assert [str(row.s) for row in reader.collect()] == ["20.00", "25.00"]
    large = world.client(reuse_rules=replace(DEFAULT_RULES, most_answer_bytes=10))
    answer = large.query(SUMS)
    assert (answer.collect(), "more than the 10 of one answer" in answer.why) == (reader.collect(), True)
    large.close()
    assert (world.files(), idle.cached_results()) == ([], ())
    off = lake.query(SUMS, use_cached_result=False)
    assert (off.cached, off.why, off.collect()) == (False, "use_cached_result is False", reader.collect())


def test_key_and_answer_belong_together_when_others_write_at_the_same_time(world: World, lake: Lake) -> None:
    store, writes = lake._context.store, []
    draw = store.new_id

    def commit_first() -> str:
        if not writes:
            writes.append(world.run("INSERT INTO shop.orders VALUES (100, 0, 1000)"))
        return draw()

    store.new_id = commit_first  # it is drawn when the versions are known, before Spark reads
    before = lake.query(SUMS)
    assert writes
    assert [str(row.s) for row in before.collect()] == ["20.00", "25.00"]
    assert lake.why_not(SUMS) == "shop.orders has changed: version 1, and the answer is of 0"
    answers: list[Any] = []

    def ask() -> None:
        with closing(world.client(world.spark.newSession())) as client:
            answers.append(client.query(SUMS).collect())

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [world.idle().query(SUMS).collect()] * 2
    assert [str(row.s) for row in answers[0]] == ["1020.00", "25.00"]
    assert len(world.files()) == 2  # the answer of each version


def test_what_only_the_session_knows_is_never_reused(world: World, lake: Lake) -> None:
    spark, table = world.spark, f"delta.`{world.root}/shop/orders`"
    spark.sql(f"CREATE TEMPORARY VIEW shown AS SELECT * FROM {table}")
    spark.sql("DECLARE VARIABLE factor INT DEFAULT 2")
    for name in ("abs", "plus_one"):
        spark.udf.register(name, lambda value: value + 1, "bigint")
    spark.sql("CREATE OR REPLACE VIEW default.tidemark_shown AS SELECT 1 AS one")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    lake.create_stream("news", on="shop.orders")
    reasons = {
        "SELECT count(g) FROM shown": "shown is a temporary view",
        "SELECT id * factor FROM shop.orders": "factor is not a column of the tables, so it may be a variable",
        "SELECT plus_one(id) FROM shop.orders": "plus_one is not a function of Spark 4.2, so it may be a user's",
        "SELECT * FROM default.tidemark_shown": "it is a view",
        "SELECT * FROM news": "news is a stream",
        "SELECT count(*) FROM shop.orders CHANGES (INFORMATION => DEFAULT) AT (VERSION => 0)": "CHANGES, AT, BEFORE",
    }
    for text, reason in reasons.items():
        assert reason in lake.why_not(text), text
    assert lake.query("SELECT plus_one(id) AS a FROM shop.orders ORDER BY 1 LIMIT 1").collect()[0].a == 1
    assert lake.cached_results() == ()
    own = "SELECT abs(id) AS a FROM shop.orders ORDER BY 1 LIMIT 1"
    assert spark.sql(own.replace("shop.orders", table)).collect()[0].a == 0  # a user's does not hide Spark's own
    assert [lake.query(own).collect()[0].a for _ in range(2)] == [0, 0]
    spark.sql("DROP VIEW default.tidemark_shown")


def test_names_of_catalogs_are_kept_and_a_name_that_is_two_tables_is_refused(world: World) -> None:
    spark = world.spark
    spark.sql("CREATE DATABASE IF NOT EXISTS cached_names")
    spark.sql("CREATE OR REPLACE TABLE cached_names.t USING delta AS SELECT 7 AS id, DATE'2026-03-01' AS d")
    text = "SELECT id, d = current_date() AS today, current_date() FROM spark_catalog.cached_names.t"
    lake = world.client(session_settings=UTC_SESSION)
    assert "only Spark's catalog knows" in world.idle().why_not(text)
    first = lake.query(text)
    assert first.columns == ("id", "today", "current_date()")
    assert [tuple(row) for row in first.collect()] == [(7, True, START.date())]
    assert world.idle().query(text).cached
    world.now += timedelta(days=1)
    assert world.idle().why_not(text) == "the answer is of another day"
    world.make("cached_names.t", "SELECT 8 AS id")
    with pytest.raises(AmbiguousTableName):
        lake.query("SELECT id + 1 FROM cached_names.t")
    spark.sql("DROP DATABASE cached_names CASCADE")


def test_a_name_that_became_two_tables_is_refused_also_where_spark_is_not_needed(world: World, lake: Lake) -> None:
    world.make("named_twice.t", "SELECT 8 AS id")
    texts = ("SELECT id + 1 AS a FROM named_twice.t", "SELECT count(*) AS a FROM named_twice.t")
    assert [lake.query(text).origin for text in (*texts, texts[0])] == ["spark", "log", "cache"]
    world.spark.sql("CREATE DATABASE IF NOT EXISTS named_twice")
    world.spark.sql("CREATE OR REPLACE TABLE named_twice.t USING delta AS SELECT 7 AS id")
    for text in texts:
        with pytest.raises(AmbiguousTableName):
            lake.query(text)
    assert [world.idle().query(text).origin for text in texts] == ["cache", "log"]  # only a session knows the catalog
    world.spark.sql("DROP DATABASE named_twice CASCADE")
