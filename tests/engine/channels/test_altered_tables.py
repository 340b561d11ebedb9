"""Channels go on under a table that is altered, or end with code 40 before a value is lost."""

from __future__ import annotations

import time

import pytest

from tests.engine.channels.landing import Landing
from tidemark.errors import ChannelInvalid, RowsRefused

pytestmark = pytest.mark.spark

MAPPED = {"delta__columnMapping__mode": "name"}
HELD = "10 minutes"


def test_a_new_column_is_taken_at_once_and_is_null_in_buffered_rows(landing: Landing) -> None:
    landing.create()
    with landing.client(max_client_lag=HELD) as client:
        channel = client.open_channel("c", "orders")
        channel.insert_rows([{"id": 1}], "1")
        with pytest.raises(RowsRefused, match="size: the table has no such column"):
            channel.insert_rows([{"id": 2, "size": 5}], "2")
        landing.sql("ALTER TABLE {t} ADD COLUMN size INT")
        time.sleep(1.1)  # an unknown column makes the client read the table, at most once a second
        channel.insert_rows([{"id": 2, "size": 5}], "2")
        channel.flush()
    assert landing.rows(columns="id, size") == [(1, None), (2, 5)]


def test_buffered_rows_keep_their_values_when_columns_are_renamed_or_widened(landing: Landing) -> None:
    landing.create("orders", "id INT, name STRING", **MAPPED, delta__enableTypeWidening="true")
    with landing.client(max_client_lag=HELD) as client:
        channel = client.open_channel("c", "orders")
        channel.insert_rows([{"id": 1, "name": "a"}], "1")
        landing.sql("ALTER TABLE {t} RENAME COLUMN name TO title")
        landing.sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT")
        channel.flush()
        channel.insert_rows([{"id": 2**40, "title": "b"}], "2")
    assert landing.rows(columns="id, title") == [(1, "a"), (2**40, "b")]


def test_a_dropped_column_ends_channels_that_have_values_for_it(landing: Landing) -> None:
    landing.create("orders", "id INT, name STRING", **MAPPED)
    with landing.client(max_client_lag=HELD) as client:
        full, empty = (client.open_channel(name, "orders") for name in ("full", "empty"))
        full.insert_rows([{"id": 1, "name": "a"}], "1")
        empty.insert_rows([{"id": 2}], "2")
        landing.sql("ALTER TABLE {t} DROP COLUMN name")
        empty.flush()
        with pytest.raises(ChannelInvalid, match=r"code 40.*column name was dropped"):
            full.flush()
        again = client.open_channel("full", "orders")
        assert again.offset_token is None
        again.insert_rows([{"id": 1}], "1")
    assert landing.rows() == [(1,), (2,)]


def test_a_table_that_got_a_constraint_ends_its_channels(landing: Landing) -> None:
    landing.create()
    client = landing.client()
    channel = client.open_channel("c", "orders")
    landing.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)")
    channel.insert_rows([{"id": -1}], "1")
    with pytest.raises(ChannelInvalid, match=r"code 6.*CHECK constraints positive"):
        channel.flush()
    assert landing.rows() == []
