"""Rows of channels are what Spark would have written, in tables with every feature that Kernel can commit to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.channels.landing import Landing
from tidemark.errors import TableNotSupported
from tidemark.lake.delta_log import DeltaLog

pytestmark = pytest.mark.spark

EVERY_TYPE = """id BIGINT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, i INT, f FLOAT, d DOUBLE, n DECIMAL(38,10),
 m DECIMAL(7,2), c CHAR(4), v VARCHAR(5), x STRING, y BINARY, day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ,
 a ARRAY<STRUCT<k: STRING, v: INT>>, p MAP<STRING, ARRAY<INT>>, o STRUCT<inner: STRUCT<z: DECIMAL(5,1)>, w: STRING>"""
VALUES = [
    """1, true, 1Y, 2S, 3, CAST(1.5 AS FLOAT), 2.5D, 12345678901234567890.0123456789BD, 12345.67BD, 'ab', 'abc', 'text',
 X'00FF', DATE'2024-02-29', TIMESTAMP'2024-02-29 12:00:00.123456', TIMESTAMP_NTZ'1960-01-01 00:00:00.000001',
 array(named_struct('k', 'x', 'v', 1), NULL), map('k', array(1, NULL)),
 named_struct('inner', named_struct('z', 1.5BD), 'w', NULL)""",
    "2" + ", NULL" * 18,
]
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "b": True,
        "t": 1,
        "s": 2,
        "i": 3,
        "f": 1.5,
        "d": 2.5,
        "n": "12345678901234567890.0123456789",
        "m": "12345.67",
        "c": "ab",
        "v": "abc",
        "x": "text",
        "y": "00ff",
        "day": "2024-02-29",
        "at": "2024-02-29T12:00:00.123456Z",
        "wall": "1960-01-01T00:00:00.000001",
        "a": [{"k": "x", "v": 1}, None],
        "p": {"k": [1, None]},
        "o": {"inner": {"z": "1.5"}, "w": None},
    },
    {"id": 2},
]
TABLES: dict[str, dict[str, str]] = {
    "plain": {},
    "mapped by name": {"delta__columnMapping__mode": "name"},
    "mapped by id": {"delta__columnMapping__mode": "id"},
    "in-commit timestamps": {"delta__enableInCommitTimestamps": "true"},
    "change data feed": {"delta__enableChangeDataFeed": "true"},
    "checkpoints of version 2": {"delta__checkpointPolicy": "v2"},
    "type widening": {"delta__enableTypeWidening": "true"},
}


def written_twice(
    landing: Landing, columns: str, rows: list[dict[str, Any]], values: list[str], tail: str = "", **more: str
) -> None:
    """The rows through a channel and by Spark give the same table."""
    for table in ("channel", "spark"):
        landing.create(table, columns, tail, **more)
    with landing.client() as client:
        client.open_channel("c", "channel").insert_rows(rows, "1")
    listed = ", ".join(f"({one})" for one in values)
    landing.sql(f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ * FROM VALUES {listed}", "spark")
    assert landing.rows("channel") == landing.rows("spark")


@pytest.mark.parametrize("feature", TABLES)
def test_every_type_reads_as_if_spark_had_written_it(landing: Landing, feature: str) -> None:
    written_twice(landing, EVERY_TYPE, ROWS, VALUES, **TABLES[feature])
    assert landing.sql("SELECT id FROM {t} WHERE o.inner.z = 1.5 AND c = 'ab'", "channel")[0][0] == 1


def test_statistics_are_those_that_spark_writes(landing: Landing) -> None:
    written_twice(landing, EVERY_TYPE, ROWS, VALUES)
    own, theirs = (stats(landing.log(table)) for table in ("channel", "spark"))
    assert own["nullCount"] == theirs["nullCount"]
    at = {"at": "2024-02-29T12:00:00.124Z", "wall": "1960-01-01T00:00:00.001"}  # Spark cuts to the unsafe side
    assert own["minValues"] == theirs["minValues"]
    assert own["maxValues"] == {**theirs["maxValues"], **at}


def stats(log: DeltaLog) -> dict[str, Any]:
    adds = [add for commit in log.commits(0, log.head()) for add in commit.adds]
    (found,) = [json.loads(add.stats or "{}", parse_float=str) for add in adds]
    return dict(found)


def test_readers_find_each_row_by_its_bounds(landing: Landing) -> None:
    """Bounds that are cut or rounded to the wrong side would hide rows."""
    landing.create("orders", "id BIGINT, n DECIMAL(38,10), x STRING, at TIMESTAMP, d DOUBLE")
    long_text = "é" * 32 + "z"
    rows = [
        {"id": 1, "n": "1234567890123456789012345678.0123456789"},
        {"id": 2, "x": long_text},
        {"id": 3, "at": "2024-01-01T00:00:00.000999Z"},
        {"id": 4, "d": "NaN"},
        {"id": 5, "x": "\U0010ffff" * 33},
        {"id": 6, "d": "-0.0"},
    ]
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        for row in rows:
            channel.insert_rows([row], str(row["id"]))
            channel.flush()
    questions = {
        1: "n = 1234567890123456789012345678.0123456789BD",
        2: f"x = '{long_text}'",
        3: "at >= TIMESTAMP'2024-01-01 00:00:00.000999+00:00'",
        4: "isnan(d)",
        5: f"x = '{chr(0x10FFFF) * 33}'",
        6: "d = 0",
    }
    for wanted, question in questions.items():
        assert [row[0] for row in landing.sql(f"SELECT id FROM {{t}} WHERE {question}")] == [wanted], question


def test_partitions_read_as_if_spark_had_written_them(landing: Landing) -> None:
    values = [
        "1, 'a b/ü=:', DATE'2024-01-02', TIMESTAMP'2024-01-01 01:02:03.5', 1.5BD, true",
        "2, 'a b/ü=:', DATE'2024-01-02', TIMESTAMP'2024-01-01 01:02:03.5', 1.5BD, true",
        "3, NULL, NULL, NULL, NULL, NULL",
        "4, 'x%20\"#', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.000001', -1BD, false",
        "5, '', DATE'2024-01-02', TIMESTAMP'2024-01-01 01:02:03.5', 1.5BD, true",
    ]
    names = ("id", "s", "d", "at", "n", "b")
    texts = [
        ("1", "a b/ü=:", "2024-01-02", "2024-01-01T01:02:03.5", "1.5", "true"),
        ("2", "a b/ü=:", "2024-01-02", "2024-01-01T01:02:03.5", "1.5", "true"),
        ("3", None, None, None, None, None),
        ("4", 'x%20"#', "0001-01-01", "1969-12-31T23:59:59.000001", "-1", "false"),
        ("5", "", "2024-01-02", "2024-01-01T01:02:03.5", "1.5", "true"),
    ]
    rows = [dict(zip(names, one, strict=True)) for one in texts]
    columns = "id BIGINT, s STRING, d DATE, at TIMESTAMP, n DECIMAL(5,1), b BOOLEAN"
    written_twice(landing, columns, rows, values, "PARTITIONED BY (s, d, at, n, b)")
    assert sorted(add_values(landing, "channel"), key=repr) == sorted(add_values(landing, "spark"), key=repr)
    assert [row[0] for row in landing.sql("SELECT id FROM {t} WHERE s = 'a b/ü=:' ORDER BY id", "channel")] == [1, 2]


def add_values(landing: Landing, table: str) -> set[tuple[tuple[str, str | None], ...]]:
    log = landing.log(table)
    return {tuple(sorted(add.partition_values.items())) for one in log.commits(0, log.head()) for add in one.adds}


def test_mapped_and_clustered_tables_with_partitions_take_rows(landing: Landing) -> None:
    columns, rows = "id BIGINT, s STRING", [{"id": 1, "s": "a"}, {"id": 2, "s": None}]
    written_twice(
        landing, columns, rows, ["1, 'a'", "2, NULL"], "PARTITIONED BY (s)", delta__columnMapping__mode="name"
    )
    landing.create("clustered", columns, "CLUSTER BY (id)")
    with landing.client() as client:
        client.open_channel("c", "clustered").insert_rows(rows, "1")
    landing.sql("OPTIMIZE {t} FULL", "clustered")
    assert landing.rows("clustered") == landing.rows("spark")
    assert landing.token("C", "clustered") == "1"


def test_variants_are_those_of_sparks_own_parser(landing: Landing) -> None:
    texts = ['{"a": 1.50, "b": [1, null, "x"], "c": {"d": true}}', "12345678901234567890", "null", '"é"', "1e3"]
    rows = [{"id": at, "v": text, "n": [text]} for at, text in enumerate(texts)]
    values = [f"{at}, parse_json('{text}'), array(parse_json('{text}'))" for at, text in enumerate(texts)]
    landing.create("channel", "id BIGINT, v VARIANT, n ARRAY<VARIANT>")
    landing.create("spark", "id BIGINT, v VARIANT, n ARRAY<VARIANT>")
    with landing.client() as client:
        channel = client.open_channel("c", "channel")
        channel.insert_rows(rows, "1")
        channel.insert_rows([{"id": 9, "v": ""}], "2")
    landing.sql("INSERT INTO {t} VALUES " + ", ".join(f"({one})" for one in [*values, "9, NULL, NULL"]), "spark")
    shown = "id, to_json(v), schema_of_variant(v), to_json(n[0])"
    assert landing.rows("channel", shown) == landing.rows("spark", shown)


REFUSED = {
    "id BIGINT, CONSTRAINT": "CHECK constraints positive",
    "id BIGINT, g BIGINT GENERATED ALWAYS AS (id * 2)": "column g is a generated column",
    "id BIGINT GENERATED BY DEFAULT AS IDENTITY, x INT": "column id is an identity column",
}


@pytest.mark.parametrize("columns", REFUSED)
def test_a_table_that_kernel_cannot_check_is_refused_by_name(landing: Landing, columns: str) -> None:
    landing.create("orders", columns.removesuffix(", CONSTRAINT"))
    if columns.endswith("CONSTRAINT"):
        landing.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)")
    before = landing.log().head()
    with landing.client() as client, pytest.raises(TableNotSupported, match=REFUSED[columns]) as raised:
        client.open_channel("c", "orders")
    assert "code 6" in str(raised.value)
    assert landing.log().head() == before


def test_a_table_with_a_collation_is_refused(landing: Landing) -> None:
    """Spark writes no table feature for collations, and the type of such a column is plain STRING."""
    landing.spark = landing.spark.newSession()
    landing.spark.conf.set("spark.databricks.delta.schema.typeCheck.enabled", "false")
    landing.create(columns="id INT, o STRUCT<v: ARRAY<STRING COLLATE UNICODE_CI>>")
    with landing.client() as client, pytest.raises(TableNotSupported, match=r"column o\.v has a collation"):
        client.open_channel("c", "orders")


def test_a_table_without_domain_metadata_is_refused_with_the_way_out(landing: Landing) -> None:
    landing.spark.sql(f"CREATE TABLE delta.`{landing.root / 'orders'}` (id BIGINT) USING delta")
    with landing.client() as client:
        with pytest.raises(TableNotSupported, match=r"delta\.enableRowTracking"):
            client.open_channel("c", "orders")
        landing.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
        client.open_channel("c", "orders").insert_rows([{"id": 1}], "1")
    assert landing.rows() == [(1,)]
