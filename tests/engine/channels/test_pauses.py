"""A pause lets DML of Spark pass the commits of busy channels, of whichever client."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest

from tests.engine.channels.landing import Landing
from tests.until import wait_until
from tidemark.errors import InvalidArgument

pytestmark = pytest.mark.spark


def test_dml_succeeds_beside_busy_channels_and_no_row_is_lost(landing: Landing) -> None:
    landing.create()
    clients = [landing.client(f"client {number}") for number in range(2)]
    channels = [client.open_channel(f"c{n}", "orders") for client in clients for n in (id(client), id(client) + 1)]
    is_over = threading.Event()
    sent = [0] * len(channels)

    def write(place: int) -> None:
        while not is_over.is_set():
            channels[place].insert_rows([{"id": sent[place], "name": str(place)}], str(sent[place]))
            sent[place] += 1
            time.sleep(0.01)

    writers = [threading.Thread(target=write, args=(place,)) for place in range(len(channels))]
    for writer in writers:
        writer.start()
    try:
        wait_until(lambda: len(landing.rows()) > 0)
        until = landing.client("operator").pause("orders", 20)
        paused_at = landing.log().head()
        landing.sql("DELETE FROM {t} WHERE id = 0")
        assert datetime.now(UTC) < until, "the machine was too slow for this pause"
        assert landing.log().head() == paused_at + 1
        wait_until(lambda: landing.log().head() > paused_at + 2)
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    for channel in channels:
        channel.close()
    wanted = [(number, str(place)) for place, count in enumerate(sent) for number in range(1, count)]
    assert landing.rows() == sorted(wanted, key=repr)


def test_a_flush_waits_for_the_end_of_a_pause(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        until = client.pause("orders", 2)
        channel.insert_rows([{"id": 1}], "1")
        channel.flush()
        assert datetime.now(UTC) >= until
    assert landing.rows(columns="id") == [(1,)]


def test_a_pause_of_a_table_without_channels_holds_the_first_one_up(landing: Landing) -> None:
    landing.create()
    with landing.client() as client, landing.client("another") as other:
        until = other.pause("orders", 3)
        channel = client.open_channel("c", "orders")
        channel.insert_rows([{"id": 1}], "1")
        channel.flush()
        assert datetime.now(UTC) >= until
    assert landing.rows(columns="id") == [(1,)]


def test_a_short_pause_does_not_end_a_longer_one(landing: Landing) -> None:
    landing.create()
    with landing.client() as client, landing.client("another") as other:
        channel = client.open_channel("c", "orders")
        until = client.pause("orders", 5)
        assert other.pause("orders", 0.1) < until
        channel.insert_rows([{"id": 1}], "1")
        channel.flush()
        assert datetime.now(UTC) >= until


@pytest.mark.parametrize("seconds", [0, -1, 601])
def test_a_pause_without_end_is_refused(landing: Landing, seconds: float) -> None:
    with landing.client() as client, pytest.raises(InvalidArgument, match="at most 600"):
        client.pause("orders", seconds)
