"""What the control store promises of change streams and their readers, whichever database it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.change_stream_model import START, Clock, CountingTable, captured, segment, tables
from tidemark.control.store import ControlStore
from tidemark.model.change_streams import CaptureBatch, ChangeStream, ChangeStreamOptions, LoadSegment, Partition
from tidemark.transactions.change_streams.capture import close_batch, open_batch
from tidemark.transactions.change_streams.definitions import create_change_stream, get_change_stream
from tidemark.transactions.change_streams.groups import create_group, group_status
from tidemark.transactions.change_streams.waves import begin_chunks, chunk_written, commit_wave, finish, plan_wave

MINUTE = timedelta(minutes=1)


@dataclass
class World:
    """A change stream `s` over one table of its own."""

    store: ControlStore
    clock: Clock
    table: CountingTable

    @property
    def stream(self) -> ChangeStream:
        return get_change_stream(self.store, "s")

    def opened(self, **how: object) -> CaptureBatch | None:
        return open_batch(self.store, "s", tables=tables, **how)  # type: ignore[arg-type]

    def batch(self, *load: LoadSegment, **how: object) -> ChangeStream:
        """A commit, and its capture."""
        self.table.commit(self.clock.go())
        batch = self.opened()
        assert batch is not None
        return close_batch(self.store, batch, captured(batch, load, **how))  # type: ignore[arg-type]

    def rest(self) -> ChangeStream:
        """Nothing new, and a while later that is known."""
        self.clock.go()
        assert self.opened() is None
        return self.stream

    def active(self) -> tuple[Partition, ...]:
        from tidemark.control import partitions

        uid = self.stream.uid
        return self.store.read(lambda c: partitions.active(c, uid))


@pytest.fixture
def world(store: ControlStore, tmp_path: Path) -> World:
    clock = Clock()
    store.clock = clock
    table = CountingTable(tmp_path / "t")
    create_change_stream(
        store,
        name="s",
        tables=[table.watched()],
        everything=False,
        options=ChangeStreamOptions(),
        log_path="file:///log",
        initial_partitions=2,
    )
    return World(store, clock, table)


def test_a_batch_is_read_once_from_capture_to_commit(world: World) -> None:
    left, right = world.active()
    create_group(world.store, "s", "g", "earliest")
    at = world.clock.now + timedelta(seconds=5)
    until = world.batch(segment(left.token, at, 7)).published_until
    plan = plan_wave(world.store, "s", "g", run="r1", max_chunks=10, max_rows=100)
    (chunk,) = plan.chunks
    assert (chunk.token, chunk.number, chunk.expected, chunk.last) == (left.token, 0, 7, False)
    assert (chunk.start.at, chunk.end.at) == (START, until)
    assert begin_chunks(world.store, plan.chunks, "r1") == plan.chunks
    assert chunk_written(world.store, chunk, 7, {"version": "3"})
    done = commit_wave(world.store, "s", "g", run="r1")
    assert (done.finished, done.children, done.low_watermark) == ((), (), until)
    assert finish(world.store, "s", "g", run="r1") == 0
    assert plan_wave(world.store, "s", "g", run="r2", max_chunks=10, max_rows=100).chunks == ()
    assert group_status(world.store, "s", "g").counts == {"ready": 2}
    assert right.token != left.token
