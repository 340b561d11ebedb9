"""Writers that commit no more say so at once, and each channel of a service has a writer of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.channels.specs import field, spec
from tests.until import wait_until
from tidemark.channels.driver.batches import batch_of
from tidemark.channels.driver.channel import Channel, ChannelOptions
from tidemark.channels.driver.history import MinuteReports
from tidemark.channels.driver.limits import Limits
from tidemark.channels.driver.open_channel import OpenChannel
from tidemark.channels.driver.orders import Drop, Pause
from tidemark.channels.driver.service.desk import Body, IngestDesk, Tokens
from tidemark.channels.driver.service.messages import OpenRequest
from tidemark.channels.driver.table_writer import TableWriter
from tidemark.channels.planning.records import opened
from tidemark.errors import ChangeNotCommitted, ChannelClosed, KernelFailed

ORDERS = spec(field("id", "long"))
DROP = Drop(key="C", table="db.orders")
LONG = timedelta(minutes=10)


def now() -> datetime:
    return datetime.now(UTC)


def writer_of(limits: Limits, **table: Any) -> TableWriter:
    """A writer whose lag is never over, so that it asks nothing of its table but what `table` has."""
    no_table: Any = SimpleNamespace(name="db.orders", spec=ORDERS, **table)
    no_quarantine: Any = None
    return TableWriter(
        no_table, limits, MinuteReports(lambda *_: None, now), no_quarantine, clock=now, token=lambda: "t"
    )


def channel() -> OpenChannel:
    return OpenChannel("C", "db.orders", opened(None, "id", by="app", token=None, now=now()))


def insert(writer: TableWriter, into: OpenChannel) -> int:
    return writer.insert(into, batch_of(pa.table({"id": [1]}), ORDERS, UTC, now()), ORDERS, "1")


def test_a_stopped_writer_takes_no_rows_and_lets_nobody_wait() -> None:
    writer, one = writer_of(Limits(lag=LONG)), channel()
    number = insert(writer, one)
    writer.stop()
    for call in (lambda: insert(writer, one), lambda: writer.flush(one, number)):
        began = time.monotonic()
        with pytest.raises(ChannelClosed):
            call()
        assert time.monotonic() - began < 5


def test_an_insert_that_waits_for_room_ends_with_the_writer() -> None:
    writer, one = writer_of(Limits(lag=LONG, all_bytes=-1)), channel()
    found: list[BaseException] = []
    waiting = threading.Thread(target=_noting, args=(lambda: insert(writer, one), found))
    waiting.start()
    writer.stop()
    waiting.join(30)
    assert [type(error) for error in found] == [ChannelClosed]


@pytest.mark.parametrize("order", [DROP, Pause(until=datetime.max.replace(tzinfo=UTC))])
def test_an_order_that_is_late_is_taken_back(order: Drop | Pause) -> None:
    """A commit of rows hangs, as one of a paused table does."""
    release = threading.Event()

    def refresh() -> None:
        raise KernelFailed(table="db.orders", problem="it is away")

    limits = Limits(lag=timedelta(0), patience=timedelta(seconds=0.2))
    writer, one = writer_of(limits, is_stale=release.wait, refresh=refresh), channel()
    writer._channels["C"] = one
    insert(writer, one)
    wait_until(lambda: writer._in_flight is not None)
    with pytest.raises(ChangeNotCommitted, match=r"in table db\.orders was not .* in time.* does not happen later"):
        writer.fulfil(order) if isinstance(order, Drop) else writer.pause(order.until)
    assert [*writer._orders, *writer._changes] == []
    release.set()
    writer.stop()


def test_an_order_whose_commit_hangs_may_still_happen() -> None:
    release = threading.Event()
    writer = writer_of(Limits(lag=LONG, patience=timedelta(seconds=0.2)), record=lambda _: release.wait() and None)
    with pytest.raises(ChangeNotCommitted, match=r"The drop of channel C .* has begun, and may still happen"):
        writer.fulfil(DROP)
    release.set()
    assert writer.fulfil(DROP) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_no_writer() -> None:
    writer, one = writer_of(Limits(lag=LONG)), channel()
    child = os.fork()
    if child == 0:  # no return into the tests of the parent
        try:
            insert(writer, one)
        except ChannelClosed:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    writer.stop()


def _noting(call: Callable[[], object], errors: list[BaseException]) -> None:
    try:
        call()
    except ChannelClosed as error:
        errors.append(error)


def test_a_service_keeps_channels_of_tables_apart_whose_names_differ_by_case() -> None:
    """Directories of both may exist, and the first continuation token of each channel is the same."""
    channels: dict[str, Channel] = {}

    def open_channel(_: str, table: str, **__: Any) -> Channel:
        channels[table] = Channel(channel(), writer_of(Limits(lag=LONG)), ChannelOptions(), now)
        return channels[table]

    client: Any = SimpleNamespace(open_channel=open_channel, buffered_bytes=lambda: 0)
    desk = IngestDesk(client, lambda _: {})
    tokens = {
        table: desk.open(table, "c", OpenRequest(), "app").next_continuation_token
        for table in ("db.orders", "db.Orders")
    }
    desk.append("db.orders", "c", Body(b'{"id": 1}', None, 1 << 20), Tokens(tokens["db.orders"]))
    assert {table: one.status().buffered_rows for table, one in channels.items()} == {"db.orders": 1, "db.Orders": 0}
