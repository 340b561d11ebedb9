"""Opens that race, a JVM that dies, a full disk: what was acknowledged is in the table, and nothing comes twice."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.engine.channels.landing import TRACKED, Landing
from tests.until import wait_until
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


def test_a_table_that_is_moved_away_ends_its_channel_and_its_rows_come_again_by_their_token(
    landing: Landing, tmp_path: Path
) -> None:
    landing.create()
    table = landing.root / "orders"
    client = landing.client(limits=IMPATIENT)
    channel = client.open_channel("c", "orders")
    table.rename(tmp_path / "aside")
    table.write_text("not a directory")
    channel.insert_rows([{"id": 1}], "1")
    with pytest.raises(ChannelInvalid, match="code 36"):
        channel.flush()
    table.unlink()
    (tmp_path / "aside").rename(table)
    again = client.open_channel("c", "orders")
    assert again.offset_token is None
    again.insert_rows([{"id": 1}], "1")
    again.flush()
    assert landing.rows(columns="id") == [(1,)]


@contextmanager
def no_room(place: Path) -> Iterator[None]:
    """The directory takes no file: its disk is full, or it may only be read by a user who is not root."""
    filler = place / "filler"
    if os.geteuid():
        places = [place, place / "_delta_log"]
        for one in places:
            one.chmod(0o500)
        yield
        for one in places:
            one.chmod(0o700)
        return
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"0" * 4096)
            file.flush()
    yield
    filler.unlink()


@pytest.fixture
def on_a_small_disk(landing: Landing) -> Iterator[Landing]:
    """Its table is on a disk of its own, of two MiB, as root."""
    place = landing.root / "orders"
    place.mkdir(parents=True)
    if os.geteuid():
        yield landing
        return
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("this root may not mount a disk")
    yield landing
    landing.close()
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_rows_in_buffers_survive_a_disk_that_is_full_for_a_while_and_commit_by_themselves(
    on_a_small_disk: Landing,
) -> None:
    landing = on_a_small_disk
    landing.sql(f"CREATE TABLE {{t}} (id BIGINT) USING delta {TRACKED.format(more='')}")
    client = landing.client(limits=IMPATIENT)
    first, second = (client.open_channel(name, "orders") for name in ("a", "b"))
    first.insert_rows([{"id": 1}], "1")
    first.flush()
    with no_room(landing.root / "orders"):
        first.insert_rows([{"id": 2}], "2")
        second.insert_rows([{"id": 3}], "3")
        with pytest.raises(RowsNotCommitted, match=r"(No space left|Permission denied).*stay in the buffer"):
            first.flush()
        second.insert_rows([{"id": 4}], "4")
        assert (landing.token("A"), landing.token("B")) == ("1", None)
        assert landing.rows() == [(1,)]
        assert {one.status().code for one in (first, second)} == {StatusCode.OK}
    wait_until(lambda: (landing.token("A"), landing.token("B")) == ("2", "4"))
    first.flush()
    assert landing.rows() == [(1,), (2,), (3,), (4,)]
