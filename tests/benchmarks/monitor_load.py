"""The monitor with many objects and many readers: server time of each page's refresh, on SQLite and on PostgreSQL.

    python -m tests.benchmarks.monitor_load [--streams 10000] [--objects 1000] [--partitions 100000] [--readers 20]

Readers open one of the pages each, and refresh it every 5 seconds for a minute, with the ETags that they have, as the
page does. Then one reader asks without a pause, a closed loop. The app runs alone in a process, as Airflow mounts it,
with Airflow's checks. Server time is from a request to the first byte of its answer. No route waits for logs.
CPU is that of the process meanwhile, other requests and looks in the background included.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.benchmarks import partition_planning
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.postgresql import running_postgresql
from tidemark.control.schema import all_tables
from tidemark.control.store import ControlStore
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.worker.streams import create_stream

SERVER_TIME, SERVER_CPU = "X-Server-Seconds", "X-Server-Cpu"
EVERY = 5.0
TABLES = 100
PAGES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "overview": (("overview", {"limit": 50}), ("acts", {"limit": 10})),
    "streams": (("streams", {"limit": 50}),),
    "objects": (("objects", {"limit": 50}),),
    "replications": (("replications", {}),),
    "a replication": (("replication", {"name": "shop", "limit": 50}),),
    "a stream": (("stream", {"name": "stream_00042"}),),
}
Figures = dict[str, list[tuple[float, float, int]]]


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--stores", default="SQLite,PostgreSQL")
    parser.add_argument("--serve", nargs=2, metavar=("URL", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], int(options.serve[1]))
        return
    print(
        "| store | load | route | requests | of them 304 | p50 ms | p95 ms | most ms | CPU ms |\n" + "| --- " * 9 + "|"
    )
    for kind in options.stores.split(","):
        with store_at(kind) as url:
            began = time.monotonic()
            fill(url, options)
            print(f"{kind} was filled in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            with server(url) as (base, token):
                asyncio.run(measure(kind, base, token, options))


@contextmanager
def store_at(kind: str) -> Iterator[str]:
    if kind == "SQLite":
        with tempfile.TemporaryDirectory() as directory:
            yield f"sqlite:///{directory}/control.db"
        return
    with running_postgresql() as started:
        yield started.url(started.new_database())


def fill(url: str, options: argparse.Namespace) -> None:
    """Streams on some tables that have moved on, objects of a replication, partitions of a change stream."""
    from tests.airflow.monitored_replications import MonitoredReplications

    root = Path(tempfile.mkdtemp(prefix="tidemark-load-"))
    store = ControlStore(url, keep_connections=True)
    store.migrate()
    MonitoredReplications(root, url).many(options.objects)
    partition_planning.fill(store, options.partitions, 100)
    tables = [SyntheticTable(root / "lake" / f"t{number:03}") for number in range(TABLES)]
    for number, table in enumerate(tables):
        create_stream(
            store,
            name=f"stream_{number:05}",
            source=TableRef(f"lake.{table.path.name}", table.uri, table.table_id),
            mode=StreamMode.STANDARD,
            at_version=table.head(),
            who="ana",
        )
    store.write(lambda connection: multiply(connection, options.streams))
    for table in tables:
        for _ in range(20):
            table.append()
    store.close()


def multiply(connection: sa.Connection, count: int) -> None:
    """Each stream as often as it takes to have `count`: all of its rows, under other names and uids."""
    streams = connection.execute(sa.text("SELECT uid, name FROM tidemark_stream")).all()
    for table in all_tables().sorted_tables:
        column = next((table.c[name] for name in ("stream_uid", "uid") if name in table.c), None)
        if column is None:
            continue
        found = connection.execute(sa.select(table)).mappings()
        rows = [{name: value for name, value in row.items() if name != "id"} for row in found]  # numbered by the store
        by_uid = {row.uid: row.name for row in streams}
        copies = [
            {**row, column.name: other_uid(row[column.name], number), **_renamed(row, by_uid[row[column.name]], number)}
            for row in rows
            if row[column.name] in by_uid
            for number in range(1, count // len(streams))
        ]
        if copies:
            connection.execute(sa.insert(table), copies)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("ANALYZE"))


def other_uid(uid: str, number: int) -> str:
    return f"{number:08x}{uid[8:]}"


def _renamed(row: dict[str, Any], name: str, number: int) -> dict[str, Any]:
    other = f"stream_{number * TABLES + int(name[-5:]):05}"
    return {column: other for column in ("name", "folded_name") if row.get(column) == name}


@contextmanager
def server(url: str) -> Iterator[tuple[str, str]]:
    """The app in a process of its own: its address, and the token of a reader."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.benchmarks.monitor_load", "--serve", url, str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    token = next(line.split()[1] for line in process.stdout if line.startswith("token "))
    base = f"http://127.0.0.1:{port}/tidemark/api/v1"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    try:
        yield base, token
    finally:
        process.terminate()
        process.wait(30)


