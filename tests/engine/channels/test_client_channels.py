"""Channels from a notebook: the client of a lake, and its SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import TableNotFound

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = "CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    for table in ("orders", "items"):
        put_table(spark, tmp_path / "lake" / "db" / table, made)
    client = connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path / "lake"), who="me")
    yield client
    client.close()


def test_channels_are_written_listed_moved_and_dropped(lake: Lake) -> None:
    with lake.ingest_client("app") as client:
        with client.open_channel("bad", "db.orders", on_error="continue", quarantine="db.bad") as bad:
            bad.insert_rows([{"id": "x"}], "1")
        client.drop_channel("bad", "db.orders")
        for table, name in (("db.orders", "orders_1"), ("db.orders", "other"), ("db.items", "items_1")):
            channel = client.open_channel(name, table, on_error="continue")
            channel.insert_rows([{"id": 1}, {"id": "x"}], "2")
    assert [(shown.table_name, shown.name) for shown in lake.show_channels()] == [
        ("items", "ITEMS_1"),
        ("orders", "ORDERS_1"),
        ("orders", "OTHER"),
    ]
    (shown,) = lake.show_channels(like="ord%")
    assert (shown.schema_name, shown.offset_token, shown.opened_by) == ("db", "2", "app")
    assert (shown.rows_inserted, shown.rows_parsed, shown.rows_error_count) == (1, 2, 1)
    lake.set_channel_offset_token("db.orders", "orders_1", "7")
    lake.drop_channel("db.orders", "other")
    assert [shown.offset_token for shown in lake.show_channels(table="db.orders")] == ["7"]
    with pytest.raises(TableNotFound):
        lake.show_channels(table="db.nowhere")


def test_the_sql_of_channels_answers_with_rows(lake: Lake) -> None:
    with lake.ingest_client("app") as client:
        channel = client.open_channel("orders_1", "db.orders", on_error="continue")
        channel.insert_rows([{"id": 1}, {"id": "x"}], "1")
    function = "SYSTEM$SNOWPIPE_STREAMING_UPDATE_CHANNEL_OFFSET_TOKEN"
    (status,) = lake.sql(f"SELECT {function}('db.orders', 'orders_1', '7')").collect()
    assert "orders_1" in status.status
    (shown,) = lake.sql("SHOW CHANNELS LIKE 'ord%' IN TABLE db.orders").collect()
    assert (shown.name, shown.table_name, shown.offset_token, shown.rows_inserted) == ("ORDERS_1", "orders", "7", 1)
    assert (shown.rows_parsed, shown.rows_error_count, shown.last_error_offset_upper_bound) == (2, 1, "1")
    assert shown.last_error_message.startswith("row 1: column id: 'x'")
    assert timedelta(0) <= shown.age < timedelta(hours=1)
    assert lake.sql("SHOW CHANNELS IN SCHEMA other").collect() == []
    (paused,) = lake.sql("SELECT SYSTEM$PAUSE_INGEST('db.orders', 1)").collect()
    assert paused.status.startswith("Table db.orders takes no rows until")


def test_a_stream_on_the_table_delivers_the_rows_of_channels(lake: Lake) -> None:
    lake.create_stream("arrived", on="db.orders")
    with lake.ingest_client("app") as client:
        client.open_channel("c", "db.orders").insert_rows([{"id": 1}, {"id": 2}], "2")
    assert lake.has_data("arrived")
    assert sorted(row.id for row in lake.stream("arrived").collect()) == [1, 2]
