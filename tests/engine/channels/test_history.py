"""The history of channels: a row a minute for each channel that commits, and one at the end of a client."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.channels.landing import Landing
from tests.table_templates import put_table
from tidemark.channels.worker.token_histories import tokens_of
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import TableNotFound
from tidemark.model.own_tables import HISTORY_SUFFIX
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.worker.sources import open_table

pytestmark = pytest.mark.spark

HISTORY = f"orders{HISTORY_SUFFIX}"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_busy_channel_has_a_row_a_minute_and_one_at_the_end(landing: Landing) -> None:
    landing.create()
    clock = Clock()
    with landing.client(history=True, clock=clock) as client:
        busy, other = (client.open_channel(name, "orders", on_error="continue") for name in ("busy", "other"))
        for number in range(1, 4):
            busy.insert_rows([{"id": number}, {"id": "x"}], str(number))
            busy.flush()
            clock.now += timedelta(seconds=40)
        other.insert_rows([], "o")
    rows = landing.rows(HISTORY, "channel_name, end_offset_token, rows_inserted, rows_parsed, rows_error_count")
    assert {("BUSY", "3", 3, 6, 3), ("OTHER", "o", 0, 0, 0)} <= set(rows)
    minutes = {("BUSY", "2", 2, 4, 2), ("OTHER", None, 0, 0, 0)}  # it ended before or with the third commit
    assert set(rows) - {("BUSY", "3", 3, 6, 3), ("OTHER", "o", 0, 0, 0)} <= minutes
    (day,) = {row for (row,) in landing.rows(HISTORY, "created_day")}
    assert day == clock.now.date()
    table = TableRef("orders", (landing.root / "orders").as_uri(), "", Addressing.PATH)
    seen = [
        (row.channel, row.token, row.rows_inserted, row.rows_parsed, row.rows_error_count, row.at.tzinfo)
        for row in tokens_of(table, open_table)
    ]  # as the page shows them, without Spark
    assert set(seen) == {(*row, UTC) for row in rows}


def test_a_history_that_cannot_be_written_stops_no_rows(landing: Landing) -> None:
    landing.create()
    (landing.root / HISTORY).write_text("a file in its place")
    with landing.client(history=True) as client:
        client.open_channel("c", "orders").insert_rows([{"id": 1}], "1")
    assert (landing.rows(columns="id"), landing.token("C")) == ([(1,)], "1")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = "CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    put_table(spark, tmp_path / "lake" / "db" / "orders", made)
    client = connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path / "lake"), who="me")
    yield client
    client.close()


def landed(lake: Lake, rows: list[dict[str, Any]], token: str) -> None:
    with lake.ingest_client("app") as client:
        client.open_channel("orders_1", "db.orders").insert_rows(rows, token)


def test_histories_count_the_rows_of_each_report_and_show_each_compaction(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(TableNotFound, match="a minute after its first commit"):
        lake.channel_history("db.orders")
    landed(lake, [{"id": 1}, {"id": 2}], "2")
    landed(lake, [{"id": 3}], "3")
    wanted = [("2", 2), ("3", 1)]
    found = lake.channel_history("db.orders").orderBy("created_on").collect()
    assert [(row.end_offset_token, row.rows_inserted) for row in found] == wanted
    text = "SELECT end_offset_token, rows_inserted FROM {} WHERE channel_name = 'ORDERS_1' ORDER BY created_on"
    function = "snowpipe_streaming_channel_history('db.orders')"
    for source in (function, f"TABLE({function})", f"table ( {function} ) AS h"):
        assert [tuple(row) for row in lake.sql(text.format(source)).collect()] == wanted
    spark.sql(f"OPTIMIZE delta.`{tmp_path}/lake/db/orders`").collect()
    migrated = lake.sql("SELECT * FROM SNOWPIPE_STREAMING_FILE_MIGRATION_HISTORY('db.orders')").collect()
    assert [(row.table_name, row.files_removed, row.files_added) for row in migrated] == [("db.orders", 2, 1)]
    assert [row.version for row in lake.file_migrations("db.orders").collect()] == [migrated[0].version]
