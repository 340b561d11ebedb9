"""A drop takes along what the store has of a change stream, in one transaction, and who is at work with it changes
nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.control.change_stream_model import ChangeStreamWorld, CountingTable, captured, segment, tables
from tidemark.change_streams.model.change_streams import ChangeStreamOptions
from tidemark.change_streams.model.sinks import ChunkAnswer, Sink, SinkKind
from tidemark.change_streams.store import schema
from tidemark.change_streams.worker.backfill import begin_backfill, finish_backfill
from tidemark.change_streams.worker.capture import close_batch
from tidemark.change_streams.worker.definitions import create_change_stream, drop_change_stream
from tidemark.change_streams.worker.groups import create_group
from tidemark.change_streams.worker.reading import read_chunks
from tidemark.change_streams.worker.retention import expire_before, forget
from tidemark.change_streams.worker.waves import commit_wave, plan_wave
from tidemark.control import migrate
from tidemark.control.store import ControlStore
from tidemark.errors import ChangeStreamNotFound, ChunkChanged, TidemarkError
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

OF_STREAMS = (schema.watched_tables, schema.capture_batches, schema.partitions, schema.partition_load)
OF_GROUPS = (schema.group_partitions, schema.chunks, schema.group_sinks)
HISTORY = (schema.change_streams, schema.consumer_groups, schema.backfills)


def counts(store: ControlStore) -> dict[str, int]:
    """Rows of each table of change streams."""

    def look(connection: sa.Connection) -> dict[str, int]:
        every = (*OF_STREAMS, *OF_GROUPS, *HISTORY)
        counted = {one.name: sa.select(sa.func.count()).select_from(one) for one in every}
        return {name: connection.execute(query).scalar_one() for name, query in counted.items()}

    return store.read(look)


class Used:
    """`s` with a finished backfill, a batch that is captured and one that is open, and a chunk that is being read; and
    before all that, what the store has without it, another change stream among it.
    """

    def __init__(self, world: ChangeStreamWorld) -> None:
        self.world, self.store = world, world.store
        self.target: CountingTable = world.new_table("target")
        point = begin_backfill(self.store, "s", "g", "db.t", self.target.ref)
        finish_backfill(self.store, point, 7)
        at = world.clock.now + timedelta(seconds=1)
        world.batch(*(segment(one.token, at, 5) for one in world.active()))
        world.table.commit(world.clock.go())
        self.batch = world.opened()
        self.chunks = plan_wave(self.store, "s", "g", run="r", max_chunks=9, max_rows=9).chunks

    def read(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        def job(spec: JobSpec) -> JobResult:
            meanwhile()
            answers = [ChunkAnswer(one.token, one.number, 5) for one in self.chunks]
            return JobResult({"chunks": to_plain(answers)})

        read_chunks(
            Runtime(self.store, run=job, paths=JobPaths("file:///lake/_tidemark", "/tmp/jobs"), tables=tables),
            self.chunks,
            Sink(SinkKind.APPEND, self.target.ref),
            run="r",
            key=TransactionKey("dag", "run", "read", 0),
        )


@pytest.fixture
def used(world: ChangeStreamWorld) -> Used:
    return Used(world)


def test_nothing_but_history_is_left_and_other_change_streams_keep_theirs(used: Used) -> None:
    create_change_stream(
        used.store,
        name="other",
        tables=[used.target.watched()],
        everything=False,
        options=ChangeStreamOptions(),
        log_path="file:///other",
    )
    create_group(used.store, "other", "g", "earliest")
    assert all(counts(used.store).values())
    dropped = used.world.stream
    assert drop_change_stream(used.store, "s") == dropped
    left = counts(used.store)
    assert {one.name: left[one.name] for one in HISTORY} == {
        "tidemark_change_stream": 2,
        "tidemark_consumer_group": 2,
        "tidemark_backfill": 1,
    }
    of_other = {one.name: left[one.name] for one in (*OF_STREAMS, *OF_GROUPS)}
    assert of_other == {
        "tidemark_watched_table": 1,
        "tidemark_capture_batch": 0,
        "tidemark_partition": 1,
        "tidemark_partition_load": 0,
        "tidemark_group_partition": 1,
        "tidemark_chunk": 0,
        "tidemark_group_sink": 0,
    }


def test_a_capture_that_was_under_way_puts_nothing_back(used: Used) -> None:
    drop_change_stream(used.store, "s")
    before = counts(used.store)
    with pytest.raises(ChangeStreamNotFound):
        close_batch(used.store, used.batch, captured(used.batch))
    assert counts(used.store) == before


def test_a_read_that_was_under_way_puts_nothing_back(used: Used) -> None:
    after: list[dict[str, int]] = []

    def drop() -> None:
        drop_change_stream(used.store, "s")
        after.append(counts(used.store))

    with pytest.raises(ChunkChanged, match="no chunk of the group as it is now"):
        used.read(drop)
    with pytest.raises(ChunkChanged):
        used.read()
    steps: list[Callable[[], object]] = [
        lambda: commit_wave(used.store, "s", "g", run="r"),
        lambda: plan_wave(used.store, "s", "g", run="r", max_chunks=9, max_rows=9),
        lambda: begin_backfill(used.store, "s", "g", "db.t", used.target.ref),
        lambda: expire_before(used.store, "s"),
        lambda: forget(used.store, "s"),
    ]
    for step in steps:
        with pytest.raises(ChangeStreamNotFound):
            step()
    assert counts(used.store) == after[0]


def test_a_drop_that_fails_on_the_way_leaves_all_of_it(used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    before = counts(used.store)

    class TurnedAway(TidemarkError):
        """{message}"""

    def refuse(*_: object, **__: object) -> None:
        raise TurnedAway(message="killed")

    monkeypatch.setattr("tidemark.change_streams.store.change_streams.drop", refuse)
    with pytest.raises(TurnedAway):
        drop_change_stream(used.store, "s")
    assert counts(used.store) == before


def test_what_earlier_releases_left_behind_goes_with_the_migration(used: Used, owners_store: ControlStore) -> None:
    """Revision 0005 kept watch list, batches, partitions and load of a change stream that was dropped."""

    def back(connection: sa.Connection) -> None:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0005")
        of = schema.change_streams
        connection.execute(of.update().where(of.c.name == "s").values(dropped_at=used.world.clock.now))

    owners_store.write(back)
    owners_store.write(migrate.upgrade)
    left = counts(used.store)
    assert [left[one.name] for one in OF_STREAMS] == [0, 0, 0, 0]
    assert left["tidemark_change_stream"] == 1
