"""Channels against Spark appends and delta-rs: rows a second, and milliseconds until a fresh snapshot shows a row.

    python -m tests.benchmarks.channels [--rounds 3] [--seconds 10] [--only rows,commit,http,latency] [--minutes 30]

Rows have 5 columns. `rows`: 1 and 4 channels insert batches of 1,000 and 50,000 rows as fast as they are taken. Spark
and delta-rs append the same Arrow tables, one thread for each channel. Their tables are plain, since delta-rs can write
no others; those of channels have row tracking. `commit`: 1,000 channels with a row each in one commit. `latency`: each
of 4 channels inserts 1,000 rows ten times a second, and a reader asks for the committed token all the time; Spark and
delta-rs append the same from one thread, and a call that returns counts as visible. Channels commit in a small JVM of
their own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from tests.benchmarks.change_sets import home_for
from tests.ports import free_port
from tidemark.channels.driver.channel import Channel
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.model.grants import Grants
from tidemark.channels.planning.grants import with_grant
from tidemark.model.codec import to_json
from tidemark.testing import local_spark

COLUMNS = "id BIGINT, at TIMESTAMP, name STRING, price DECIMAL(12,2), score DOUBLE"
TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
SHAPES = [(1, 1_000), (4, 1_000), (1, 50_000), (4, 50_000)]
MANY = 1_000
TOKEN = "a token of the benchmark"
_numbers = itertools.count()

Append = Callable[[int, pa.Table], None]


def rows_of(count: int) -> list[dict[str, Any]]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        {"id": n, "at": at, "name": f"name {n % 1000}", "price": Decimal(n % 100_000) / 100, "score": n * 0.5}
        for n in range(count)
    ]


def table_of(count: int) -> pa.Table:
    schema = pa.schema(
        {
            "id": pa.int64(),
            "at": pa.timestamp("us", "UTC"),
            "name": pa.string(),
            "price": pa.decimal128(12, 2),
            "score": pa.float64(),
        }
    )
    return pa.Table.from_pylist(rows_of(count), schema)


@dataclass
class Lake:
    """New tables, and the ways to write them."""

    home: Path
    spark: SparkSession
    engine: KernelEngine

    def new_table(self, properties: str = "") -> str:
        path = self.home / f"table_{next(_numbers)}"
        self.spark.sql(f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta {properties}")
        return str(path)

    @contextmanager
    def channels(self, count: int) -> Iterator[list[Channel]]:
        path = self.new_table(TRACKED)
        with IngestClient("benchmark", self.engine, lambda _: f"file://{path}", options={}) as client:
            opened = [client.open_channel(f"c{number}", "t") for number in range(count)]
            for channel in opened:
                channel.insert_rows([], "0")
            client.flush()
            yield opened

    def by_spark(self) -> Append:
        path, version = self.new_table(), itertools.count()

        def append(number: int, rows: pa.Table) -> None:
            writer = self.spark.createDataFrame(rows).write.format("delta").mode("append")
            writer.option("txnAppId", f"thread {number}").option("txnVersion", next(version)).save(path)

        return append

    def by_delta_rs(self) -> Append:
        """Threads that meet each other too often append again."""
        from deltalake import write_deltalake
        from deltalake.exceptions import CommitFailedError

        path = self.new_table()

        def append(_: int, rows: pa.Table) -> None:
            while True:
                with suppress(CommitFailedError):
                    return write_deltalake(path, rows, mode="append")

        return append


@dataclass(frozen=True)
class Flow:
    """Rows a second, and CPU seconds for a million rows."""

    rows: float
    cpu: float


def cpu_seconds(of: psutil.Process | None = None) -> float:
    """Of a process, or of this one, and of its children, which are the JVMs."""
    top = of or psutil.Process()
    return sum(cpu_of(process) for process in (top, *top.children(recursive=True)))


def cpu_of(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def flow(seconds: float, threads: int, size: int, append: Append, rows: Any, finish: Callable[[], None]) -> Flow:
    """The rate at which so many threads append the same batch again and again."""
    done = [0] * threads
    until = time.monotonic() + seconds

    def run(number: int) -> None:
        while time.monotonic() < until:
            append(number, rows)
            done[number] += size

    began, cpu = time.monotonic(), cpu_seconds()
    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    finish()
    total = sum(done)
    return Flow(total / (time.monotonic() - began), (cpu_seconds() - cpu) / total * 1e6)


def by_channels(lake: Lake, seconds: float, threads: int, size: int, rows: Any) -> Flow:
    with lake.channels(threads) as opened:
        tokens = [itertools.count(1) for _ in opened]

        def append(number: int, batch: Any) -> None:
            opened[number].insert_rows(batch, str(next(tokens[number])))

        def finish() -> None:
            for channel in opened:
                channel.flush()

        append(0, rows)
        finish()
        return flow(seconds, threads, size, append, rows, finish)


def by_appends(start: Callable[[], Append], seconds: float, threads: int, size: int, rows: Any) -> Flow:
    return flow(seconds, threads, size, start(), rows, lambda: None)


def measure_rows(lake: Lake, rounds: int, seconds: float) -> None:
    print("| channels × rows | way | rows/s | CPU s for a million rows |\n| --- | --- | --- | --- |")
    for threads, size in SHAPES:
        arrow, dicts = table_of(size), rows_of(size)
        how = (seconds, threads, size)
        ways: dict[str, Callable[[], Flow]] = {
            "channels, Arrow": partial(by_channels, lake, *how, arrow),
            "channels, dicts": partial(by_channels, lake, *how, dicts),
            "Spark appends": partial(by_appends, lake.by_spark, *how, arrow),
            "delta-rs": partial(by_appends, lake.by_delta_rs, *how, arrow),
        }
        found: dict[str, list[Flow]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, run in ways.items():
                measured = run()
                if number:  # the first round warms up
                    found[name].append(measured)
        for name, flows in found.items():
            rate, cpu = (statistics.median(values) for values in zip(*((f.rows, f.cpu) for f in flows), strict=True))
            print(f"| {threads} × {size:,} | {name} | {rate:,.0f} | {cpu:.2f} |", flush=True)


def measure_commit(lake: Lake, rounds: int) -> None:
    """A thousand channels with a row each, from the first insert to the end of their commit."""
    one = table_of(1)
    with lake.channels(MANY) as opened:
        flushes, whole = [], []
        for number in range(1, rounds + 3):
            began = time.monotonic()
            for channel in opened:
                channel.insert_rows(one, str(number))
            inserted = time.monotonic()
            for channel in opened:
                channel.flush()
            if number > 2:
                flushes.append(time.monotonic() - inserted)
                whole.append(time.monotonic() - began)
    commit, all_of_it = statistics.median(flushes) * 1000, statistics.median(whole) * 1000
    print(
        f"{MANY} channels: inserts and commit {all_of_it:.0f} ms, the wait for the commit {commit:.0f} ms", flush=True
    )


def measure_http(lake: Lake, rounds: int, seconds: float) -> None:
    """Bodies of 10,000 rows that were made before, in 4 channels, by one writing process."""
    print("| body | rows/s | CPU s for a million rows, service | writers |\n| --- | --- | --- | --- |")
    rows = table_of(10_000)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    lines = "".join(
        json.dumps({**row, "at": row["at"].isoformat(), "price": float(row["price"])}) + "\n" for row in rows_of(10_000)
    )
    bodies = {"JSON lines": (lines.encode(), "application/x-ndjson")}
    bodies["Arrow"] = (sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.stream")
    with served(lake) as (url, process):
        for name, (body, media_type) in bodies.items():
            found = [sent(lake, url, process, body, media_type, seconds) for _ in range(rounds + 1)][1:]
            rate, service, writers = (statistics.median(values) for values in zip(*found, strict=True))
            print(f"| {name} | {rate:,.0f} | {service:.2f} | {writers:.2f} |", flush=True)


@contextmanager
def served(lake: Lake) -> Iterator[tuple[str, psutil.Process]]:
    tokens, port = lake.home / "tokens.json", free_port()
    tokens.write_text(to_json(with_grant(Grants(), "benchmark", TOKEN, ("*",), datetime.now(UTC))))
    command = [sys.executable, "-m", "tests.benchmarks.ingest_server", str(lake.home), str(tokens), str(port)]
    process = psutil.Popen(command)
    url = f"http://127.0.0.1:{port}"
    while True:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{url}/health").status_code == 200:
                break
        time.sleep(0.2)
    try:
        yield url, process
    finally:
        process.terminate()
        process.wait()


def sent(
    lake: Lake, url: str, process: psutil.Process, body: bytes, media_type: str, seconds: float
) -> tuple[float, float, float]:
    """Rows a second, and CPU seconds for a million rows of the service and of its writers."""
    table = Path(lake.new_table(TRACKED)).name
    done = [0] * 4
    until = time.monotonic() + seconds

    def write(number: int) -> None:
        channel, form = f"{url}/v1/tables/{table}/channels/c{number}", {"Content-Type": media_type}
        with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
            turn = http.put(channel, json={}).json()["next_continuation_token"]
            while time.monotonic() < until:
                query = {"continuation_token": turn, "offset_token": str(done[number])}
                answer = http.post(f"{channel}/rows", params=query, content=body, headers=form)
                if answer.status_code == 429:
                    time.sleep(0.05)
                    continue
                turn = answer.raise_for_status().json()["next_continuation_token"]
                done[number] += 10_000
            http.post(f"{channel}/flush").raise_for_status()

    own, its, began = cpu_of(psutil.Process()), cpu_seconds(process), time.monotonic()
    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    rows = sum(done)
    wall, millions = time.monotonic() - began, rows / 1e6
    return rows / wall, (cpu_seconds(process) - its) / millions, (cpu_of(psutil.Process()) - own) / millions


def percentiles(name: str, seconds: list[float]) -> None:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")  # none is above the longest
    shown = " | ".join(f"{cuts[at] * 1000:,.0f}" for at in (49, 94, 98))
    print(f"| {name} | {len(seconds):,} | {shown} | {max(seconds) * 1000:,.0f} |", flush=True)


def measure_latency(lake: Lake, minutes: float) -> None:
    print("| way | batches | p50 ms | p95 ms | p99 ms | longest |\n| --- | --- | --- | --- | --- | --- |")
    rows = table_of(1_000)
    percentiles("channels", latency_of_channels(lake, rows, minutes * 60))
    for name, append in (("Spark appends", lake.by_spark()), ("delta-rs", lake.by_delta_rs())):
        found, until = [], time.monotonic() + min(60.0, minutes * 60)
        append(0, rows)
        while time.monotonic() < until:
            began = time.monotonic()
            append(0, rows)
            found.append(time.monotonic() - began)
            time.sleep(max(0.0, 0.1 - found[-1]))
        percentiles(name, found)


def latency_of_channels(lake: Lake, rows: pa.Table, seconds: float) -> list[float]:
    """From each insert to the first look at a fresh snapshot that has its token."""
    found: list[float] = []
    with lake.channels(4) as opened:
        inserted: list[list[float]] = [[time.monotonic()] for _ in opened]
        until = time.monotonic() + seconds

        def write() -> None:
            while time.monotonic() < until:
                began = time.monotonic()
                for channel, times in zip(opened, inserted, strict=True):
                    times.append(time.monotonic())
                    channel.insert_rows(rows, str(len(times) - 1))
                time.sleep(max(0.0, 0.1 - (time.monotonic() - began)))

        writer = threading.Thread(target=write)
        writer.start()
        seen = [0] * len(opened)
        while writer.is_alive() or any(at < len(times) - 1 for at, times in zip(seen, inserted, strict=True)):
            for number, channel in enumerate(opened):
                token = int(channel.latest_committed_offset_token() or 0)
                now = time.monotonic()
                found += [now - inserted[number][at] for at in range(seen[number] + 1, token + 1)]
                seen[number] = token
            time.sleep(0.02)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--only", default="rows,commit,http,latency")
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    wanted = given.only.split(",")
    with home_for(given.home) as home:
        spark = local_spark(warehouse=home / "warehouse", more={"spark.databricks.delta.snapshotPartitions": "2"})
        lake = Lake(home, spark, start_engine({}))
        if "rows" in wanted:
            measure_rows(lake, given.rounds, given.seconds)
        if "commit" in wanted:
            measure_commit(lake, 5 * given.rounds)
        if "http" in wanted:
            measure_http(lake, given.rounds, given.seconds)
        if "latency" in wanted:
            measure_latency(lake, given.minutes)
        spark.stop()


if __name__ == "__main__":
    main()
