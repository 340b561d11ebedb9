"""Searches: the rows of a scan, from the files that can hold them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.engine.half_made import NOT_RENAMED, half_made
from tests.engine.search.world import SearchWorld, texts
from tidemark.client.lake import Lake
from tidemark.errors import JobFailed, NotYetSupported, SearchNotFound, SearchRefused, TableNotFound
from tidemark.model.statements import TransactionKey
from tidemark.search.driver import job_keep
from tidemark.search.driver.entries import hash_column
from tidemark.search.model.paths import ValueKind
from tidemark.search.planning.hashes import hash_of
from tidemark.search.worker.upkeep import keep_search

pytestmark = pytest.mark.spark

ALL = "EQUALITY(id, n, g, d, m, t, tags, s.f), SUBSTRING(words), RANGE(n), ORDER(n)"


@pytest.fixture
def kept(world: SearchWorld, client: Lake) -> SearchWorld:
    world.fill(12)
    client.sql(f"ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON {ALL}")
    client.keep_search_path("shop.orders")
    return world


SELECTIVE = [
    ("id = 'key-000517'", 1),
    ("id IN ('key-000017', 'key-001117', 'none', NULL)", 2),
    ("n = 42", 1),
    ("42 = n", 1),
    ("m = 25.25", 1),
    ("m = -1", 0),
    ("t = TIMESTAMP'2026-02-02 02:40:07.000007'", 1),
    ("array_contains(tags, 'odd333')", 1),
    ("arrays_overlap(tags, array('odd5', 'odd1105', 'x'))", 2),
    ("s.f = 'f777'", 1),
    ("id = 'key-000001' OR s.f = 'f1100'", 2),
    ("id = 'key-000001' AND s.f = 'f1100'", 0),
    ("id = 'key-000001' AND length(words) > 3", 1),
    ("words LIKE '%c4ca4238a0b9%'", 1),
    ("contains(words, 'c4ca4238')", 1),
    ("words LIKE '%no such text%'", 0),
    ("n > 1150", 1),
    ("n BETWEEN 90 AND 110", 2),
    ("n < 0", 0),
    ("id LIKE 'key-0005%'", 1),
]


@pytest.mark.quick
def test_a_search_has_the_rows_of_a_scan_from_few_files_without_a_job_of_spark(kept: SearchWorld, client: Lake) -> None:
    for where, files in SELECTIVE:
        choice = client.explain_search("shop.orders", where)
        assert (len(choice.files), choice.total) == (files, 12), (where, choice.steps)
        found = client.search("shop.orders", where)
        assert found.origin == ("spark" if "length" in where else "search"), where
        assert texts(found) == kept.scan(where), where


def test_dataframes_and_queries_read_the_files_that_can_hold_rows(kept: SearchWorld, client: Lake) -> None:
    where = "id = 'key-000517'"
    table = kept.spark.read.format("delta").load(str(kept.path))
    frames = [
        client.table("shop.orders").where(where),
        client.table("shop.orders").filter(F.col("id") == "key-000517"),
        client.sql(f"SELECT * FROM shop.orders AS o WHERE o.{where} AND length(words) > 3"),
        client.prune(table.where(where)),
    ]
    for frame in frames:
        assert len(frame.inputFiles()) == 1
        assert texts(frame) == kept.scan(where)
    t = client.table("shop.orders")
    found = t.where(t.words.contains("c4ca4238"))  # Delta's own statistics leave out no file for it
    assert (len(found.inputFiles()), texts(found)) == (1, kept.scan("contains(words, 'c4ca4238')"))
    assert len(t.where(F.col("words").contains("c4ca4238")).inputFiles()) == 1
    assert len(client.prune(table.where(table.words.contains("c4ca4238"))).select(table.n).inputFiles()) == 1
    other = kept.spark.createDataFrame([(1, "a")], "k INT, said STRING")
    assert [row.said for row in found.join(other, t.n == other.k).orderBy(t.n).collect()] == ["a"]
    few = client.prune(table.where(F.col("s.f").isin("f5", "f500")).select("n", "s"))
    assert (few.columns, len(few.inputFiles())) == (["n", "s"], 2)
    hidden = client.sql(f"SELECT _metadata.file_name, o._metadata.file_size FROM shop.orders AS o WHERE {where}")
    assert [row.file_name.endswith(".parquet") for row in hidden.collect()] == [True]
    first = client.sql("SELECT id, n FROM shop.orders ORDER BY n DESC LIMIT 3")
    assert (len(first.inputFiles()), [row.n for row in first.collect()]) == (1, [1199, 1198, 1197])
    joined = "SELECT count(*) AS c FROM shop.orders a JOIN shop.orders b ON a.id = b.id WHERE a.id = 'key-000517'"
    assert client.sql(joined).collect()[0].c == 1
    assert client.prune(table.where("length(id) = 10")) is not None
    assert client.prune(table.where(where).groupBy("g").count()).collect()[0][1] == 1


def test_new_files_are_read_until_the_next_upkeep_and_rewritten_ones_are_built_once(
    kept: SearchWorld, client: Lake
) -> None:
    kept.fill(2, start=1200)
    assert len(client.explain_search("shop.orders", "array_contains(tags, 'odd517')").files) == 3
    assert texts(client.search("shop.orders", "id = 'key-001333'")) == kept.scan("id = 'key-001333'")
    kept.sql("DELETE FROM orders WHERE n IN (517, 518)")
    assert client.search("shop.orders", "id = 'key-000517'").collect() == []
    assert client.keep_search_path("shop.orders").commits[0].mark.files == 2
    assert not client.keep_search_path("shop.orders").job
    assert len(client.explain_search("shop.orders", "id = 'key-001333'").files) == 1
    kept.sql("RESTORE TABLE orders TO VERSION AS OF 0")
    assert texts(client.search("shop.orders", "id = 'key-000517'")) == kept.scan("id = 'key-000517'")
    kept.sql("OPTIMIZE orders")
    assert texts(client.search("shop.orders", "n = 518")) == kept.scan("n = 518")
    (rebuilt,) = client.keep_search_path("shop.orders").commits
    assert (rebuilt.mark.rebuilt, rebuilt.mark.files) == (True, 1)
    assert texts(client.search("shop.orders", "n = 518")) == kept.scan("n = 518")
    assert [one.mark.files for one in client.search_history("shop.orders")] == [1, 2, 12]


def test_statements_define_describe_and_drop_search_paths(world: SearchWorld, client: Lake) -> None:
    world.fill(2)
    with pytest.raises(SearchNotFound):
        client.sql("DESCRIBE SEARCH OPTIMIZATION ON shop.orders")
    with pytest.raises(NotYetSupported, match="GEO"):
        client.sql("ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON GEO(s)")
    with pytest.raises(SearchRefused, match="parts are searched in texts"):
        client.sql("ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON SUBSTRING(n)")
    for act in ("ADD", "DROP"):
        with pytest.raises(TableNotFound):
            client.sql(f"ALTER TABLE shop.none {act} SEARCH OPTIMIZATION")
        client.sql(f"ALTER TABLE IF EXISTS shop.none {act} SEARCH OPTIMIZATION")
    client.sql("ALTER TABLE IF EXISTS shop.orders ADD SEARCH OPTIMIZATION ON EQUALITY(id, n)")
    client.sql("ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON EQUALITY(id), RANGE(n)")
    client.keep_search_path("shop.orders")
    client.sql("ALTER TABLE shop.orders DROP SEARCH OPTIMIZATION ON 2")
    client.sql("ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON EQUALITY(g)")
    described = client.sql("DESCRIBE SEARCH OPTIMIZATION ON shop.orders").collect()
    assert [(row.expression_id, row.method, row.target, row.active) for row in described] == [
        (1, "EQUALITY", "id", True),
        (3, "RANGE", "n", True),
        (4, "EQUALITY", "g", False),
    ]
    kept = client.keep_search_path("shop.orders")
    rows = world.spark.read.format("delta").load(kept.search.location).groupBy("path").count().collect()
    assert {row.path: row["count"] for row in rows if row.path} == {1: 200, 4: 14}
    call = "SYSTEM$ESTIMATE_SEARCH_OPTIMIZATION_COSTS('shop.orders', 'EQUALITY(id, g)')"
    (answer,) = client.sql(f"SELECT {call}").collect()
    positions = {one["name"]: one for one in json.loads(answer[0])["costPositions"]}
    assert positions["Benefit"]["paths"][0]["filesPerLookup"] == 1.0
    assert positions["StorageCosts"]["costs"]["value"] == kept.search.size
    client.sql("ALTER TABLE shop.orders DROP SEARCH OPTIMIZATION")
    assert client.show_search_optimization() == ()
    client.sql("ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON EQUALITY(g)")
    assert texts(client.search("shop.orders", "g = 3")) == world.scan("g = 3")
    assert client.keep_search_path("shop.orders").commits[0].mark.rebuilt
    assert texts(client.search("shop.orders", "g = 3")) == world.scan("g = 3")


def test_hashes_are_those_of_spark(spark: SparkSession) -> None:
    values: dict[str, tuple[ValueKind, Any]] = {
        "''": (ValueKind.TEXT, ""),
        "'a text of more than thirty-two letters é'": (ValueKind.TEXT, "a text of more than thirty-two letters é"),
        "CAST('bin' AS BINARY)": (ValueKind.BINARY, b"bin"),
        "CAST(-7 AS TINYINT)": (ValueKind.WHOLE, -7),
        "9223372036854775807L": (ValueKind.WHOLE, 2**63 - 1),
        "DATE'1582-10-04'": (ValueKind.DATE, date(1582, 10, 4)),
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'": (
            ValueKind.TIMESTAMP,
            datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        ),
        "CAST(-0.5 AS DECIMAL(5, 1))": (ValueKind.DECIMAL, Decimal("-0.5")),
        "CAST(128 AS DECIMAL(20, 0))": (ValueKind.DECIMAL, Decimal(128)),
        "CAST(-12345678901234567890.123456789012345678 AS DECIMAL(38, 18))": (
            ValueKind.DECIMAL,
            Decimal("-12345678901234567890.123456789012345678"),
        ),
    }
    shown = [hash_column(F.expr(text), kind).alias(str(at)) for at, (text, (kind, _)) in enumerate(values.items())]
    (row,) = spark.range(1).select(*shown).collect()
    assert list(row) == [hash_of(kind, value) for kind, value in values.values()]


def test_a_search_table_whose_creation_died_is_created_again(world: SearchWorld, client: Lake) -> None:
    world.fill(2)
    kept = client.add_search_optimization("shop.orders", "EQUALITY(id)")
    half_made(Path(kept.location.removeprefix("file://")), NOT_RENAMED)
    assert client.keep_search_path("shop.orders").commits[0].mark.files == 2
    assert len(client.explain_search("shop.orders", "id = 'key-000133'").files) == 1


def test_the_sorting_of_many_files_is_in_the_history_with_its_bytes(world: SearchWorld, client: Lake) -> None:
    world.fill(2)
    client.add_search_optimization("shop.orders", "EQUALITY(tags)")
    location = client.keep_search_path("shop.orders").search.location
    rows = world.spark.read.format("delta").load(location).repartition(30)
    rows.write.format("delta").mode("overwrite").partitionBy("path").save(location)
    world.fill(1, start=200)
    covered, sorted_ = client.keep_search_path("shop.orders").commits
    assert (covered.mark.files, sorted_.mark.files, sorted_.rows) == (1, 0, 450)
    assert sorted_.size > covered.size
    assert client.search_history("shop.orders")[0] == sorted_
    where = "array_contains(tags, 'odd117')"
    assert len(client.explain_search("shop.orders", where).files) == 1
    assert texts(client.search("shop.orders", where)) == world.scan(where)


class Died(Exception):
    """The end of an upkeep behind its first commit."""


def test_an_upkeep_whose_commit_is_passed_over_covers_what_is_left(
    world: SearchWorld, client: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another upkeep under the same number commits one file while the first is at work, and dies."""
    world.fill(2)
    search = client.add_search_optimization("shop.orders", "EQUALITY(tags)")
    points: list[str] = []

    def reached(point: str) -> None:
        points.append(point)
        if len(points) == 1:
            key = TransactionKey("dag", "run", "other")
            with pytest.raises(JobFailed, match="Died"):
                keep_search(client._context.runtime, search.table.path, "shop.orders", key=key, most_bytes=1)
        elif points == ["upkeep.begun", "upkeep.begun", "upkeep.committed"]:
            raise Died

    monkeypatch.setattr(job_keep, "failpoint", reached)
    kept = client.keep_search_path("shop.orders")
    assert ([one.mark.files for one in kept.commits], kept.search.files) == ([1, 1], 2)
