"""What 1,000 watched streams cost one triggerer process, and what they would cost if each looked by itself.

    python -m tests.benchmarks.triggerer [--streams 1000] [--rounds 5] [--commits 20] [--postgresql]
        [--shared-only]

One table with a log of `commits` commits for each stream, nothing unread. A round looks at every stream once, all at
the same moment, which is what triggers do. *Shared* is the triggers' own way; *each by itself* is what a trigger would
do that calls the sensor's look in `asyncio.to_thread`. Then as many deferred sensors wait, every table gets a commit,
and the time until the last one has fired is taken. Loop lag is how long a task that wants to run every 10 ms was kept
from it, median of the rounds' medians and the worst of all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

HOME = Path(tempfile.mkdtemp(prefix="tidemark-triggerer-"))
os.environ.update(AIRFLOW_HOME=str(HOME), AIRFLOW__CORE__LOAD_EXAMPLES="False")

from tests.guarantees.synthetic_tables import SyntheticTable  # noqa: E402
from tests.unit.triggers.sea import Ticker, threads_of_triggers  # noqa: E402
from tidemark.control.store import ControlStore  # noqa: E402
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook  # noqa: E402
from tidemark.model.streams import Stream, StreamMode, StreamOffset, TableRef  # noqa: E402
from tidemark.streams.store import streams as stored_streams  # noqa: E402
from tidemark.streams.worker.has_data import has_data  # noqa: E402
from tidemark.triggers._poller import shared_poller  # noqa: E402
from tidemark.triggers._waiting import answer_within  # noqa: E402
from tidemark.triggers.streams import StreamHasDataTrigger  # noqa: E402

Round = Callable[[list[str]], Awaitable[None]]


@dataclass(frozen=True)
class Measured:
    """One round: wall and CPU seconds, the ticker's lags in seconds, threads at its end."""

    wall: float
    cpu: float
    lags: list[float]
    threads: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--postgresql", action="store_true", help="the control store is a PostgreSQL of its own")
    parser.add_argument("--shared-only", action="store_true", help="leave out what each trigger would do by itself")
    asked = parser.parse_args()
    with store_url(asked.postgresql) as url:
        extra = {"control_store": url, "lake_root": str(HOME / "lake")}
        os.environ["AIRFLOW_CONN_TIDEMARK_DEFAULT"] = json.dumps({"conn_type": "tidemark", "extra": extra})
        print(f"{asked.streams} streams, each on a log of {asked.commits} commits, in {url.partition(':')[0]}")
        tables = made(ControlStore(url), asked.streams, asked.commits)
        names = list(tables)
        asyncio.run(compare(names, asked.rounds, by_itself=not asked.shared_only))
        asyncio.run(fire(tables))


@contextmanager
def store_url(postgresql: bool) -> Iterator[str]:
    if not postgresql:
        yield f"sqlite:///{HOME}/control.db"
        return
    from tests.postgresql import running_postgresql

    with running_postgresql() as server:
        yield server.url(server.new_database())


def made(store: ControlStore, count: int, commits: int) -> dict[str, SyntheticTable]:
    """Streams that have read everything, by their names."""
    store.migrate()
    now = datetime.now(UTC)
    tables: dict[str, SyntheticTable] = {}
    streams: list[Stream] = []
    for number in range(count):
        name = f"stream_{number:05}"
        table = tables[name] = SyntheticTable(HOME / "lake" / name)
        for _ in range(commits - 1):
            table.append()
        source = TableRef(name, table.uri, table.table_id)
        offset = StreamOffset(table.table_id, table.head())
        streams.append(Stream(f"uid-{number}", name, source, StreamMode.STANDARD, offset, False, 0, now, now))
    store.write(lambda connection: [stored_streams.insert(connection, one, who="benchmark") for one in streams])
    return tables


async def compare(names: list[str], rounds: int, *, by_itself: bool) -> None:
    with shared_poller(DEFAULT_CONN_ID) as poller:

        async def shared(names: list[str]) -> None:
            await asyncio.gather(*(answer_within(poller.observe(name), 600) for name in names))

        said("shared, first look at each log", [await measured(shared, names)])
        said("shared, nothing new", [await measured(shared, names) for _ in range(rounds)])
    if by_itself:
        said("each by itself", [await measured(each_by_itself, names) for _ in range(rounds)])


async def each_by_itself(names: list[str]) -> None:
    def look(name: str) -> bool:
        hook = TidemarkHook()
        return has_data(hook.open_store(), name, tables=hook.open_table)

    await asyncio.gather(*(asyncio.to_thread(look, name) for name in names))


async def fire(tables: dict[str, SyntheticTable]) -> None:
    """Deferred sensors on all streams at an interval of 5 s, until the last has seen its commit."""
    end = datetime.now(UTC) + timedelta(minutes=30)

    async def wait(name: str) -> None:
        trigger = StreamHasDataTrigger(stream=name, end=end, poll_interval=5.0)
        event = await anext(aiter(trigger.run()))  # type: ignore[arg-type]
        assert event.payload["status"] == "found", event.payload

    async def all_wait(names: list[str]) -> None:
        waiting = [asyncio.ensure_future(wait(name)) for name in names]
        await asyncio.sleep(6)  # every stream has been looked at
        await asyncio.to_thread(lambda: [table.append() for table in tables.values()])
        committed = time.monotonic()
        await asyncio.gather(*waiting)
        print(f"  {time.monotonic() - committed:.2f} s from the last commit to the last event")

    said("deferred sensors: wait, then all fire", [await measured(all_wait, list(tables))])


async def measured(act: Round, names: list[str]) -> Measured:
    ticker = Ticker()
    ticking = asyncio.ensure_future(ticker.run())
    await asyncio.sleep(0.05)
    ticker.ticks.clear()
    began, cpu = time.monotonic(), time.process_time()
    await act(names)
    wall, cpu = time.monotonic() - began, time.process_time() - cpu
    ticking.cancel()
    lags = [later - earlier - 0.01 for earlier, later in zip(ticker.ticks, ticker.ticks[1:], strict=False)]
    return Measured(wall, cpu, lags or [wall], len(threads_of_triggers()))


def said(what: str, rounds: list[Measured]) -> None:
    def median(of: Callable[[Measured], float]) -> float:
        return statistics.median(of(one) for one in rounds)

    lag = median(lambda one: statistics.median(one.lags)) * 1000
    worst = max(max(one.lags) for one in rounds) * 1000
    print(
        f"{what}: {median(lambda one: one.wall):.2f} s until all were looked at, "
        f"{median(lambda one: one.cpu):.2f} CPU s a round, "
        f"loop lag {lag:.1f} ms median, {worst:.0f} ms at worst, {rounds[-1].threads} threads of triggers"
    )


if __name__ == "__main__":
    main()
