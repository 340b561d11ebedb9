"""Channels that nobody uses are removed, and no other."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from tests.engine.channels.landing import Landing
from tidemark.channels.worker.tables import channels_by_table
from tidemark.errors import ChannelInvalid

pytestmark = pytest.mark.spark


def test_an_idle_channel_is_swept_and_its_writer_is_told(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        idle, busy = (client.open_channel(name, "orders") for name in ("idle", "busy"))
        idle.insert_rows([{"id": 1}], "1")
        idle.flush()
        time.sleep(0.01)
        since = datetime.now(UTC)
        busy.insert_rows([{"id": 2}], "2")
        busy.flush()
        assert client.idle_channels("orders", idle_since=since) == ["IDLE"]
        assert client.sweep("orders", idle_since=since) == ["IDLE"]
        assert client.sweep("orders", idle_since=since) == []
        assert list(landing.records()) == ["BUSY"]
        idle.insert_rows([{"id": 3}], "3")
        with pytest.raises(ChannelInvalid, match="code 19"):
            idle.flush()
        assert client.open_channel("idle", "orders").offset_token is None
    assert landing.rows(columns="id") == [(1,), (2,)]


def test_a_token_counts_as_use(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        since = datetime.now(UTC)
        time.sleep(0.01)
        channel.insert_rows([], "1")
        channel.flush()
        assert client.sweep("orders", idle_since=since) == []


def test_tables_with_channels_are_found_by_their_logs_and_a_bad_one_hides_none(landing: Landing) -> None:
    for table in ("without", "with"):
        landing.create(table)
    with landing.client() as client:
        client.open_channel("c", "with")
    (landing.root / "broken" / "_delta_log").mkdir(parents=True)
    (landing.root / "broken" / "_delta_log" / f"{0:020}.json").write_text("half of a li")
    assert list(channels_by_table(["broken", "with", "without"], landing.log)) == ["with"]
