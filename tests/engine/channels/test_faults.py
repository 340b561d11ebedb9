"""Opens that race, and a JVM that dies: what was acknowledged is in the table, and nothing comes twice."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.engine.channels.landing import Landing
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.driver.limits import Limits
from tidemark.channels.model.channels import StatusCode
from tidemark.errors import ChannelInvalid, RowsNotCommitted

pytestmark = pytest.mark.spark

IMPATIENT = Limits(patience=timedelta(seconds=3))


def test_of_many_that_open_a_channel_at_once_one_has_it(landing: Landing) -> None:
    landing.create()
    clients = [landing.client(f"client {number}") for number in range(4)]

    def open_and_write(number: int) -> Any:
        channel = clients[number].open_channel("c", "orders")
        channel.insert_rows([{"id": number}], str(number))
        with contextlib.suppress(ChannelInvalid):
            channel.flush()
        return channel

    with ThreadPoolExecutor(len(clients)) as pool:
        for _ in range(3):
            channels = list(pool.map(open_and_write, range(len(clients))))
            record = landing.records()["C"]
            assert len(landing.rows()) == record.rows_inserted
            for channel in channels:
                with contextlib.suppress(ChannelInvalid):
                    channel.insert_rows([], "again")
                    channel.flush()
            (owner,) = [channel for channel in channels if channel.status().code is StatusCode.OK]
            assert owner.status().record.client_sequencer == landing.records()["C"].client_sequencer


@pytest.fixture
def engine() -> Iterator[tuple[KernelEngine, psutil.Process]]:
    """A small JVM of this process, and that JVM."""
    me = psutil.Process()
    before = set(me.children())
    made = start_engine({}, seconds_to_answer=5)
    (process,) = [child for child in set(me.children()) - before if "java" in child.name()]
    yield made, process
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def test_a_jvm_that_died_is_an_error_and_the_rows_come_again_by_their_token(
    landing: Landing, engine: tuple[KernelEngine, psutil.Process]
) -> None:
    landing.create()
    dead, process = engine
    client = IngestClient("app", dead, landing.uri, options={}, limits=IMPATIENT)
    channel = client.open_channel("c", "orders")
    channel.insert_rows([{"id": 1}], "1")
    channel.flush()
    process.kill()
    channel.insert_rows([{"id": 2}], "2")
    with pytest.raises(RowsNotCommitted, match="JVM does not answer"):
        channel.flush()
    assert not dead.is_alive()
    client.discard()
    with landing.client("next") as successor:
        again = successor.open_channel("c", "orders")
        assert again.offset_token == "1"
        again.insert_rows([{"id": 2}], "2")
    assert landing.rows(columns="id") == [(1,), (2,)]


def test_a_log_that_others_locked_up_keeps_rows_until_it_is_free(landing: Landing, tmp_path: Path) -> None:
    """As on a full or read-only disk: the directory takes no file for some time."""
    landing.create()
    table = landing.root / "orders"
    client = landing.client(limits=IMPATIENT)
    channel = client.open_channel("c", "orders")
    table.rename(tmp_path / "aside")
    table.write_text("not a directory")
    channel.insert_rows([{"id": 1}], "1")
    with pytest.raises((RowsNotCommitted, ChannelInvalid)):
        channel.flush()
    table.unlink()
    (tmp_path / "aside").rename(table)
    again = client.open_channel("c", "orders")
    assert again.offset_token is None
    again.insert_rows([{"id": 1}], "1")
    again.flush()
    assert landing.rows(columns="id") == [(1,)]
