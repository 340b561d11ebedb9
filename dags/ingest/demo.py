"""`make demo-ingest`: the ingest service, and four writers that send the flights of a day; two of them get killed.

At the end the table is compared with what was sent. A second run sends the next day through the same channels.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flights.replay_plan import Flight
from flights.year import flights_between
from replication.target import read_rows

TABLE = "nyc.departures"
WRITERS = ("EWR", "JFK", "LGA", "late")
KILLED = ("EWR", "JFK")
FIRST_DAY = datetime(2013, 1, 1, 5, tzinfo=UTC)
COLUMNS = """service_date DATE, carrier STRING, number INT, origin STRING, dest STRING, tailnum STRING, distance INT,
 scheduled_departure TIMESTAMP, departure_delay INT, arrival_delay INT, air_time INT"""
SECONDS_TO_START = 180
HERE = Path(__file__).parent


def main() -> int:
    home = Path(os.environ["AIRFLOW_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    outbox = home / "outbox"
    outbox.mkdir(exist_ok=True)
    print("Making Airflow's own database, the table and a token", flush=True)
    subprocess.run(["airflow", "db", "migrate"], check=True, capture_output=True)
    command = [sys.executable, __file__, "--create"]
    subprocess.run(command, check=True, capture_output=True)
    bearer = _token()
    sent = _write_outbox(outbox)
    port = _free_port()
    print("Starting the ingest service, a Spark application", flush=True)
    with _service(port, home):
        began = time.monotonic()
        url = f"http://127.0.0.1:{port}"
        writers = {name: _start(url, name, outbox, bearer) for name in WRITERS}
        _kill_two(writers, url, outbox, bearer)
        codes = [writer.wait() for writer in writers.values()]
        seconds = time.monotonic() - began
    if any(codes):
        return 1
    print(f"All lines are in {TABLE} after {seconds:.1f} s", flush=True)
    return _compare(home, sent)


def _create_table(home: Path) -> None:
    from tidemark.testing import local_spark

    spark = local_spark(cores=1)
    place = home / "lake" / TABLE.replace(".", "/")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS delta.`{place}` ({COLUMNS}) USING delta"
        " TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    spark.stop()


def _token() -> str:
    command = ["airflow", "tidemark", "ingest", "tokens", "add", "demo", "--table", "nyc.*", "--output", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return str(json.loads(done.stdout)[0]["token"])


def _write_outbox(outbox: Path) -> list[dict[str, Any]]:
    """A day's flights, a line each: a file for each airport, and one for late flights. All lines so far."""
    days = sum(1 for _ in outbox.glob("day-*"))
    start = FIRST_DAY + timedelta(days=days)
    flights = flights_between(start, start + timedelta(days=1))
    for name in WRITERS:
        with (outbox / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(_row(flight)) + "\n" for flight in flights if _is_for(flight, name))
    (outbox / f"day-{days}").touch()
    print(f"{len(flights):,} flights of {start:%Y-%m-%d} wait to be sent", flush=True)
    return [json.loads(line) for name in WRITERS for line in (outbox / f"{name}.jsonl").open(encoding="utf-8")]


def _is_for(flight: Flight, name: str) -> bool:
    is_late = (flight.departure_delay or 0) > 60
    return is_late if name == "late" else flight.origin == name and not is_late


def _row(flight: Flight) -> dict[str, Any]:
    return {name: value if isinstance(value, int | None) else str(value) for name, value in asdict(flight).items()}


@contextmanager
def _service(port: int, home: Path) -> Iterator[None]:
    """The service, ready for writers; it commits all that it has taken before it ends."""
    command = ["airflow", "tidemark", "ingest", "serve", "--port", str(port)]
    with (home / "ingest.log").open("w") as log:
        service = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_for(port, service, home)
        yield
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


def _wait_for(port: int, service: subprocess.Popen[bytes], home: Path) -> None:
    until = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < until and service.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"The service did not start. Its log: {home / 'ingest.log'}")


def _start(url: str, name: str, outbox: Path, bearer: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(HERE / "writer.py"), url, TABLE, name, str(outbox / f"{name}.jsonl")]
    return subprocess.Popen(command, env=os.environ | {"INGEST_TOKEN": bearer, "INGEST_PAUSE": "0.1"})


def _kill_two(writers: dict[str, subprocess.Popen[bytes]], url: str, outbox: Path, bearer: str) -> None:
    for name in KILLED:
        time.sleep(random.uniform(0.3, 0.6))
        writers[name].kill()
        killed = writers[name].wait()
        print(f"{name}: {'killed in the middle' if killed else 'was done already'}, and started again", flush=True)
        writers[name] = _start(url, name, outbox, bearer)


def _compare(home: Path, sent: list[dict[str, Any]]) -> int:
    """Compare the table with all that was sent, row for row, without Spark."""
    rows = read_rows(home / "lake" / TABLE.replace(".", "/"), [field.name for field in fields(Flight)])
    there, wanted = Counter(map(_key, rows)), Counter(map(_key, sent))
    if there == wanted:
        print(f"{len(sent):,} rows were sent, and the table has each of them once.")
        return 0
    print(f"THE TABLE DIFFERS: {(wanted - there).total():,} rows are missing, {(there - wanted).total():,} too many.")
    return 1


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, value if isinstance(value, int | None) else str(value)) for name, value in row.items()))


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


if __name__ == "__main__":
    if sys.argv[1:] == ["--create"]:
        _create_table(Path(os.environ["AIRFLOW_HOME"]))
    else:
        sys.exit(main())
