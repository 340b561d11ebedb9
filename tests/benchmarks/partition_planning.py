"""Planning with many partitions in the store: what plan_wave and commit_wave take, on SQLite and on PostgreSQL.

    python -m tests.benchmarks.partition_planning [--partitions 100000] [--rounds 5] [--chunks 100]

Two shapes: `history`, where 1 in 100 is active and the rest are finished; `wide`, where all are active. In each round
every `--chunks`-th active partition gets load, the promise moves on, then one wave: plan, begin, written, commit, and a
look at the group's status. Medians of wall and CPU milliseconds, the database's own CPU not among them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from tests.postgresql import running_postgresql
from tidemark.change_streams.model.change_streams import (
    ChangeStream,
    ChangeStreamOptions,
    ConsumerGroup,
    LoadSegment,
    Partition,
    Position,
)
from tidemark.change_streams.planning.tokens import make_token
from tidemark.change_streams.store import change_streams, consumer_groups, group_partitions, partitions, schema
from tidemark.change_streams.worker.groups import group_status
from tidemark.change_streams.worker.waves import begin_chunks, chunk_written, commit_wave, plan_wave
from tidemark.control.store import ControlStore

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Figures = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=100)
    options = parser.parse_args()
    print("| store | shape | step | wall ms | CPU ms |\n| --- | --- | --- | --- | --- |")
    for kind in ("SQLite", "PostgreSQL"):
        for shape, one_in in (("history", 100), ("wide", 1)):
            with store_of(kind) as store:
                active = fill(store, options.partitions, one_in)
                figures = measured(store, active, options.rounds, options.chunks)
            for step, taken in figures.items():
                wall, cpu = (statistics.median(one[place] for one in taken) for place in (0, 1))
                print(f"| {kind} | {shape} | {step} | {wall:.0f} | {cpu:.0f} |", flush=True)


@contextmanager
def store_of(kind: str) -> Iterator[ControlStore]:
    """An empty store that syncs as in production where it is a file."""
    if kind == "SQLite":
        with tempfile.TemporaryDirectory() as directory:
            yield ControlStore(f"sqlite:///{directory}/control.db")
        return
    with running_postgresql() as server:
        store = ControlStore(server.url(server.new_database()))
        store.migrate()
        yield store
        store.close()


def fill(store: ControlStore, count: int, one_in: int) -> list[str]:
    """Partitions as they stand after a long life, whose ranges need not tile here; the tokens of the active ones."""
    uid, group = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
    every = [made(uid, number, active=number % one_in == 0) for number in range(count)]
    stream = ChangeStream(uid, "s", False, (), ChangeStreamOptions(), START, "log", START + count * SECOND, 1)

    def write(connection: sa.Connection) -> None:
        change_streams.insert(connection, stream)
        partitions.insert(connection, uid, every)
        load = [LoadSegment(one.token, Position(one.start, "0"), 1) for one in every]
        partitions.add_load(connection, uid, load)
        consumer_groups.insert(connection, ConsumerGroup(group, uid, "g", START, START))
        group_partitions.insert(connection, group, every, since=START)
        of = schema.group_partitions.c
        end = (
            sa.select(schema.partitions.c.end_at)
            .where(schema.partitions.c.stream_uid == uid, schema.partitions.c.token == of.token)
            .scalar_subquery()
        )
        done = schema.group_partitions.update().where(end.is_not(None))
        connection.execute(done.values(state="finished", watermark_at=end))
        ready = schema.group_partitions.update().where(of.state == "created")
        connection.execute(ready.values(state="ready", watermark_at=stream.published_until))
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("ANALYZE"))

    store.write(write)
    return [one.token for one in every if one.end is None]


def made(uid: str, number: int, *, active: bool) -> Partition:
    """Partition `number`, which ends after a second unless it is active."""
    lo, start = number % 65_535, START + number * SECOND
    return Partition(
        make_token(uid, lo, lo + 1, number), lo, lo + 1, (), start, None if active else start + SECOND, batch=number
    )


def measured(store: ControlStore, active: list[str], rounds: int, chunks: int) -> Figures:
    """Wall and CPU milliseconds of each step in each round; one before the first is not counted."""
    figures: Figures = {}
    for number in range(-1, rounds):
        busy = active[number % 7 :: max(1, len(active) // chunks)][:chunks]
        more(store, busy, number)

        def timed(step: str, act: Callable[[], object], number: int = number) -> object:
            before, cpu = time.perf_counter(), time.process_time()
            answer = act()
            taken = ((time.perf_counter() - before) * 1000, (time.process_time() - cpu) * 1000)
            if number >= 0:
                figures.setdefault(step, []).append(taken)
            return answer

        run = f"r{number}"
        plan = timed("plan_wave", lambda: plan_wave(store, "s", "g", run=run, max_chunks=chunks, max_rows=1000))  # noqa: B023
        assert len(plan.chunks) == len(busy)  # type: ignore[attr-defined]
        timed("plan_wave again", lambda: plan_wave(store, "s", "g", run=run, max_chunks=chunks, max_rows=1000))  # noqa: B023
        for chunk in plan.chunks:  # type: ignore[attr-defined]
            begin_chunks(store, (chunk,), run)
            chunk_written(store, chunk, 1, {})
        timed("commit_wave", lambda: commit_wave(store, "s", "g", run=run))  # noqa: B023
        timed("commit_wave, nothing to do", lambda: commit_wave(store, "s", "g", run=run))  # noqa: B023
        timed("group_status", lambda: group_status(store, "s", "g"))
    return figures


def more(store: ControlStore, tokens: list[str], number: int) -> None:
    """As a capture closes: load for these partitions, and a later promise."""

    def write(connection: sa.Connection) -> None:
        stream = change_streams.find(connection, "s")
        at = stream.published_until
        partitions.add_load(connection, stream.uid, [LoadSegment(token, Position(at, "0"), 10) for token in tokens])
        change_streams.publish(connection, stream.uid, batch=stream.next_batch, until=at + SECOND)

    store.write(write)


if __name__ == "__main__":
    print(f"load {os.getloadavg()[0]:.1f}")
    main()