def serve(url: str, port: int) -> None:
    """The app as Airflow mounts it, with the server time of each answer in a header."""
    from tests.airflow.conftest import HOME
    from tests.airflow_database import put_metadata_database

    put_metadata_database(HOME)
    os.environ["TIDEMARK_CONTROL_STORE"] = url
    import uvicorn

    from tests.airflow.monitor_app import VIEWER, mounted_app, token

    with mounted_app() as app:
        print(f"token {token(VIEWER)}", flush=True)
        uvicorn.run(Timed(app), port=port, log_level="warning", access_log=False)


class Timed:
    """Around an ASGI app: seconds from the request to the begin of the answer, of the clock and of the process, as
    headers.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        began, cpu = time.perf_counter(), time.process_time()

        async def timed(message: Any) -> None:
            if message["type"] == "http.response.start":
                taken = {SERVER_TIME: time.perf_counter() - began, SERVER_CPU: time.process_time() - cpu}
                more = [(name.lower().encode(), f"{seconds:.6f}".encode()) for name, seconds in taken.items()]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, receive, timed)


async def measure(kind: str, base: str, token: str, options: argparse.Namespace) -> None:
    import httpx

    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        figures: Figures = {}
        warm = Reader(client, base, {})
        for page in PAGES:
            await warm.refresh(page)
        names = list(PAGES)
        before = os.getloadavg()[0]
        await asyncio.gather(
            *(
                Reader(client, base, figures).watch(
                    names[number % len(names)], options.seconds, EVERY * number / options.readers
                )
                for number in range(options.readers)
            )
        )
        show(kind, f"{options.readers} readers", figures)
        print(f"load average {before:.1f} to {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        alone: Figures = {}
        reader, until, asked = Reader(client, base, alone), time.monotonic() + options.seconds / 3, 0
        while time.monotonic() < until:
            await reader.refresh(names[asked % len(names)])
            asked += 1
        show(kind, "closed loop", alone)
        print(f"{kind}: {asked / (options.seconds / 3):.1f} refreshes a second in the closed loop", flush=True)


class Reader:
    """Somebody with a page open."""

    def __init__(self, client: Any, base: str, figures: Figures) -> None:
        self.client, self.base, self.figures = client, base, figures
        self.known: dict[str, str] = {}

    async def watch(self, page: str, seconds: float, first: float) -> None:
        await asyncio.sleep(first)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            await self.refresh(page)
            await asyncio.sleep(max(0.0, EVERY - (time.monotonic() - began)))

    async def refresh(self, page: str) -> None:
        for route, asked in PAGES[page]:
            headers = {"If-None-Match": self.known[route]} if route in self.known else {}
            answer = await self.client.get(f"{self.base}/{route}", params=asked, headers=headers)
            assert answer.status_code in (200, 304), answer.text
            self.known[route] = answer.headers["ETag"]
            taken, cpu = (float(answer.headers[header]) * 1000 for header in (SERVER_TIME, SERVER_CPU))
            self.figures.setdefault(route, []).append((taken, cpu, answer.status_code))


def show(kind: str, load: str, figures: Figures) -> None:
    for route, taken in sorted(figures.items()):
        times = sorted(one for one, _, _ in taken)
        cpu = statistics.median(one for _, one, _ in taken)
        p95 = times[min(len(times) - 1, round(0.95 * len(times)))]
        kept = sum(status == 304 for _, _, status in taken)
        print(
            f"| {kind} | {load} | {route} | {len(times)} | {kept} | {statistics.median(times):.0f} | {p95:.0f} "
            f"| {times[-1]:.0f} | {cpu:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    main()
